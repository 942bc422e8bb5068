package points

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// harmless are effects that no promise hangs on, and why.
var harmless = map[string]string{
	"internal/mount/bind.go unix.MountSetattr": "the mount is attached nowhere yet",

	"internal/scratch/discard.go unix.Renameat2": "its caller is one",
	"internal/scratch/discard.go unix.Renameat":  "its caller is one",

	"internal/scratch/discard.go unix.Fsync": "its callers are",

	"internal/scratch/release.go unix.IoctlSetPointerInt": "flags of what is being deleted",
	"internal/scratch/release.go unix.FS_IOC_SETFLAGS":    "flags of what is being deleted",
}

// TestEveryEffectIsAPoint: a new step has to be one, and then the daemon's crash
// test has to come to it.
func TestEveryEffectIsAPoint(t *testing.T) {
	source, err := Read("../../..", "soak", "internal/sanity", "internal/roottest", "internal/crashpoint", "internal/kernel")
	if err != nil {
		t.Fatal(err)
	}
	if len(source.Points) < 10 {
		t.Errorf("only %d points, are they found? %q", len(source.Points), source.Points)
	}
	used := map[string]bool{}
	for _, naked := range source.Naked {
		place, call, _ := strings.Cut(naked, " ")
		file, _, _ := strings.Cut(place, ":")
		if key := file + " " + call; harmless[key] != "" {
			used[key] = true
			continue
		}
		t.Errorf("%s is not in a crashpoint.Around", naked)
	}
	for key := range harmless {
		if !used[key] {
			t.Errorf("%s is not there any more; take it off the list", key)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, body string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("package x\n\nfunc f() {\n"+body+"\n}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", `_ = crashpoint.Around("b", func() error { return unix.Rmdir("x") })
		_ = crashpoint.Around("a", func() error { return d.bolt.Update(nil) })
		unix.Rmdir("y")
		unix.Open("z")
		d.bolt.Update(nil)
		try(unix.Mount)`)
	write("a_test.go", `os.RemoveAll("x")`)
	source, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b"}; !slices.Equal(source.Points, want) {
		t.Errorf("points %q, want %q", source.Points, want)
	}
	if want := []string{"a.go:6 unix.Rmdir", "a.go:8 bolt.Update", "a.go:9 unix.Mount"}; !slices.Equal(source.Naked, want) {
		t.Errorf("naked %q, want %q", source.Naked, want)
	}
	write("b.go", `_ = crashpoint.Around("a", nil)`)
	if _, err := Read(dir); err == nil {
		t.Error("no error for a name that is used twice")
	}
	write("b.go", `_ = crashpoint.Around("c"+d, nil)`)
	if _, err := Read(dir); err == nil {
		t.Error("no error for a name that is no constant")
	}
}
