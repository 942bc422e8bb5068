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

// TestContents: a pool is settled when all is whole in it, and empty when nothing is in it, promised, or on its disk.
func TestContents(t *testing.T) {
	t.Parallel()
	whole, half := []found{{Ready: true}}, []found{{Ready: true}, {}}
	for _, tt := range []struct {
		has            contents
		settled, empty bool
	}{
		{contents{}, true, true},
		{contents{volumes: whole}, true, false},
		{contents{snapshots: whole}, true, false},
		{contents{volumes: whole, snapshots: whole}, true, false},
		{contents{volumes: whole, left: []string{"records/pvc-1"}}, true, false},
		{contents{volumes: half, snapshots: whole}, false, false},
		{contents{volumes: whole, snapshots: half}, false, false},
		{contents{left: []string{"records/pvc-1"}}, true, false},
		{contents{pool: pool{Provisioned: 1}}, true, false},
	} {
		if settled, empty := tt.has.settled(), tt.has.empty(); settled != tt.settled || empty != tt.empty {
			t.Errorf("%+v is settled: %t, empty: %t", tt.has, settled, empty)
		}
	}
}
