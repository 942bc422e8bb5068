package scratch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/volume"
)

// Pace is called by Erase before each batch of removals, with the number of
// files and directories removed since the last call. It may wait: no more than
// open handles is held meanwhile. An error ends the erasure and is returned.
//
// What was removed since the last batch is told by one more call at the end,
// also after an error; what that call returns changes nothing.
//
// Usage calls it after each batch of names, with the number of those. An error
// ends that too.
type Pace func(ctx context.Context, done int) error

// Erase deletes the entry name of the trash with all that is in it. An entry
// that is gone already is no error. A nil pace means no pauses.
//
// What cannot be deleted does not keep the rest from being deleted; the error
// tells of the first few. It wraps [ErrMountInside] when something is mounted
// inside. ctx is looked at before each file; when it is done, the rest stays
// for the next time.
func (d *Dir) Erase(ctx context.Context, name string, pace Pace) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("erase %q: not the name of an entry of the trash", name)
	}
	if err := d.erase(ctx, d.trashFD(), name, pace); err != nil {
		return fmt.Errorf("erase %s: %w", filepath.Join(d.root, trashName, name), err)
	}
	return nil
}

// EraseInPlace deletes a volume's data directory where it is, and the pod's
// directory if nothing else is in there. It is for what [Dir.Discard] cannot move
// ([ErrTrashRefuses]): removing needs no room and no other directory.
//
// Until it is done the volume is neither wholly there nor wholly gone: the
// caller has noted durably that it is being deleted, and calls again after an
// error or a crash. What it returns nil for is durable. That there is no data
// directory is no error. ErrNotOurs is
// as in Discard, all else as in [Dir.Erase].
func (d *Dir) EraseInPlace(ctx context.Context, p volume.Place, pace Pace) error {
	// Opened to see what it is.
	fd, err := d.openData(p)
	if errors.Is(err, fs.ErrNotExist) {
		d.removePod(string(p.Pod))
		return d.SyncGone(p.Pod)
	}
	if err != nil {
		return err
	}
	unix.Close(fd)
	podFD, err := d.openPod(p)
	if errors.Is(err, fs.ErrNotExist) {
		return d.SyncGone(p.Pod)
	}
	if err != nil {
		return err
	}
	defer unix.Close(podFD)
	if err := d.erase(ctx, podFD, string(p.ID), pace); err != nil {
		return fmt.Errorf("erase %s: %w", d.Path(p), err)
	}
	d.removePod(string(p.Pod))
	return d.SyncGone(p.Pod)
}

// erase deletes name in the directory at.
func (d *Dir) erase(ctx context.Context, at int, name string, pace Pace) error {
	if pace == nil {
		pace = func(context.Context, int) error { return nil }
	}
	e := &eraser{dir: d, pace: pace, deep: deep{next: -1}}
	e.remove(ctx, at, name)
	if e.removed > 0 {
		_ = pace(ctx, e.removed)
	}
	if e.stopped != nil {
		e.faults.add(e.stopped)
	}
	return e.faults.err()
}
