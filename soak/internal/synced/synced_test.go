package synced

import (
	"bytes"
	"os"
	"testing"
)

func TestMarkersDiffer(t *testing.T) {
	t.Parallel()
	if !bytes.Equal(content("a", 1), content("a", 1)) {
		t.Error("the same marker differs from itself")
	}
	for _, other := range [][]byte{content("a", 2), content("b", 1)} {
		if bytes.Equal(content("a", 1), other) {
			t.Error("two markers are the same")
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Write(dir, "x", "a", 1); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := Check(root, "x", "a", 1); err != nil {
		t.Error(err)
	}
	if Check(root, "x", "a", 2) == nil || Check(root, "y", "a", 1) == nil {
		t.Error("another marker, and one that is not there, are taken for it")
	}
}
