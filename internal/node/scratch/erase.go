package scratch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
)

// Pace is called by Erase before each batch of removals, with the number of files and directories
// removed since the last call, and once more at the end, when its result is ignored. It may wait:
// the erasure holds nothing but open handles meanwhile. An error ends the erasure, which returns
// it. Usage calls Pace after each batch of names, with their number.
type Pace func(ctx context.Context, done int) error

// Erase deletes the entry name of the trash with all that is in it. An entry that is gone already
// is no error. A nil pace means no pauses.
//
// If something cannot be deleted, the rest is deleted nevertheless; the error names the first few.
// Erase checks ctx before each file; when that is done, the rest stays for the next call.
func (d *Dir) Erase(ctx context.Context, name string, pace Pace) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("erase %q: not the name of an entry of the trash", name)
	}
	if err := d.erase(ctx, d.trashFD(), name, pace); err != nil {
		return fmt.Errorf("erase %s: %w", filepath.Join(d.root, trashName, name), err)
	}
	return nil
}

// EraseInPlace deletes a volume's data directory where it is, and the pod's directory if that is
// empty then. It is for what [Dir.Discard] cannot move ([ErrTrashRefuses]).
//
// Until it is done the volume is neither wholly there nor wholly gone: the caller has recorded
// durably that the volume is being deleted, and calls again after an error or a crash. Without an
// error the deletion is durable. A missing data directory is no error. ErrNotOurs is as in Discard,
// all else as in [Dir.Erase].
func (d *Dir) EraseInPlace(ctx context.Context, p volume.Place, pace Pace) error {
	podFD, err := d.openParent(p)
	if errors.Is(err, fs.ErrNotExist) {
		d.removePod(string(p.Pod))
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
	e := &erasure{dir: d, pace: pace, deep: deep{next: -1}}
	e.remove(ctx, at, name)
	if e.removed > 0 {
		_ = pace(ctx, e.removed)
	}
	if e.stopped != nil {
		e.faults.add(e.stopped)
	}
	return e.faults.err()
}

// mostFaults bounds how many errors of one operation are reported: a million files that cannot be
// removed have the same few causes.
const mostFaults = 8

// faults collects the errors of an operation that continues after them.
type faults struct {
	first []error
	count int
	mount bool
}

// add keeps err if it is among the first, or the first ErrMountInside.
func (f *faults) add(err error) {
	f.count++
	firstMount := !f.mount && errors.Is(err, ErrMountInside)
	if len(f.first) < mostFaults || firstMount {
		f.first = append(f.first, err)
	}
	f.mount = f.mount || firstMount
}

// err returns what was added as one error, or nil.
func (f *faults) err() error {
	err := errors.Join(f.first...)
	if more := f.count - len(f.first); more > 0 {
		err = fmt.Errorf("%w\nand %d more", err, more)
	}
	return err
}
