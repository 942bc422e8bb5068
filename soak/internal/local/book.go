package local

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/katbox/katbox/soak/story"
)

// Root begins the names of all local volumes and snapshots in events.
const Root = "pool/"

// The kinds of what pools have.
const (
	volumes   = "volumes"
	snapshots = "snapshots"
)

// nameOf is what events call a volume or a snapshot.
func nameOf(class, kind, name string) string { return path.Join(Root, class, kind, name) }

// written is how many markers of an owner are synced.
type written struct {
	owner string
	n     int
}

// followed is a volume or a snapshot.
type followed struct {
	*story.Story
	// from is what its data begins with, and base what that had.
	name, from string
	base       []written
}

// content is all that was synced in it.
func (f *followed) content() []written {
	return append(slices.Clone(f.base), written{path.Base(f.name), f.Markers()})
}

// book has the stories of all volumes and snapshots, by their names.
type book map[string]*followed

// add goes on with a story. The error says that the events make no sense.
func (b book) add(e story.Event) error {
	f := b[e.Volume]
	switch {
	case e.What == story.Create && f != nil:
		return fmt.Errorf("%s is made twice", e.Volume)
	case e.What == story.Create:
		f = &followed{Story: story.New(0), name: e.Volume, from: e.Text}
		if from := b[f.from]; from != nil {
			f.base = from.content()
		}
		b[e.Volume] = f
	case f == nil:
		return fmt.Errorf("%s: %s, and it was never made", e.Volume, e.What)
	}
	f.Add(e)
	return nil
}

// Violation is something that is not as it has to be.
type Violation struct {
	What string
	// Told is what happened to what it befell, if it is about a single one.
	Told []story.Event
}

// broken are the stories that broke.
func (b book) broken() (all []Violation) {
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if f := b[name]; f.Broken() != "" {
			all = append(all, Violation{name + ": " + f.Broken(), f.Told()})
		}
	}
	return all
}

// look tells the stories what a pool has, and returns what is wrong with the pool. Room for growth without an answer
// may be promised already.
func (b book) look(class string, has contents) (all []Violation) {
	var sum, growing int64
	seen := make(map[string]bool)
	for kind, items := range map[string][]found{volumes: has.volumes, snapshots: has.snapshots} {
		for _, item := range items {
			name := nameOf(class, kind, item.Name)
			f := b[name]
			sum += item.Size
			seen[name] = true
			if f == nil { // it was never made
				f = &followed{Story: story.New(0), name: name, from: nameOf(class, volumes, item.Of)}
				b[name] = f
			}
			f.Add(item.sight(kind, path.Base(f.from), now(name)))
			growing += max(0, int64(f.Most())-item.Size)
		}
	}
	for name, f := range b {
		if path.Dir(path.Dir(name)) == path.Join(Root, class) && !seen[name] {
			at := now(name)
			at.What = story.Unknown
			f.Add(at)
		}
	}
	if p := has.pool; p.Provisioned < sum || p.Provisioned > sum+growing || p.Provisioned > p.Total {
		all = append(all, Violation{What: fmt.Sprintf("pool %s of %d bytes has promised %d, and has volumes and snapshots of %d "+
			"that may grow by %d", class, p.Total, p.Provisioned, sum, growing)})
	}
	return all
}

// sight is what is seen of a volume, or of a snapshot that should be of another one.
func (f found) sight(kind, from string, at story.Event) story.Event {
	switch {
	case !f.Ready:
		at.What, at.Text = story.Failed, "it is not whole, and stays so"
	case kind == snapshots && f.Of != from:
		at.What, at.Text = story.Failed, fmt.Sprintf("it is a snapshot of %s, not of %s", f.Of, from)
	case kind == snapshots:
		at.What, at.N = story.Listed, int(f.Size)
	default:
		at.What, at.N, at.Text = story.Listed, int(f.Size), f.Comment
	}
	return at
}

// Standing counts what the events promise.
func (b book) standing() string {
	var there, open, gone int
	for _, f := range b {
		switch {
		case f.Is(story.Persistent):
			there++
		case f.May(story.Persistent):
			open++
		default:
			gone++
		}
	}
	return fmt.Sprintf("%d local volumes and snapshots, %d there, %d with a call without an answer, %d gone", len(b), there, open, gone)
}
