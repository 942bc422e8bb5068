package localdisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
)

// To share the blocks of an image takes as long as it has extents, up to seconds. Pods that use it wait meanwhile: its
// file is locked, and its file system frozen. So most is shared before, in pieces, while pods go on. What they write then
// goes elsewhere on the disk, so that the two files say what has changed since. For that alone the file system is frozen.
//
// What pods write to a block device cannot be held back. In the end all is shared at once, whatever was before: XFS passes over
// what it shares already, ten times as fast, and btrfs does not.

// sharing says how the blocks of an image in use are shared.
type sharing struct {
	// extents is how many of them are shared at once.
	extents int
	// frozen is how long a file system stays frozen at most, and a piece longer.
	frozen time.Duration
}

// A thousand extents are shared in 30 ms, and compared in 3.
var usualSharing = sharing{extents: 1000, frozen: 2 * time.Second}

var errFrozenLong = errors.New("it would stay frozen for too long")

// share makes an image as its origin is at one moment. The error is [volume.ErrBusy] if that would take too long.
func (i *images) share(ctx context.Context, image *os.File, from local.Record, origin *os.File) error {
	st, err := kernel.Fstat(int(origin.Fd()))
	if err != nil {
		return err
	}
	if err := kernel.Truncate(image, st.Size); err != nil {
		return err
	}
	loops, err := loopsOf(origin, i.suffix(from))
	if err != nil {
		return err
	}
	closeLoops(loops)
	c := pieces{sharing: i.sharing, to: image, from: origin, size: st.Size, whole: len(loops) == 0}
	const tries = 3
	for range tries {
		if err := c.before(ctx); err != nil {
			return err
		}
		thaw, err := i.freeze(from, origin)
		if err != nil {
			return err
		}
		if thaw == nil || c.whole {
			err = kernel.Clone(int(image.Fd()), int(origin.Fd()))
		} else {
			_, err = c.pass(ctx, time.Now().Add(c.frozen))
		}
		if thaw != nil {
			err = errors.Join(err, thaw())
		}
		if !errors.Is(err, errFrozenLong) {
			return err
		}
	}
	return fmt.Errorf("%w: pods write so much to %s, or it is in so many pieces on the disk, that a copy would stop them for longer than %s; "+
		"it is tried again, and made at once while no pod uses the volume", volume.ErrBusy, from.Name, c.frozen)
}

// pieces shares the blocks of a file.
type pieces struct {
	sharing
	to, from *os.File
	size     int64
	// whole: it is all shared at once, because nothing uses it, or the file system does not say what has changed.
	whole bool
}

// before shares what has changed, while it changes, until not much is left.
func (c *pieces) before(ctx context.Context) error {
	const rounds, few = 5, 10
	for n, last := 0, 0; n < rounds && !c.whole; n++ {
		changed, err := c.pass(ctx, time.Time{})
		if errors.Is(err, unix.EOPNOTSUPP) {
			c.whole = true
			return nil
		}
		if err != nil || changed <= few || n > 0 && changed >= last {
			return err
		}
		last = changed
	}
	return nil
}

// pass shares each piece that has changed, and returns how many. The error is errFrozenLong if it is not over by a time.
func (c *pieces) pass(ctx context.Context, until time.Time) (changed int, err error) {
	for at := int64(0); at < c.size; {
		same, upTo, err := c.look(at)
		if err != nil {
			return changed, err
		}
		if !until.IsZero() && time.Now().After(until) {
			return changed, errFrozenLong
		}
		if !same {
			if err := kernel.CloneRange(int(c.to.Fd()), int(c.from.Fd()), at, upTo-at); err != nil {
				return changed, err
			}
			changed++
		}
		if err := ctx.Err(); err != nil {
			return changed, err
		}
		at = upTo
	}
	return changed, nil
}

// look reports whether both files have the same blocks from an offset up to another one.
func (c *pieces) look(at int64) (same bool, upTo int64, err error) {
	want, upTo, err := kernel.Extents(int(c.from.Fd()), at, c.size, c.extents)
	if err != nil {
		return false, 0, err
	}
	has, end, err := kernel.Extents(int(c.to.Fd()), at, upTo, c.extents)
	unknown := func(e kernel.Extent) bool { return e.Disk < 0 }
	return end == upTo && slices.Equal(want, has) && !slices.ContainsFunc(want, unknown), upTo, err
}
