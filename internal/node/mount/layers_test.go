package mount

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestShowsOfADeadDisk: the mount table tells what a disk does not tell any more, or what was on another one.
func TestShowsOfADeadDisk(t *testing.T) {
	for _, fstype := range []string{"ext4", "xfs"} {
		if roottest.LeftOut(fstype) {
			continue
		}
		t.Run(fstype, func(t *testing.T) {
			eachKernel(t, func(t *testing.T, m *Mounter) {
				megabytes := map[string]int{"ext4": 16, "xfs": 320}[fstype]
				work := filepath.Join(roottest.FileSystem(t, fstype, megabytes), "work")
				kubelet := t.TempDir()
				path := func(name string) string { return filepath.Join(kubelet, name) }
				for _, dir := range []string{filepath.Join(work, "pod/csi-1"), filepath.Join(work, "pod/csi-2"),
					path("mount"), path("other"), path("none"), path("elsewhere/pod/csi-1"), path("covered")} {
					if err := os.MkdirAll(dir, 0o700); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.Symlink(kubelet, path("link")); err != nil {
					t.Fatal(err)
				}
				dir, err := os.Open(work)
				if err != nil {
					t.Fatal(err)
				}
				defer dir.Close()
				source := handlePath(int(dir.Fd())) + "/pod/csi-1"
				roottest.Bind(t, source, path("mount"))
				roottest.Bind(t, source, path("covered"))
				roottest.Bind(t, filepath.Join(work, "pod/csi-2"), path("covered"))
				roottest.Bind(t, filepath.Join(work, "pod/csi-2"), path("other"))
				roottest.ShutDown(t, work)
				for _, tt := range []struct {
					target, source string
					want           Showing
				}{
					{"mount", source, ShowsSource},
					{"link/mount", source, ShowsSource},
					{"covered", source, ShowsBeneath},
					{"other", source, ShowsOther},
					{"none", source, NotMounted},
					{"mount", path("elsewhere/pod/csi-1"), ShowsNamesake},
					{"mount", path("elsewhere/pod/csi-3"), ShowsOther},
				} {
					if got, err := m.Shows(path(tt.target), tt.source); err != nil || got != tt.want {
						t.Errorf("%s of %s: %d, %v, want %d", tt.target, tt.source, got, err, tt.want)
					}
				}
				// As by its path without a symbolic link.
				if p, err := LookCached(path("link/mount")); err != nil || !p.Mounted {
					t.Errorf("%+v, %v", p, err)
				}
			})
		})
	}
}

// TestLayers: the lowest comes first, whatever the order of the table is.
func TestLayers(t *testing.T) {
	m := New()
	source, target := dirs(t)
	if layers, err := m.Layers(target, source); len(layers) > 0 || err != nil {
		t.Errorf("%v, %v", layers, err)
	}
	if layers, err := m.Layers(filepath.Join(target, "none/below"), source); len(layers) > 0 || err != nil {
		t.Errorf("nothing there: %v, %v", layers, err)
	}
	other := t.TempDir()
	for _, dir := range []string{source, other, source} {
		roottest.Bind(t, dir, target)
	}
	roottest.Tmpfs(t, target, 0)
	layers, err := m.Layers(target+"/", source)
	if err != nil || len(layers) != 4 {
		t.Fatalf("%v, %v", layers, err)
	}
	for i, want := range []Showing{ShowsSource, ShowsOther, ShowsSource, ShowsOther} {
		if layers[i].Showing != want {
			t.Errorf("layer %d: %+v, want %d", i, layers[i], want)
		}
	}
	if what := layers[3].What; !strings.Contains(what, "tmpfs") {
		t.Errorf("the topmost is %s", what)
	}
}

// TestStack puts mounts in the order in which they lie on one another.
func TestStack(t *testing.T) {
	table, err := parseTable(`5 1 8:1 /c / rw - ext4 /dev/a rw
13 12 8:1 /c / rw - ext4 /dev/a rw
11 5 8:1 /a / rw - ext4 /dev/a rw
12 11 8:1 /b / rw - ext4 /dev/a rw
`)
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := stack(table, "/")
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []int{5, 11, 12, 13} {
		if mounts[i].ID != id {
			t.Errorf("mount %d is %d, want %d", i, mounts[i].ID, id)
		}
	}
}
