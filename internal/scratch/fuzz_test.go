package scratch

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/volume"
)

// surroundings makes a working directory with a volume, an entry of the trash
// and files around them, and returns all that is there but in the trash.
func surroundings(t *testing.T) (d *Dir, entry string, tree func() []string) {
	t.Helper()
	base := t.TempDir()
	d, err := Open(filepath.Join(base, "work"))
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	create(t, d, pod, "other")
	create(t, d, pod, vol)
	entry, _ = discard(t, d, pod, vol)
	for _, file := range []string{"canary", "work/canary", "work/pod-1/canary", "work/pod-1/other/canary"} {
		must(t, os.WriteFile(filepath.Join(base, file), nil, 0o600))
	}
	return d, entry, func() []string {
		var paths []string
		must(t, filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if filepath.Base(filepath.Dir(path)) != trashName {
				paths = append(paths, path)
			}
			return nil
		}))
		return paths
	}
}

// FuzzErase looks for a name that erases anything but one entry of the trash.
func FuzzErase(f *testing.F) {
	f.Fuzz(func(t *testing.T, name string) {
		d, entry, tree := surroundings(t)
		before := tree()
		err := d.Erase(context.Background(), name)
		single := name != "" && name != "." && name != ".." && filepath.Base(name) == name && name != "/" && !strings.Contains(name, "\x00")
		// A name that is too long cannot be there; that is the kernel's to say.
		if !single && err == nil || single && len(name) <= 255 && err != nil {
			t.Errorf("erase %q: %v", name, err)
		}
		if after := tree(); !slices.Equal(after, before) {
			t.Errorf("erase %q left %q of %q", name, after, before)
		}
		if left := exists(filepath.Join(d.root, trashName, entry)); left != (name != entry) {
			t.Errorf("erase %q: entry %s is left: %t", name, entry, left)
		}
	})
}

// FuzzVolumeNames looks for a pod and a volume whose data directory is made or
// deleted anywhere but two elements below the working directory.
func FuzzVolumeNames(f *testing.F) {
	f.Add("pod-2", "csi-2")
	f.Add("pod-1", "other")
	f.Add("pod-1", "canary")
	f.Fuzz(func(t *testing.T, podName, idName string) {
		d, _, tree := surroundings(t)
		pod, id := volume.PodUID(podName), volume.ID(idName)
		before := tree()
		created, err := d.Create(pod, id)
		path := filepath.Join(d.root, podName, idName)
		if err != nil {
			if after := tree(); !slices.Equal(after, before) {
				t.Errorf("create %q of %q failed and left %q of %q", idName, podName, after, before)
			}
		} else if rel, err := filepath.Rel(d.root, path); err != nil || rel != podName+"/"+idName || !exists(path) || d.Path(pod, id) != path {
			t.Errorf("create %q of %q: made %q, %v", idName, podName, d.Path(pod, id), err)
		}
		name, err := d.Discard(pod, id)
		if err != nil {
			if after := tree(); !slices.Equal(after, before) {
				t.Errorf("discard %q of %q: %v, and left %q of %q", idName, podName, err, after, before)
			}
			return
		}
		must(t, d.Erase(context.Background(), name))
		if !created {
			// It was there before, with all that is in it, and nothing else went.
			before = slices.DeleteFunc(before, func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") })
		}
		if after := tree(); !slices.Equal(after, before) {
			t.Errorf("discard %q of %q left %q of %q", idName, podName, after, before)
		}
	})
}
