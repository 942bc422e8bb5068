package attach

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The mount table shows a mount at its real path only.
func TestStraight(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "real", "real/target": "elsewhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, refused := range map[string]bool{
		"real/new": false, "real/target": false, "missing/target": false, "real/": false,
		"link/new": true, "link/target": true,
	} {
		path = filepath.Join(dir, path)
		for which, err := range map[string]error{
			"openat2": NoSymlinks(path), "without": noSymlinksBefore(path, filepath.Dir(filepath.Clean(path))),
		} {
			if errors.Is(err, ErrNotOurs) != refused || err != nil != refused {
				t.Errorf("%s, %s: %v", which, path, err)
			}
		}
	}
}
