package scratch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestCreate(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	eachKernel(t, func(t *testing.T, d *Dir) {
		if ok, err := d.Exists(here); ok || err != nil {
			t.Errorf("exists before: %v, %v", ok, err)
		}
		path := create(t, d, here)
		if ok, err := d.Exists(here); !ok || err != nil {
			t.Errorf("exists after: %v, %v", ok, err)
		}
		for dir, want := range map[string]fs.FileMode{path: 0o777, filepath.Dir(path): 0o750} {
			if info, err := os.Stat(dir); err != nil || info.Mode() != want|fs.ModeDir {
				t.Errorf("%s: %v, %v", dir, info.Mode(), err)
			}
		}
		must(t, os.WriteFile(path+"/file", nil, 0o600))
		must(t, os.Chmod(path, 0o701))
		if created, err := d.Create(here); created || err != nil {
			t.Errorf("second Create: %v, %v", created, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o701 || !exists(path+"/file") {
			t.Errorf("second Create changed what was there: %v, %v", info, err)
		}
	})
}

// TestCreateAs: the mode is the one that is asked for, sticky bit included, and also where a crash came
// between mkdir and chmod. It never makes files run as another user.
func TestCreateAs(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	for mode, want := range map[uint32]fs.FileMode{0: 0o777, 0o700: 0o700, 0o1777: 0o777 | fs.ModeSticky, 0o1400: 0o400 | fs.ModeSticky} {
		for _, crashed := range []bool{false, true} {
			d := open(t)
			path := d.Path(here)
			if crashed {
				must(t, os.Mkdir(filepath.Dir(path), 0o750))
				must(t, unix.Mkdir(path, unfinishedMode))
			}
			if created, err := d.CreateAs(here, Making{Mode: mode}); !created || err != nil {
				t.Fatal(created, err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode() != want|fs.ModeDir {
				t.Errorf("mode %#o became %v (%v), after a crash: %t", mode, info.Mode(), err, crashed)
			}
		}
	}
	d := open(t)
	for _, mode := range []uint32{0o4777, 0o2777, 0o10777} {
		if _, err := d.CreateAs(here, Making{Mode: mode}); err == nil || exists(d.Path(here)) {
			t.Errorf("mode %#o: %v", mode, err)
		}
	}
}

// TestCreateFinishes checks what a crash between mkdir and chmod leaves.
func TestCreateFinishes(t *testing.T) {
	for name, podMode := range map[string]fs.FileMode{"plain": 0o750, "setgid": 0o750 | fs.ModeSetgid} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			path := d.Path(here)
			must(t, os.Mkdir(filepath.Dir(path), 0o750))
			must(t, os.Chmod(filepath.Dir(path), podMode))
			must(t, unix.Mkdir(path, unfinishedMode))
			create(t, d, here)
			if info, err := os.Stat(path); err != nil || info.Mode() != 0o777|fs.ModeDir {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}

// TestNotOurs has everything but a directory in the place of a data directory, and of its pod's
// directory.
func TestNotOurs(t *testing.T) {
	rows := []struct {
		name  string
		mount bool
		make  func(t *testing.T, place, outside string)
	}{
		{name: "symbolic link", make: func(t *testing.T, place, outside string) { must(t, os.Symlink(outside, place)) }},
		{name: "dangling link", make: func(t *testing.T, place, _ string) { must(t, os.Symlink("none", place)) }},
		{name: "file", make: func(t *testing.T, place, _ string) { must(t, os.WriteFile(place, nil, 0o600)) }},
		{name: "FIFO", make: func(t *testing.T, place, _ string) { must(t, unix.Mkfifo(place, 0o600)) }},
		{name: "mount", mount: true, make: func(t *testing.T, place, outside string) {
			must(t, os.Mkdir(place, 0o755))
			roottest.Bind(t, outside, place)
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if row.mount {
				roottest.Need(t)
			}
			for _, level := range []string{"data directory", "pod's directory"} {
				t.Run(level, func(t *testing.T) {
					eachKernel(t, func(t *testing.T, d *Dir) {
						outside := t.TempDir()
						must(t, os.MkdirAll(filepath.Join(outside, string(vol)), 0o755))
						place := d.Path(here)
						if level == "pod's directory" {
							place = filepath.Dir(place)
						} else {
							must(t, os.Mkdir(filepath.Dir(place), 0o750))
						}
						row.make(t, place, outside)
						before, err := os.Lstat(place)
						must(t, err)

						_, createErr := d.Create(here)
						_, existsErr := d.Exists(here)
						_, discardErr := d.Discard(here)
						_, _, usageErr := d.Usage(context.Background(), here, nil)
						for call, err := range map[string]error{
							"Create": createErr, "Exists": existsErr, "Discard": discardErr, "Usage": usageErr,
							"RemoveEmpty": d.RemoveEmpty(here),
						} {
							if !errors.Is(err, ErrNotOurs) {
								t.Errorf("%s: %v", call, err)
							}
						}
						after, err := os.Lstat(place)
						if err != nil || after.Mode() != before.Mode() || !exists(filepath.Join(outside, string(vol))) {
							t.Errorf("something was changed: %v, %v", after, err)
						}
						trashIsEmpty(t, d)
					})
				})
			}
		})
	}
}

func TestRemoveEmpty(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		must(t, d.RemoveEmpty(here))
		path := create(t, d, here)
		create(t, d, at(pod, "other"))
		must(t, os.WriteFile(path+"/file", nil, 0o600))
		if err := d.RemoveEmpty(here); !errors.Is(err, unix.ENOTEMPTY) || !exists(path+"/file") {
			t.Errorf("with data: %v", err)
		}
		must(t, os.Remove(path+"/file"))
		must(t, d.RemoveEmpty(here))
		must(t, d.RemoveEmpty(here))
		if exists(path) || !exists(d.Path(at(pod, "other"))) {
			t.Error("not exactly the one was removed")
		}
		must(t, d.RemoveEmpty(at(pod, "other")))
		if exists(filepath.Dir(path)) {
			t.Error("the pod's directory is still there")
		}
	})
}

func TestDiscard(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		if _, err := d.Discard(here); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of nothing: %v", err)
		}
		must(t, os.WriteFile(create(t, d, here)+"/file", []byte("data"), 0o600))
		create(t, d, at(pod, "other"))
		name, path := discard(t, d, here)
		if data, err := os.ReadFile(path + "/file"); err != nil || string(data) != "data" {
			t.Errorf("in the trash: %q, %v", data, err)
		}
		if _, err := d.Discard(here); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("again: %v", err)
		}
		if !exists(d.Path(at(pod, "other"))) {
			t.Error("another volume of the pod is gone")
		}
		if entries, _, err := d.TrashPage(0, math.MaxInt); err != nil || len(entries) != 1 || entries[0] != name {
			t.Errorf("trash: %q, %v", entries, err)
		}
		erase(t, d, name)
	})
}

