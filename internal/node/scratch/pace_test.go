package scratch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/roottest/hostile"
)

// fill makes files and directories, each directory with a file, and returns how many of all there
// are.
func fill(t *testing.T, dir string, files, directories int) int {
	t.Helper()
	for i := range files {
		must(t, os.WriteFile(filepath.Join(dir, "f"+strconv.Itoa(i)), nil, 0o600))
	}
	for i := range directories {
		below := filepath.Join(dir, "d"+strconv.Itoa(i))
		must(t, os.Mkdir(below, 0o700))
		must(t, os.WriteFile(below+"/file", nil, 0o600))
	}
	return files + 2*directories
}

func TestPaceCounts(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		dir := create(t, d, here)
		// With the data directory itself.
		want := fill(t, dir, 1000, 300) + 1
		hostile.Deep(t, dir, 2*maxDepth, "deep")
		want += 4 * maxDepth
		name, _ := discard(t, d, here)
		var calls []int
		must(t, d.Erase(context.Background(), name, func(_ context.Context, removed int) error {
			calls = append(calls, removed)
			return nil
		}))
		trashIsEmpty(t, d)
		total := 0
		for _, removed := range calls {
			total += removed
			if removed > paceEvery {
				t.Errorf("%d removed between two calls", removed)
			}
		}
		if calls[0] != 0 || total != want {
			t.Errorf("calls %v, in sum %d of %d", calls, total, want)
		}
	})
}

func TestPaceStops(t *testing.T) {
	d := open(t)
	want := fill(t, create(t, d, here), 1000, 100) + 1
	name, _ := discard(t, d, here)
	enough := errors.New("enough")
	total, calls := 0, 0
	// Each time one batch is removed and the next refused.
	for range want {
		first := true
		err := d.Erase(context.Background(), name, func(_ context.Context, removed int) error {
			calls++
			total += removed
			if first {
				first = false
				return nil
			}
			return enough
		})
		if err == nil {
			break
		}
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
	}
	trashIsEmpty(t, d)
	if total != want || calls < want/paceEvery {
		t.Errorf("%d removed of %d in %d calls", total, want, calls)
	}
}

// TestPaceAtTheEnd: the call that tells of the rest undoes nothing.
func TestPaceAtTheEnd(t *testing.T) {
	d := open(t)
	want := fill(t, create(t, d, here), 10, 0) + 1
	name, _ := discard(t, d, here)
	must(t, d.Erase(context.Background(), name, func(_ context.Context, removed int) error {
		if removed == 0 {
			return nil
		}
		if removed != want {
			t.Errorf("%d removed of %d", removed, want)
		}
		return errors.New("too late")
	}))
	trashIsEmpty(t, d)
}

// TestPaceAfterCancel: what was removed is told also when the rest stays.
func TestPaceAfterCancel(t *testing.T) {
	d := open(t)
	want := fill(t, create(t, d, here), 1000, 0) + 1
	name, _ := discard(t, d, here)
	total := 0
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	count := func(_ context.Context, removed int) error {
		if total += removed; removed > 0 {
			cancel()
		}
		return nil
	}
	if err := d.Erase(ctx, name, count); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
	must(t, d.Erase(context.Background(), name, count))
	if total != want {
		t.Errorf("%d removed of %d", total, want)
	}
}

// duringErase calls meanwhile when some files have been removed.
func duringErase(d *Dir, name string, meanwhile func()) error {
	done := false
	return d.Erase(context.Background(), name, func(_ context.Context, removed int) error {
		if removed > 0 && !done {
			done = true
			meanwhile()
		}
		return nil
	})
}

// TestMountDuringErase has somebody mount something while a tree is erased: in a directory that is
// still to come, on a file, and over the one that is being emptied.
func TestMountDuringErase(t *testing.T) {
	roottest.Need(t)
	for _, place := range []string{"later/mnt", "now"} {
		t.Run(strings.ReplaceAll(place, "/", " "), func(t *testing.T) {
			eachKernel(t, func(t *testing.T, d *Dir) {
				outside := filepath.Join(d.root, "..", "outside")
				must(t, os.MkdirAll(outside+"/sub", 0o700))
				must(t, os.WriteFile(outside+"/sub/file", nil, 0o600))
				roottest.UnmountBelowAtEnd(t, d.root)
				dir := create(t, d, here)
				must(t, os.MkdirAll(dir+"/now/later/mnt", 0o700))
				fill(t, dir+"/now", 2*paceEvery, 0)
				if place == "later/mnt" {
					place = "now/later/mnt"
				}
				name, path := discard(t, d, here)
				err := duringErase(d, name, func() {
					must(t, unix.Mount(outside, filepath.Join(path, place), "", unix.MS_BIND, ""))
				})
				if !errors.Is(err, ErrMountInside) || !exists(outside+"/sub/file") {
					t.Errorf("Erase: %v", err)
				}
				must(t, unix.Unmount(filepath.Join(path, place), 0))
				erase(t, d, name)
			})
		})
	}
}

// TestMoveDuringErase has somebody move the directory that is being emptied, and those above it, to
// other names.
func TestMoveDuringErase(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		dir := create(t, d, here)
		must(t, errors.Join(os.Mkdir(dir+"/a", 0o700), os.Mkdir(dir+"/other", 0o700)))
		if inodeOf(t, dir+"/other") < inodeOf(t, dir+"/a") {
			// That would be erased first, and nothing could be moved into it.
			must(t, errors.Join(os.Rename(dir+"/a", dir+"/b"), os.Rename(dir+"/other", dir+"/a"), os.Rename(dir+"/b", dir+"/other")))
		}
		must(t, os.Mkdir(dir+"/a/b", 0o700))
		fill(t, dir+"/a/b", 2*paceEvery, 3)
		name, path := discard(t, d, here)
		must(t, duringErase(d, name, func() {
			must(t, os.Rename(path+"/a/b", path+"/other/b"))
			must(t, os.Rename(path+"/a", path+"/other/b/a"))
		}))
		trashIsEmpty(t, d)
	})
}

func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	return st.Ino
}

// TestMovesWithoutEnd has two directories moved about all the time.
func TestMovesWithoutEnd(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		dir := create(t, d, here)
		var at [2]int
		for i := range at {
			sub := fmt.Sprintf("%s/%d", dir, i)
			must(t, os.Mkdir(sub, 0o700))
			fill(t, sub, 100, 20)
			fd, err := unix.Open(sub, beneath.DirectoryFlags, 0)
			must(t, err)
			defer unix.Close(fd)
			at[i] = fd
		}
		must(t, unix.Mkdirat(at[0], "mover", 0o700))
		name, _ := discard(t, d, here)
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					// It fails as soon as one of them is gone.
					_ = unix.Renameat(at[i%2], "mover", at[1-i%2], "mover")
				}
			}
		}()
		err := d.Erase(context.Background(), name, nil)
		close(stop)
		<-done
		if err != nil && !errors.Is(err, unix.ENOTEMPTY) {
			t.Errorf("Erase: %v", err)
		}
		erase(t, d, name)
	})
}
