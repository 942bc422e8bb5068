package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// eachFailure lets the first change to the disk fail that act makes, then the second, and so on, each in
// a new working directory, until act makes no such change. after looks at what is left then.
func eachFailure(t *testing.T, prepare func(*Dir), act func(*Dir) error, after func(d *Dir, call string, err error)) {
	t.Helper()
	for n := 0; ; n++ {
		d := open(t)
		prepare(d)
		failed, changes := "", 0
		armed := true
		kernel.Inject(t, func(call, _ string) error {
			if !armed {
				return nil
			}
			changes++
			if changes-1 != n {
				return nil
			}
			failed = call
			return unix.EIO
		})
		before := descriptors(t)
		err := act(d)
		armed = false
		if failed == "" {
			must(t, err)
			if n == 0 {
				t.Error("nothing was changed")
			}
			return
		}
		if now := descriptors(t); now != before {
			t.Errorf("after a failed %s %d descriptors are open, and %d were before", failed, now, before)
		}
		after(d, failed, err)
	}
}

// pods are the directories in the working directory that are no part of Katbox.
func pods(t *testing.T, d *Dir) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(d.root)
	must(t, err)
	for _, e := range entries {
		if e.Name() != trashName {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestCreateThatFails leaves nothing, and can be repeated.
func TestCreateThatFails(t *testing.T) {
	eachFailure(t, func(*Dir) {}, func(d *Dir) error {
		_, err := d.Create(here)
		return err
	}, func(d *Dir, call string, err error) {
		if !errors.Is(err, unix.EIO) {
			t.Errorf("%s failed, and Create: %v", call, err)
		}
		if left := pods(t, d); len(left) > 0 {
			t.Errorf("%s failed, and %q is left", call, left)
		}
		if created, err := d.Create(here); err != nil || !created {
			t.Errorf("after a failed %s: created %t, %v", call, created, err)
		}
	})
}

// TestDiscardThatFails leaves the volume wholly there or wholly in the trash, and can be repeated.
func TestDiscardThatFails(t *testing.T) {
	eachFailure(t, func(d *Dir) {
		must(t, os.WriteFile(filepath.Join(create(t, d, here), "file"), nil, 0o600))
	}, func(d *Dir) error {
		_, err := d.Discard(here)
		return err
	}, func(d *Dir, call string, err error) {
		there := exists(filepath.Join(d.Path(here), "file"))
		trash, globErr := filepath.Glob(filepath.Join(d.root, trashName, "*", "file"))
		must(t, globErr)
		if there == (len(trash) == 1) {
			t.Errorf("%s failed: it is there %t, and in the trash are %q", call, there, trash)
		}
		if there && err == nil {
			t.Errorf("%s failed, the volume is there, and Discard says that it is not", call)
		}
		if _, err := d.Discard(here); there && err != nil || !there && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after a failed %s: %v", call, err)
		}
	})
}

// TestEraseThatFails says so while anything is left, and can be repeated.
func TestEraseThatFails(t *testing.T) {
	var name string
	eachFailure(t, func(d *Dir) {
		dir := create(t, d, here)
		must(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "a", "file"), nil, 0o600))
		name, _ = discard(t, d, here)
	}, func(d *Dir) error { return d.Erase(t.Context(), name, nil) }, func(d *Dir, call string, err error) {
		if left := exists(filepath.Join(d.root, trashName, name)); left != (err != nil) {
			t.Errorf("%s failed: left %t, %v", call, left, err)
		}
		must(t, d.Erase(t.Context(), name, nil))
		trashIsEmpty(t, d)
	})
}