// TestCreateAndDiscardTogether has the volumes of one pod come and go at the same time, so that
// each takes the pod's directory from under the others. TestDiscardOfWhatIsGone: somebody may have
// removed a data directory by hand.
func TestDiscardOfWhatIsGone(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		must(t, os.Remove(create(t, d, here)))
		if _, err := d.Discard(here); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of nothing: %v", err)
		}
		if exists(filepath.Dir(d.Path(here))) {
			t.Error("the pod's empty directory is still there")
		}
	})
}

func TestCreateAndDiscardTogether(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		const volumes, rounds = 8, 150
		var all sync.WaitGroup
		for i := range volumes {
			all.Go(func() {
				id := volume.ID(fmt.Sprintf("csi-%d", i))
				for round := range rounds {
					if created, err := d.Create(at(pod, id)); !created || err != nil {
						t.Errorf("Create: %v, %v", created, err)
						return
					}
					if ok, err := d.Exists(at(pod, id)); !ok || err != nil {
						t.Errorf("Exists: %v, %v", ok, err)
					}
					var err error
					if round%2 == 0 {
						err = d.RemoveEmpty(at(pod, id))
					} else {
						_, err = d.Discard(at(pod, id))
					}
					if err != nil {
						t.Errorf("take away: %v", err)
						return
					}
				}
			})
		}
		all.Wait()
		entries, _, err := d.TrashPage(0, math.MaxInt)
		if err != nil || len(entries) != volumes*rounds/2 {
			t.Errorf("%d in the trash, %v", len(entries), err)
		}
		for _, name := range entries {
			must(t, d.Erase(context.Background(), name, nil))
		}
		if exists(filepath.Join(d.root, string(pod))) {
			t.Error("the pod's directory is still there")
		}
	})
}

// TestFull runs out of inodes and of bytes.
func TestFull(t *testing.T) {
	roottest.Need(t)
	root := t.TempDir()
	roottest.Mount(t, "katbox-test", root, "tmpfs", 0, "size=64k,nr_inodes=6")
	d, err := Open(root)
	must(t, err)
	defer d.Close()
	// Inodes: the root, the trash, and two for each volume.
	create(t, d, at("a", "1"))
	create(t, d, at("b", "1"))
	_, err = d.Create(at("c", "1"))
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("without inodes: %v", err)
	}
	if exists(root + "/c") {
		t.Error("the pod's directory was left behind")
	}
	if space, err := d.Space(); err != nil || space.Free.Inodes != 0 || space.Total != (volume.Size{Bytes: 64 << 10, Inodes: 6}) {
		t.Errorf("space %+v, %v", space, err)
	}
	// One inode is enough for a pod's directory, but not for the data directory.
	must(t, d.RemoveEmpty(at("b", "1")))
	must(t, os.WriteFile(d.Path(at("a", "1"))+"/file", []byte(strings.Repeat("x", 1000)), 0o600))
	if _, err := d.Create(at("c", "1")); !errors.Is(err, unix.ENOSPC) || exists(root+"/c") {
		t.Errorf("with one inode: %v", err)
	}
	name, _ := discard(t, d, at("a", "1"))
	erase(t, d, name)
	create(t, d, at("c", "1"))
}
