package mount

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestErrorsNamePaths, and not the numbers of handles.
func TestErrorsNamePaths(t *testing.T) {
	path := t.TempDir()
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for p, want := range map[string]string{
		handlePath(int(dir.Fd())) + "/pod/volume": filepath.Join(path, "pod/volume"),
		handlePath(int(dir.Fd())):                 path,
		"/csi-data-dir/pod/volume":                "/csi-data-dir/pod/volume",
		"/proc/self/fd/none/pod":                  "/proc/self/fd/none/pod",
	} {
		if got := shown(p).String(); got != want {
			t.Errorf("%s is shown as %s, want %s", p, got, want)
		}
	}
	err = New().Mount(handlePath(int(dir.Fd()))+"/none", t.TempDir(), "", []string{"bind"})
	if err == nil || strings.Contains(err.Error(), handles) || !strings.Contains(err.Error(), filepath.Join(path, "none")) {
		t.Errorf("%v does not name %s", err, filepath.Join(path, "none"))
	}
}
