package fakedriver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/handlers"
)

// volumes are what the node's handlers serve.
type volumes struct{ *run }

var _ handlers.Volumes = volumes{}

// Awake describes the volumes that are published.
func (s volumes) Awake(context.Context) (all []volume.Description, err error) {
	for _, v := range s.disk.all(true) {
		all = append(all, s.describe(v))
	}
	return all, nil
}

// Usage is asked for by nothing.
func (s volumes) Usage(context.Context, volume.Record, func(context.Context) error) (volume.Size, error) {
	return volume.Size{}, errNotAsked
}

// key orders the volumes.
func (v record) key() volume.Key {
	return volume.Key{Unpublished: v.unpublished.Round(0), ID: volume.ID(v.id)}
}

// List returns a page of the retained volumes, the newest first.
func (s volumes) List(_ context.Context, q volume.Selection) (volume.Page, error) {
	all := s.disk.all(false)
	switch s.cfg.Bug {
	case ListsPublished:
		for _, v := range s.disk.all(true) {
			if s.used(v) {
				all = append(all, v)
			}
		}
	case ListsStale:
		all = append(all, s.stale()...)
	case ListsOthers:
		q.Namespace = ""
	}
	slices.SortFunc(all, func(a, b record) int { return b.key().Compare(a.key()) })
	before := q.Before
	q.Before = volume.Key{} // the times that people see may be those of another wall clock than the page before had
	var page volume.Page
	var last record
	for _, v := range all {
		order, d := v.key().Compare(before), s.describe(v)
		switch {
		case v.deleting && s.cfg.Bug != ListsStale, !q.Selects(d.Record):
		case !before.IsZero() && (order > 0 || order == 0 && s.cfg.Bug != ListsTwice):
		case len(page.Volumes) == q.Limit:
			if page.Next = last.key(); s.cfg.Bug == ListsForgets {
				page.Next = v.key()
			}
			return page, nil
		default:
			page.Volumes, last = append(page.Volumes, d), v
		}
	}
	return page, nil
}

// describe says what people see of a volume.
func (r *run) describe(v record) volume.Description {
	offset := r.wallClock()
	if r.cfg.Bug == ShowsOldClock && !v.orphan {
		offset = v.wall.Sub(v.unpublished)
	}
	until := v.unpublished.Add(r.asked(v))
	if until.Before(v.pinned) {
		until = v.pinned
	}
	d := volume.Description{Deadline: until.Add(offset), Record: volume.Record{
		ID: volume.ID(v.id), Pod: volume.PodUID(v.pod), Namespace: v.namespace, PodName: v.podName, Phase: volume.Retained,
		Published: v.answered, Unpublished: v.unpublished.Add(offset), Owner: r.disk.ownerOf(v.id),
	}}
	if v.published && r.cfg.Bug != ListsPublished {
		d.Record.Phase = volume.Published
	}
	return d
}

// staleFor is how long a driver lists what is gone, if that is the bug.
const staleFor = 4 * time.Second

// stale are volumes that are gone for some time.
func (r *run) stale() []record {
	r.people.mu.Lock()
	defer r.people.mu.Unlock()
	r.former = slices.DeleteFunc(r.former, func(f former) bool { return time.Since(f.gone) > staleFor })
	var list []record
	for _, f := range r.former {
		list = append(list, f.record)
	}
	return list
}

// former is a volume that is gone.
type former struct {
	record record
	gone   time.Time
}

// Describe describes a volume in whatever phase it is.
func (s volumes) Describe(_ context.Context, id volume.ID) (volume.Description, error) {
	v, ok := s.disk.get(string(id))
	if !ok {
		return volume.Description{}, fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
	}
	return s.describe(v), nil
}

// kept returns a volume that is retained.
func (r *run) kept(id volume.ID) (record, error) {
	v, ok := r.disk.get(string(id))
	switch {
	case !ok, v.deleting:
		return v, fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
	case v.published && r.cfg.Bug != ReadsPublished:
		return v, fmt.Errorf("volume %s: %w", id, volume.ErrNotRetained)
	}
	return v, nil
}

// Read begins to read a retained volume.
func (s volumes) Read(ctx context.Context, id volume.ID) (*files.Reading, error) {
	s.people.mu.Lock()
	defer s.people.mu.Unlock()
	v, err := s.kept(id)
	if err != nil {
		return nil, err
	}
	if s.cfg.Bug == ReadingProlongs && !v.prolonged {
		v.prolonged = true
		s.disk.put(v)
	}
	tree, err := openTree(cmp.Or(instead(ctx), s.data(v)))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", volume.ErrGone, err)
	}
	if err != nil {
		return nil, err
	}
	lost, lose := context.WithCancelCause(context.Background())
	one := &lease{lose}
	if s.cfg.Bug == ReadsOn {
		lost = context.Background()
	}
	if s.people.leases[v.id] == nil {
		s.people.leases[v.id] = make(map[*lease]bool)
	}
	s.people.leases[v.id][one] = true
	return &files.Reading{Volume: s.describe(v), Tree: tree, Lost: lost, Close: sync.OnceFunc(func() {
		_ = tree.Close() // it is only read
		lose(nil)
		s.people.mu.Lock()
		defer s.people.mu.Unlock()
		delete(s.people.leases[v.id], one)
	})}, nil
}

// openTree opens a directory for reading its files.
func openTree(dir string) (*files.Tree, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	opener, err := beneath.New(fd)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return files.New(fd, opener), nil
}
