package scratch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestForeign(t *testing.T) {
	const uid, static = "5f1c8a52-1f4e-4f0e-9d43-6a1b2c3d4e5f/", "d41d8cd98f00b204e9800998ecf8427e/"
	id := "csi-" + strings.Repeat("0a9f", 16)
	for name, tt := range map[string]struct {
		// dirs and files are in the directory.
		dirs, files []string
		want        string
	}{
		"empty":                        {},
		"the archived driver's":        {dirs: []string{uid + id + "/sub", static + id}, files: []string{"deletedVolumes.db"}},
		"a pod without volumes":        {dirs: []string{uid}},
		"in nobody's way":              {dirs: []string{"lost+found/x", ".snapshots/1/snapshot", "empty"}, files: []string{"README", ".katbox"}},
		"photos":                       {dirs: []string{uid + id, "photos/2024"}, want: "photos/2024"},
		"a database":                   {files: []string{"postgres/PG_VERSION"}, want: "postgres/PG_VERSION"},
		"a home":                       {files: []string{"joe/.profile"}, want: "joe/.profile"},
		"the kubelet's pods directory": {dirs: []string{uid + "volumes"}, want: uid + "volumes"},
		"another driver's volumes":     {dirs: []string{"inmemfs/" + id}, want: "inmemfs/" + id},
		"used before":                  {dirs: []string{".trash", "pod/volume"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, dir := range tt.dirs {
				must(t, os.MkdirAll(filepath.Join(root, dir), 0o750))
			}
			for _, file := range tt.files {
				path := filepath.Join(root, file)
				must(t, os.MkdirAll(filepath.Dir(path), 0o750))
				must(t, os.WriteFile(path, nil, 0o600))
			}
			if got, err := Foreign(root); err != nil || got != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
	if got, err := Foreign(filepath.Join(t.TempDir(), "none")); err != nil || got != "" {
		t.Errorf("of nothing: %q, %v", got, err)
	}
	root := t.TempDir()
	must(t, os.Symlink("/proc", filepath.Join(root, "link")))
	if got, err := Foreign(root); err != nil || got != "" {
		t.Errorf("a symbolic link was followed: %q, %v", got, err)
	}
}

// TestForeignMount: what is mounted in there is not looked into, it may hang.
func TestForeignMount(t *testing.T) {
	roottest.Need(t)
	root := t.TempDir()
	disk := filepath.Join(root, "disk")
	must(t, os.Mkdir(disk, 0o750))
	roottest.Tmpfs(t, disk, 0)
	if got, err := Foreign(root); err != nil || got != "disk" {
		t.Errorf("%q, %v, want the mount point", got, err)
	}
}
