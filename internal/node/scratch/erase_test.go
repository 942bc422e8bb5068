package scratch

import (
	"context"
	"errors"
	"fmt"
	"math"
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

func TestEraseShapes(t *testing.T) {
	long := strings.Repeat("n", 255)
	tests := []struct {
		name string
		fill func(t *testing.T, dir string)
	}{
		{name: "empty", fill: func(*testing.T, string) {}},
		{name: "20,000 files", fill: func(t *testing.T, dir string) {
			for i := range 20_000 {
				must(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600))
			}
		}},
		{name: "longest names", fill: func(t *testing.T, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, long), 0o700))
			for i := range 300 {
				must(t, os.WriteFile(filepath.Join(dir, long, fmt.Sprintf("%03d%s", i, long[3:])), nil, 0o600))
			}
		}},
		{name: "3,000 deep", fill: func(t *testing.T, dir string) { hostile.Deep(t, dir, 3000, long[:200]) }},
		{name: "several too deep", fill: func(t *testing.T, dir string) {
			hostile.Deep(t, dir, maxDepth-2, "d")
			bottom := filepath.Join(dir, strings.Repeat("d/", maxDepth-2))
			for i := range 20 {
				must(t, os.MkdirAll(filepath.Join(bottom, strconv.Itoa(i), "x", "y"), 0o700))
			}
		}},
		{name: "special files and odd modes", fill: func(t *testing.T, dir string) {
			must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0))
			must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
			must(t, os.Symlink(".", filepath.Join(dir, "loop")))
			must(t, os.WriteFile(filepath.Join(dir, "new\nline"), nil, 0))
			must(t, os.WriteFile(filepath.Join(dir, "\xff\xfe"), nil, 0o400))
			must(t, os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o700))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eachKernel(t, func(t *testing.T, d *Dir) {
				tt.fill(t, create(t, d, here))
				name, _ := discard(t, d, here)
				// Far fewer than a tree is deep.
				hostile.FewFiles(t, maxDepth+20)
				erase(t, d, name)
				erase(t, d, name)
			})
		})
	}
}

func TestEraseEntryThatIsNoDirectory(t *testing.T) {
	d := open(t)
	outside := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(outside, nil, 0o600))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(d.root, trashName, "link")))
	erase(t, d, "link")
	must(t, os.WriteFile(filepath.Join(d.root, trashName, "file"), nil, 0o600))
	erase(t, d, "file")
	if !exists(outside) {
		t.Error("a link in the trash was followed")
	}
}

func TestEraseDoesNotFollowLinks(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		outside := t.TempDir()
		must(t, os.MkdirAll(outside+"/dir", 0o700))
		must(t, os.WriteFile(outside+"/dir/file", nil, 0o600))
		dir := create(t, d, here)
		for link, to := range map[string]string{
			"dir": outside, "file": outside + "/dir/file", "up": "../../..", "self": dir,
		} {
			must(t, os.Symlink(to, filepath.Join(dir, link)))
		}
		must(t, os.Link(outside+"/dir/file", dir+"/hard"))
		create(t, d, at(pod, "other"))
		name, _ := discard(t, d, here)
		erase(t, d, name)
		if !exists(outside+"/dir/file") || !exists(d.Path(at(pod, "other"))) {
			t.Error("a link was followed")
		}
	})
}

