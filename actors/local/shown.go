package local

import (
	"context"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/localdisk"
	localmessages "github.com/katbox/katbox/messages/local"
)

const (
	// mostShown bounds the images that are mounted for readers: each takes a loop device and memory of the kernel.
	mostShown = 16
	// linger is how long an image stays mounted behind its last reader: a list and a look at a file mount it once.
	linger = 5 * time.Second
	// readersLeave is how long a stage and a deletion wait for readers, which are told to leave.
	readersLeave = 10 * time.Second
)

// showing makes the files of one volume readable: it serves all who read the volume. An image is mounted for that
// meanwhile. The keeper owns it; what reaches the disk runs in the goroutines of readers, and in one that ends it.
type showing struct {
	name string
	dir  *opened
	// ctx ends when the showing is to end. gone is closed when nothing is left of it.
	ctx    context.Context
	cancel context.CancelFunc
	gone   chan struct{}
	// before is closed when an earlier showing of the volume is gone; nil if there was none.
	before <-chan struct{}
	// slots has one for each image that may be mounted; nil for volumes that need none.
	slots chan struct{}
	// release gives the pool's directory back.
	release func()

	// These are the keeper's. idle is since when there are no readers.
	readers int
	idle    time.Time
	timer   *time.Timer
	ending  bool

	// opening has room for the one that opens the files, or ends that. It guards is and over: a reader that leaves does
	// not wait for it.
	opening chan struct{}
	is      localdisk.Shown
	// over: it is not to be opened any more.
	over bool
}

// open opens the files. The first one that comes makes them readable.
func (s *showing) open(ctx context.Context, r local.Record) (*files.Tree, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.over {
		return nil, problemf(volume.ErrUnavailable, "volume %s is not shown to readers any more", s.name)
	}
	if s.is == nil {
		if err := s.show(ctx, r); err != nil {
			return nil, err
		}
	}
	return s.is.Tree()
}

// show waits for an earlier showing, and for a slot.
func (s *showing) show(ctx context.Context, r local.Record) error {
	if s.before != nil {
		select {
		case <-s.before:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.slots != nil {
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	is, err := s.dir.Show(ctx, r)
	if err != nil {
		s.leaveSlot()
		return err
	}
	s.is = is
	return nil
}

func (s *showing) leaveSlot() {
	if s.slots != nil {
		<-s.slots
	}
}

// end ends what was shown, and waits until nothing is left. It may hang.
func (s *showing) end() error {
	s.opening <- struct{}{}
	s.over = true
	is := s.is
	<-s.opening
	if s.before != nil {
		<-s.before
	}
	if is == nil {
		return nil
	}
	defer s.leaveSlot()
	return is.End()
}

// unshown waits until no reader keeps the volume in use.
func (t *task) unshown(ctx context.Context) error {
	gone, err := actors.Ask(ctx, t.Root, t.keeper, &localmessages.UnshowLocal{Name: t.volume})
	if err != nil || gone == nil {
		return err
	}
	t.progress.Waits("readers of the volume")
	defer t.progress.Waits("")
	waiting, cancel := context.WithTimeout(ctx, readersLeave)
	defer cancel()
	select {
	case <-gone:
		return nil
	case <-waiting.Done():
		if err := ctx.Err(); err != nil {
			return err
		}
		return problemf(volume.ErrBusy, "%s is still open to readers, which were told to leave", t.text)
	}
}
