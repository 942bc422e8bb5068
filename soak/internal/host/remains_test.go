package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRemains(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	if left, err := Remains(work, nil); err != nil || len(left) > 0 {
		t.Errorf("an empty directory has %q, %v", left, err)
	}
	for _, dir := range []string{".trash/entry/below", "pod/volume", "empty", ".hidden/x"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	left, err := Remains(work, nil)
	if want := []string{".trash/entry", "empty/", "pod/volume"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("it has %q, %v; want %q", left, err, want)
	}
}
