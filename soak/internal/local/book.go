package local

import (
	"fmt"
	"slices"
	"time"
)

// Verb is what happened to a volume or a snapshot. Those in the past were answered, the others are about to be asked
// for.
type Verb string

// The verbs.
const (
	Make    Verb = "make"
	Made    Verb = "made"
	Refused Verb = "refused" // there was no room to make it
	Grow    Verb = "grow"
	Grown   Verb = "grown"
	Kept    Verb = "kept"  // its size: there was no room to grow
	Wrote   Verb = "wrote" // N markers are synced
	Say     Verb = "say"   // Text is to be its comment
	Said    Verb = "said"
	Delete  Verb = "delete"
	Deleted Verb = "deleted"
)

// Event is something that happened to a volume or a snapshot in a pool.
type Event struct {
	At   time.Time `json:"at"`
	What Verb      `json:"what"`
	Pool string    `json:"pool"` // its class
	Name string    `json:"name"`
	// Snapshot: it is one. From is what its data begins with.
	Snapshot bool   `json:"snapshot,omitempty"`
	From     string `json:"from,omitempty"`
	Size     int64  `json:"size,omitempty"`
	N        int    `json:"n,omitempty"`
	Text     string `json:"text,omitempty"`
}

// String is the event without its name.
func (e Event) String() string {
	return fmt.Sprintf("%s %s size=%d n=%d from=%s %s", e.At.UTC().Format("15:04:05.000"), e.What, e.Size, e.N, e.From, e.Text)
}

// written is how many markers of an owner are synced.
type written struct {
	owner string
	n     int
}

// entry is what is known of a volume or a snapshot.
type entry struct {
	pool, name string
	snapshot   bool
	from       string
	// may: it may be there. must: it has to be.
	may, must bool
	// least and most bound its size.
	least, most int64
	// base is what it began with, n its own markers.
	base []written
	n    int
	// comments are those that it may have.
	comments []string
	told     []Event
}

// content is all that was synced in it.
func (e *entry) content() []written {
	return append(slices.Clone(e.base), written{e.name, e.n})
}

// Book is what is known of all volumes and snapshots. It does no I/O.
type Book struct {
	entries map[string]*entry
}

// Add goes on with the story. The error says that the events make no sense.
func (b *Book) Add(e Event) error {
	if b.entries == nil {
		b.entries = make(map[string]*entry)
	}
	o := b.entries[e.Name]
	if e.What == Make {
		if o != nil {
			return fmt.Errorf("%s is made twice", e.Name)
		}
		o = &entry{pool: e.Pool, name: e.Name, snapshot: e.Snapshot, from: e.From, may: true, most: e.Size, comments: []string{""}}
		if from := b.entries[e.From]; from != nil {
			o.base = from.content()
		}
		b.entries[e.Name] = o
	}
	if o == nil {
		return fmt.Errorf("%s is %s, and was never made", e.Name, e.What)
	}
	o.told = append(o.told, e)
	switch e.What {
	case Made:
		o.must, o.least, o.most = true, e.Size, e.Size
	case Refused, Deleted:
		o.may, o.must = false, false
	case Grow:
		o.most = e.Size
	case Grown:
		o.least, o.most = e.Size, e.Size
	case Kept:
		o.most = o.least
	case Wrote:
		o.n = e.N
	case Say:
		o.comments = append(o.comments, e.Text)
	case Said:
		o.comments = []string{e.Text}
	case Delete:
		o.must = false
	}
	return nil
}

// Violation is something that is not as it has to be.
type Violation struct {
	What string
	// Told is what happened to what it befell, if it is about a single one.
	Told []Event
}

func (e *entry) breaks(format string, args ...any) Violation {
	return Violation{e.name + " in pool " + e.pool + ": " + fmt.Sprintf(format, args...), e.told}
}

// compare compares what is in a pool with what has to be. What is there is certain from then on, except the size of a
// volume whose growth was not answered: the room for it may be promised already, and a stage may complete it.
func (b *Book) compare(class string, is pool, volumes, snapshots []found) (all []Violation) {
	seen := make(map[string]bool)
	var sum, growing int64
	look := func(f found, snapshot bool) {
		sum += f.Size
		seen[f.Name] = true
		e := b.entries[f.Name]
		switch {
		case e == nil || e.pool != class || e.snapshot != snapshot:
			all = append(all, Violation{What: fmt.Sprintf("pool %s has %q, which nobody has made", class, f.Name)})
			return
		case !e.may:
			all = append(all, e.breaks("it was deleted, or never made, and is there"))
		case !f.Ready:
			all = append(all, e.breaks("it is not whole, and stays so"))
		case snapshot && f.Of != e.from:
			all = append(all, e.breaks("it is a snapshot of %s, not of %s", f.Of, e.from))
		case f.Size < e.least || f.Size > e.most:
			all = append(all, e.breaks("it has %d bytes, and should have between %d and %d", f.Size, e.least, e.most))
		case !snapshot && !slices.Contains(e.comments, f.Comment):
			all = append(all, e.breaks("it has the comment %q, and should have one of %q", f.Comment, e.comments))
		}
		if e.may && e.most > f.Size {
			growing += e.most - f.Size
		} else {
			e.most = f.Size
		}
		e.may, e.must, e.least, e.comments = true, true, f.Size, []string{f.Comment}
	}
	for _, f := range volumes {
		look(f, false)
	}
	for _, f := range snapshots {
		look(f, true)
	}
	for _, e := range b.of(class) {
		if e.must && !seen[e.name] {
			all = append(all, e.breaks("it is gone"))
		}
		e.may = seen[e.name]
		e.must = e.may
	}
	if is.Provisioned < sum || is.Provisioned > sum+growing || is.Provisioned > is.Total {
		all = append(all, Violation{What: fmt.Sprintf("pool %s of %d bytes has promised %d, and has volumes and snapshots of %d "+
			"that may grow by %d", class, is.Total, is.Provisioned, sum, growing)})
	}
	return all
}

// of returns the entries of a pool in the order of their names.
func (b *Book) of(class string) (all []*entry) {
	for _, e := range b.entries {
		if e.pool == class {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return all
}

// Standing counts what the events promise.
func (b *Book) Standing() string {
	var there, open, gone int
	for _, e := range b.entries {
		switch {
		case e.must:
			there++
		case e.may:
			open++
		default:
			gone++
		}
	}
	return fmt.Sprintf("%d local volumes and snapshots, %d there, %d with a call without an answer, %d gone",
		len(b.entries), there, open, gone)
}
