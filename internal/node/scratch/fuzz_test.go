package scratch

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

// surroundings is a working directory with a volume, and with files around it that nothing may
// touch. It serves all inputs: making one takes far longer than what is fuzzed.
type surroundings struct {
	base string
	dir  *Dir
}

func newSurroundings(f *testing.F) *surroundings {
	f.Helper()
	s := &surroundings{base: f.TempDir()}
	var err error
	if s.dir, err = Open(filepath.Join(s.base, "a", "b", "work")); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := s.dir.Close(); err != nil {
			f.Error(err)
		}
	})
	s.restore(f)
	return s
}

// restore makes what is missing.
func (s *surroundings) restore(t testing.TB) {
	t.Helper()
	if _, err := s.dir.Create(at(pod, "other")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"canary", "a/canary", "a/b/canary", "a/b/work/canary", "a/b/work/pod-1/canary",
		"a/b/work/pod-1/other/canary"} {
		if err := os.WriteFile(filepath.Join(s.base, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tree returns all that there is.
func (s *surroundings) tree(t *testing.T) []string {
	t.Helper()
	var paths []string
	must(t, filepath.WalkDir(s.base, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}))
	return paths
}

// tame returns names that lead nowhere else, not even when they are taken as they are: with a fault
// in what is fuzzed, an absolute name or enough ".." would take the machine with them.
func (s *surroundings) tame(names ...string) (tamed []string, ok bool) {
	climbs := 0
	for _, name := range names {
		if strings.HasPrefix(name, "/") {
			name = s.base + name
			climbs++
		}
		climbs += strings.Count(name, "..")
		if strings.HasPrefix(name, "/") && strings.Contains(name, "..") {
			return nil, false
		}
		tamed = append(tamed, name)
	}
	// The working directory lies three directories deep.
	return tamed, climbs <= 3
}

// FuzzErase looks for a name that erases anything but one entry of the trash.
func FuzzErase(f *testing.F) {
	f.Add("entry")
	s := newSurroundings(f)
	entry := filepath.Join(s.dir.root, trashName, "entry")
	f.Fuzz(func(t *testing.T, name string) {
		tamed, ok := s.tame(name)
		if !ok {
			return
		}
		name = tamed[0]
		must(t, os.MkdirAll(entry, 0o700))
		before := s.tree(t)
		err := s.dir.Erase(context.Background(), name, nil)
		single := name != "" && name != "." && name != ".." && filepath.Base(name) == name && name != "/" && !strings.Contains(name, "\x00")
		// A name that is too long cannot be there; that is the kernel's to say.
		if !single && err == nil || single && len(name) <= 255 && err != nil {
			t.Errorf("erase %q: %v", name, err)
		}
		if name == "entry" {
			before = slices.DeleteFunc(before, func(p string) bool { return p == entry })
		}
		if after := s.tree(t); !slices.Equal(after, before) {
			t.Errorf("erase %q left %q of %q", name, after, before)
		}
	})
}

// FuzzVolumeNames looks for a pod and a volume whose data directory is made or deleted anywhere but
// two elements below the working directory.
func FuzzVolumeNames(f *testing.F) {
	f.Add("pod-2", "csi-2")
	f.Add("pod-1", "other")
	f.Add("pod-1", "canary")
	s := newSurroundings(f)
	f.Fuzz(func(t *testing.T, podName, idName string) {
		tamed, ok := s.tame(podName, idName)
		if !ok {
			return
		}
		podName, idName = tamed[0], tamed[1]
		d, tree := s.dir, func() []string { return s.tree(t) }
		pod, id := volume.PodUID(podName), volume.ID(idName)
		before := tree()
		created, err := d.Create(at(pod, id))
		path := filepath.Join(d.root, podName, idName)
		if err != nil {
			if after := tree(); !slices.Equal(after, before) {
				t.Errorf("create %q of %q failed and left %q of %q", idName, podName, after, before)
			}
		} else if rel, err := filepath.Rel(d.root, path); err != nil || rel != podName+"/"+idName || !exists(path) ||
			d.Path(at(pod, id)) != path {
			t.Errorf("create %q of %q: made %q, %v", idName, podName, d.Path(at(pod, id)), err)
		}
		name, err := d.Discard(at(pod, id))
		if err != nil {
			if after := tree(); !slices.Equal(after, before) {
				t.Errorf("discard %q of %q: %v, and left %q of %q", idName, podName, err, after, before)
			}
			return
		}
		must(t, d.Erase(context.Background(), name, nil))
		if !created {
			// It was there before, with all that is in it, and nothing else went.
			before = slices.DeleteFunc(before, func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") })
			defer s.restore(t)
		}
		if after := tree(); !slices.Equal(after, before) {
			t.Errorf("discard %q of %q left %q of %q", idName, podName, after, before)
		}
	})
}
