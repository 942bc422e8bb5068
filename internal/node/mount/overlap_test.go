package mount

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestOverlap(t *testing.T) {
	roottest.Need(t)
	base := t.TempDir()
	// As a container has them: directories of one file system, each mounted at a path of its own.
	host := filepath.Join(base, "host")
	for _, dir := range []string{"host/kubelet/pods", "host/data", "host/disk", "data-dir", "pods", "other"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"root": "/", "to-pods": "pods", "to-kubelet": "host/kubelet", "loose": "none"} {
		if err := os.Symlink(to, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	roottest.Bind(t, host+"/kubelet/pods", base+"/pods")
	roottest.Bind(t, host, base+"/data-dir")
	roottest.Tmpfs(t, host+"/disk", 0)
	for _, tt := range []struct {
		workdir, pods string
		want          bool
	}{
		{"other", "pods", false},
		{"host/data", "pods", false},
		{"data-dir/data", "pods", false},
		{"host/disk", "pods", false},
		{"other/not/yet", "not/yet/either", false},
		{"loose", "pods", false},
		// By path.
		{"pods", "pods", true},
		{"pods/uid", "pods", true},
		{"host", "host/disk/pods", true},
		// By symbolic links.
		{"root", "pods", true},
		{"to-pods", "pods", true},
		{"to-pods/not/yet", "pods", true},
		{"to-kubelet", "host/kubelet/pods", true},
		{"to-kubelet", "host/kubelet/not/yet", true},
		// By another mount.
		{"data-dir", "pods", true},
		{"data-dir/kubelet", "pods", true},
		{"data-dir/kubelet/pods/uid", "pods", true},
		{"data-dir/kubelet/pods/not/yet", "pods", true},
		{"data-dir/kubelet/not/yet", "pods", false},
	} {
		got, err := Overlap(filepath.Join(base, tt.workdir), filepath.Join(base, tt.pods))
		if err != nil || got != tt.want {
			t.Errorf("%s and %s: %t, %v, want %t", tt.workdir, tt.pods, got, err, tt.want)
		}
	}
}
