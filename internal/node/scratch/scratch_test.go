package scratch

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	pod = volume.PodUID("pod-1")
	vol = volume.ID("csi-1")
)

// here is where most tests work.
var here = at(pod, vol)

func at(pod volume.PodUID, id volume.ID) volume.Place { return volume.Place{Pod: pod, ID: id} }

// eachKernel runs a test as on this kernel and as on an old one, each with an empty working
// directory.
func eachKernel(t *testing.T, test func(t *testing.T, d *Dir)) {
	t.Run("current calls", func(t *testing.T) { test(t, open(t)) })
	t.Run("old calls", func(t *testing.T) {
		d := open(t)
		d.opener.NoOpenat2.Store(true)
		d.noRename2.Store(true)
		test(t, d)
	})
}

func open(t *testing.T) *Dir {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "work"))
}

func openAt(t *testing.T, root string) *Dir {
	t.Helper()
	d, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, d *Dir, p volume.Place) string {
	t.Helper()
	created, err := d.Create(p)
	if err != nil || !created {
		t.Fatalf("Create: %v, %v", created, err)
	}
	return d.Path(p)
}

func discard(t *testing.T, d *Dir, p volume.Place) (name, path string) {
	t.Helper()
	name, err := d.Discard(p)
	must(t, err)
	return name, filepath.Join(d.root, trashName, name)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// trashIsEmpty checks that Erase left nothing.
func trashIsEmpty(t *testing.T, d *Dir) {
	t.Helper()
	entries, _, err := d.TrashPage(0, math.MaxInt)
	must(t, err)
	if len(entries) != 0 {
		t.Errorf("in the trash: %q", entries)
	}
}

func erase(t *testing.T, d *Dir, name string) {
	t.Helper()
	must(t, d.Erase(context.Background(), name, nil))
	trashIsEmpty(t, d)
}

func TestOpen(t *testing.T) {
	base := t.TempDir()
	must(t, os.WriteFile(base+"/file", nil, 0o600))
	must(t, os.Mkdir(base+"/real", 0o755))
	must(t, os.Symlink("real", base+"/link"))
	must(t, os.Mkdir(base+"/odd", 0o755))
	must(t, os.Symlink(base+"/real", base+"/odd/.trash"))
	tests := []struct {
		name, root string
		refused    bool
	}{
		{name: "missing, with parents", root: base + "/a/b/c"},
		{name: "there already", root: base + "/a/b/c"},
		{name: "through a link", root: base + "/link"},
		{name: "relative", root: "work", refused: true},
		{name: "file", root: base + "/file", refused: true},
		{name: "trash is a link", root: base + "/odd", refused: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := Open(tt.root)
			if tt.refused {
				if err == nil {
					t.Error("opened")
				}
				return
			}
			must(t, err)
			trash, err := os.Lstat(tt.root + "/.trash")
			if err != nil || !trash.IsDir() || trash.Mode().Perm() != 0o700 {
				t.Errorf("trash: %v, %v", trash, err)
			}
			must(t, d.Close())
			if _, err := d.Create(here); err == nil {
				t.Error("works after Close")
			}
		})
	}
}

// TestNames checks that no operation takes a name that could lead elsewhere.
func TestNames(t *testing.T) {
	d := open(t)
	outside := filepath.Join(filepath.Dir(d.root), "outside")
	must(t, os.MkdirAll(outside+"/in", 0o755))
	for _, names := range []struct {
		pod volume.PodUID
		id  volume.ID
	}{
		{"..", "outside"}, {"../outside", "in"}, {pod, ".."}, {pod, "../../outside"}, {"", vol}, {pod, ""},
		{".trash", "x"}, {"a/b", vol}, {pod, "a\x00b"},
	} {
		ctx := context.Background()
		_, createErr := d.Create(at(names.pod, names.id))
		_, existsErr := d.Exists(at(names.pod, names.id))
		_, discardErr := d.Discard(at(names.pod, names.id))
		_, _, usageErr := d.Usage(ctx, at(names.pod, names.id), nil)
		for call, err := range map[string]error{
			"Create": createErr, "Exists": existsErr, "Discard": discardErr, "Usage": usageErr,
			"RemoveEmpty": d.RemoveEmpty(at(names.pod, names.id)),
		} {
			if !errors.Is(err, volume.ErrInvalid) {
				t.Errorf("%s(%q, %q): %v", call, names.pod, names.id, err)
			}
		}
		if path := d.Path(at(names.pod, names.id)); path != "" {
			t.Errorf("Path(%q, %q) is %q", names.pod, names.id, path)
		}
	}
	for _, name := range []string{"", ".", "..", "../work", "a/b", "../../outside"} {
		if err := d.Erase(context.Background(), name, nil); err == nil {
			t.Errorf("Erase(%q) is no error", name)
		}
	}
	if !exists(outside + "/in") {
		t.Error("something was removed outside")
	}
}

