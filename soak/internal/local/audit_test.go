package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLeft: what a pool needs itself is not left of volumes, whatever else there is.
func TestLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, part := range []string{"volumes", "snapshots", "records", ".trash"} {
		part = filepath.Join(dir, part)
		if err := errors.Join(os.Mkdir(part, 0o700), os.WriteFile(filepath.Join(part, ".keep"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		file string
		want []string
	}{
		{"records/.spare", nil},
		{"records/pvc-1", []string{"records/pvc-1"}},
		{"volumes/.spare", []string{"volumes/.spare", "records/pvc-1"}},
	} {
		if err := os.WriteFile(filepath.Join(dir, tt.file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if left, err := leftIn(dir); err != nil || !slices.Equal(left, tt.want) {
			t.Errorf("with %s there is %q, %v; want %q", tt.file, left, err, tt.want)
		}
	}
}