// TestEraseLeavesMounts has directories and files of the same file system mounted inside what is
// erased.
func TestEraseLeavesMounts(t *testing.T) {
	roottest.Need(t)
	deep := strings.Repeat("d/", maxDepth+5)
	tests := []struct {
		name, place string
		file        bool
	}{
		{name: "at the top", place: "mnt"},
		{name: "below directories", place: "a/b/mnt"},
		{name: "file", place: "a/mnt", file: true},
		{name: "too deep to be open", place: deep + "mnt"},
		{name: "far too deep", place: strings.Repeat("d/", 3*maxDepth) + "mnt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eachKernel(t, func(t *testing.T, d *Dir) {
				outside := filepath.Join(d.root, "..", "outside")
				must(t, os.MkdirAll(outside+"/sub", 0o700))
				must(t, os.WriteFile(outside+"/sub/file", []byte("data"), 0o600))
				roottest.UnmountBelowAtEnd(t, d.root)

				dir := create(t, d, here)
				place := filepath.Join(dir, tt.place)
				must(t, os.MkdirAll(filepath.Dir(place), 0o700))
				source := outside
				if tt.file {
					source = outside + "/sub/file"
					must(t, os.WriteFile(place, nil, 0o600))
				} else {
					must(t, os.Mkdir(place, 0o700))
				}
				must(t, unix.Mount(source, place, "", unix.MS_BIND, ""))
				for i := range 50 {
					must(t, os.MkdirAll(fmt.Sprintf("%s/%d/x", dir, i), 0o700))
					must(t, os.WriteFile(fmt.Sprintf("%s/f%d", filepath.Dir(place), i), nil, 0o600))
				}
				// They are erased, though what is beside them cannot be.
				for up := filepath.Dir(place); len(up) >= len(dir); up = filepath.Dir(up) {
					must(t, os.MkdirAll(up+strings.Repeat("/x", 10), 0o700))
				}
				must(t, os.MkdirAll(filepath.Dir(place)+strings.Repeat("/x", 2*maxDepth), 0o700))
				must(t, os.MkdirAll(dir+strings.Repeat("/x", 2*maxDepth), 0o700))

				name, _ := discard(t, d, here)
				err := d.Erase(context.Background(), name, nil)
				if !errors.Is(err, ErrMountInside) || !strings.Contains(err.Error(), "mnt") {
					t.Errorf("Erase: %v", err)
				}
				if data, err := os.ReadFile(outside + "/sub/file"); err != nil || string(data) != "data" {
					t.Errorf("what was mounted: %q, %v", data, err)
				}
				// Only the mount and what leads to it may be left.
				left := 0
				must(t, filepath.WalkDir(filepath.Join(d.root, trashName), func(path string, entry os.DirEntry, err error) error {
					must(t, err)
					if entry.Name() == "mnt" {
						left++
						if entry.IsDir() {
							return filepath.SkipDir
						}
						return nil
					}
					if base := entry.Name(); !entry.IsDir() || len(base) < 5 && base != "a" && base != "b" && base != "d" {
						t.Errorf("left: %s", path)
					}
					return nil
				}))
				if left != 1 {
					t.Errorf("%d mount points are left", left)
				}
			})
		})
	}
}

// TestEraseAfterUnmount finishes what a mount had prevented.
func TestEraseAfterUnmount(t *testing.T) {
	d := open(t)
	outside := t.TempDir()
	create(t, d, here)
	name, path := discard(t, d, here)
	must(t, os.Mkdir(path+"/mnt", 0o700))
	t.Run("mounted", func(t *testing.T) {
		roottest.Need(t)
		roottest.Bind(t, outside, path+"/mnt")
		if err := d.Erase(context.Background(), name, nil); !errors.Is(err, ErrMountInside) {
			t.Errorf("Erase: %v", err)
		}
	})
	erase(t, d, name)
}

func TestEraseStops(t *testing.T) {
	d := open(t)
	dir := create(t, d, here)
	for i := range 100 {
		must(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600))
	}
	name, _ := discard(t, d, here)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Erase(ctx, name, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
	if entries, _, err := d.TrashPage(0, math.MaxInt); err != nil || len(entries) != 1 {
		t.Errorf("trash: %q, %v", entries, err)
	}
	erase(t, d, name)
}

// TestEraseWhileWriting has files appear while their directory is erased. Once it is removed,
// nobody can make more.
func TestEraseWhileWriting(t *testing.T) {
	d := open(t)
	dir := create(t, d, here)
	at, err := unix.Open(dir, beneath.DirectoryFlags, 0)
	must(t, err)
	defer unix.Close(at)
	name, _ := discard(t, d, here)
	started, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := range 3000 {
			fd, err := unix.Openat(at, strconv.Itoa(i), unix.O_CREAT|unix.O_WRONLY, 0o600)
			if err != nil {
				return
			}
			unix.Close(fd)
			if i == 100 {
				close(started)
			}
		}
	}()
	<-started
	first := d.Erase(context.Background(), name, nil)
	<-done
	if first != nil && !errors.Is(first, unix.ENOTEMPTY) {
		t.Errorf("Erase: %v", first)
	}
	erase(t, d, name)
}

func TestFaults(t *testing.T) {
	var f faults
	if f.err() != nil {
		t.Error("an error out of nothing")
	}
	for range 20 {
		f.add(unix.EIO)
	}
	f.add(fmt.Errorf("late: %w", ErrMountInside))
	f.add(unix.EACCES)
	err := f.err()
	if !errors.Is(err, unix.EIO) || !errors.Is(err, ErrMountInside) || errors.Is(err, unix.EACCES) {
		t.Errorf("error %v", err)
	}
	if !strings.HasSuffix(err.Error(), "and 13 more") {
		t.Errorf("error %v", err)
	}
}