func TestSpace(t *testing.T) {
	d := open(t)
	var before, st unix.Statfs_t
	var got volume.Space
	// XFS makes inodes out of free space, so their number changes with what others write.
	for again := true; again; again = before.Files != st.Files {
		var err error
		must(t, unix.Statfs(d.root, &before))
		got, err = d.Space()
		must(t, err)
		must(t, unix.Statfs(d.root, &st))
	}
	if uint64(got.Total.Bytes) != st.Blocks*uint64(st.Bsize) || uint64(got.Total.Inodes) != st.Files {
		t.Errorf("got %+v, statfs says %+v", got, st)
	}
	if got.Free.Bytes == 0 || got.Free.Bytes > got.Total.Bytes || got.Free.Inodes > got.Total.Inodes {
		t.Errorf("free space makes no sense: %+v", got)
	}
}

func TestWalk(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		want := map[volume.Place]bool{at("a", "1"): true, at("a", "2"): true, at("b", "1"): true}
		for p := range want {
			create(t, d, p)
		}
		_, discarded := discard(t, d, at("b", "1"))
		create(t, d, at("b", "1"))
		must(t, os.WriteFile(d.root+"/records.db", nil, 0o600))
		must(t, os.WriteFile(d.root+"/a/file", nil, 0o600))
		must(t, os.Symlink("1", d.root+"/a/link"))
		must(t, os.Symlink("a", d.root+"/linked"))
		must(t, os.Mkdir(d.root+"/a/.hidden", 0o700))
		must(t, os.MkdirAll(d.root+"/.state/x", 0o700))
		must(t, os.MkdirAll(d.root+"/lost+found/x", 0o700))
		must(t, os.Mkdir(d.root+"/empty", 0o700))

		got := map[volume.Place]bool{}
		must(t, d.Walk(context.Background(), func(p volume.Place) error {
			if got[p] {
				t.Errorf("%s twice", p)
			}
			got[p] = true
			return nil
		}))
		if len(got) != len(want) {
			t.Errorf("got %v", got)
		}
		for f := range want {
			if !got[f] {
				t.Errorf("%v is missing", f)
			}
		}
		if !exists(discarded) {
			t.Error("the trash was touched")
		}

		stop := errors.New("stop")
		calls := 0
		err := d.Walk(context.Background(), func(volume.Place) error { calls++; return stop })
		if !errors.Is(err, stop) || calls != 1 {
			t.Errorf("after an error: %v, %d calls", err, calls)
		}
		ctx, cancel := context.WithCancel(context.Background())
		err = d.Walk(ctx, func(volume.Place) error { cancel(); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after cancel: %v", err)
		}
	})
}

// TestWalkRemovesEmptyPods: a power cut may leave a pod's directory without the volume's, and without a record.
func TestWalkRemovesEmptyPods(t *testing.T) {
	d := open(t)
	const left, other = volume.PodUID("00000000-0000-4000-8000-00000000dead"), volume.PodUID("00000000-0000-4000-8000-00000000beef")
	create(t, d, at(other, "v"))
	must(t, os.Mkdir(d.root+"/"+string(left), podMode))
	for _, foreign := range []string{"photos", "lost+found"} {
		must(t, os.Mkdir(d.root+"/"+foreign, 0o755))
	}
	must(t, d.Walk(t.Context(), func(volume.Place) error { return nil }))
	for name, want := range map[string]bool{string(left): false, string(other) + "/v": true, "photos": true, "lost+found": true} {
		if got := exists(d.root + "/" + name); got != want {
			t.Errorf("%s is there: %t, want %t", name, got, want)
		}
	}
	create(t, d, at(left, "v")) // it is made anew
}

// TestWalkWhileDiscarding does what eviction does.
func TestWalkWhileDiscarding(t *testing.T) {
	d := open(t)
	const count = 2000
	for i := range count {
		create(t, d, at(pod, volume.ID("csi-"+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676)))))
	}
	must(t, d.Walk(context.Background(), func(p volume.Place) error {
		_, err := d.Discard(p)
		return err
	}))
	entries, _, err := d.TrashPage(0, math.MaxInt)
	if err != nil || len(entries) != count {
		t.Errorf("%d in the trash, %v", len(entries), err)
	}
	if exists(filepath.Join(d.root, string(pod))) {
		t.Error("the pod's directory is still there")
	}
}

// settle has all that was written or given back count.
func settle(t *testing.T, d *Dir) {
	t.Helper()
	d.settleXFS()
	must(t, kernel.Syncfs(d.fd()))
}

// TestTrashThatWasRemoved is made again; nothing is taken for deleted that is not.
func TestTrashThatWasRemoved(t *testing.T) {
	d := open(t)
	for range 2 {
		path := create(t, d, here)
		must(t, os.RemoveAll(filepath.Join(d.root, trashName)))
		name, inTrash := discard(t, d, here)
		if exists(path) || !exists(inTrash) {
			t.Errorf("%s is there: %t, %s: %t", path, exists(path), inTrash, exists(inTrash))
		}
		must(t, d.Erase(t.Context(), name, nil))
		trashIsEmpty(t, d)
	}
}
