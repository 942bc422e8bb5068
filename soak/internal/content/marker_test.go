package content

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

func TestLook(t *testing.T) {
	s := Spec{ID: "csi-1", Content: workload.Content{Marker: "m1"}}
	for name, tt := range map[string]struct {
		change func(dir string) error
		want   story.Verb
		says   string
	}{
		"as written":          {func(string) error { return nil }, story.Whole, ""},
		"another volume's":    {func(dir string) error { return writeMarker(dir, "csi-2 m1\n") }, story.Partial, "csi-2"},
		"another run's":       {func(dir string) error { return writeMarker(dir, "csi-1 m2\n") }, story.Partial, "m2"},
		"cut off":             {func(dir string) error { return writeMarker(dir, "csi-1 m1") }, story.Partial, "says"},
		"longer":              {func(dir string) error { return writeMarker(dir, "csi-1 m1\n\n") }, story.Partial, "says"},
		"empty":               {func(dir string) error { return writeMarker(dir, "") }, story.Partial, "says"},
		"no marker":           {func(dir string) error { return os.Remove(dir + "/" + MarkerName) }, story.Partial, "no such file"},
		"marker is a FIFO":    {func(dir string) error { return replace(dir+"/"+MarkerName, fifoAt) }, story.Partial, "says"},
		"marker is a symlink": {func(dir string) error { return replace(dir+"/"+MarkerName, selfLink) }, story.Partial, "open"},
		"directory is a file": {func(dir string) error { return replace(dir, emptyFile) }, story.Partial, "not a directory"},
		"dangling symlink":    {func(dir string) error { return replace(dir, selfLink) }, story.Partial, "exists"},
		"no directory":        {os.RemoveAll, story.Gone, "does not exist"},
		"no parent":           {func(dir string) error { return os.RemoveAll(filepath.Dir(dir)) }, story.Gone, "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "pod", "volume")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := Fill(dir, s); err != nil {
				t.Fatal(err)
			}
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			got, err := Look(dir, s)
			if got != tt.want || (err == nil) != (got == story.Whole) || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s, error %v, want %s and an error with %q", got, err, tt.want, tt.says)
			}
		})
	}
}

func writeMarker(dir, text string) error {
	return os.WriteFile(filepath.Join(dir, MarkerName), []byte(text), 0o644)
}

func fifoAt(path string) error { return unix.Mkfifo(path, 0o600) }

func selfLink(path string) error { return os.Symlink(path, path) }

func TestIdentity(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	device, inode, err := Identity(a)
	if err != nil {
		t.Fatal(err)
	}
	if d, i, err := Identity(a); d != device || i != inode || err != nil {
		t.Errorf("%d:%d, then %d:%d, error %v", device, inode, d, i, err)
	}
	if d, i, err := Identity(b); d == device && i == inode || err != nil {
		t.Errorf("two directories are both %d:%d, error %v", d, i, err)
	}
	if _, _, err := Identity(a + "/nothing"); err == nil {
		t.Error("no error for what does not exist")
	}
}

func BenchmarkLook(b *testing.B) {
	s := Spec{ID: "csi-" + strings.Repeat("0", 64), Content: workload.Content{Marker: "m1"}}
	dir := b.TempDir()
	if _, err := Fill(dir, s); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if state, err := Look(dir, s); state != story.Whole {
			b.Fatal(err)
		}
	}
}
