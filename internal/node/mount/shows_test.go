package mount

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestShows(t *testing.T) { eachKernel(t, testShows) }

func testShows(t *testing.T, m *Mounter) {
	want := func(t *testing.T, target, source string, want Showing) {
		t.Helper()
		if got, err := m.Shows(target, source); err != nil || got != want {
			t.Errorf("%d, %v, want %d", got, err, want)
		}
	}
	source, target := dirs(t)
	want(t, target, source, NotMounted)
	want(t, filepath.Join(target, "none"), source, NotMounted)
	want(t, filepath.Join(source, "file", "below"), source, NotMounted)

	// What is not mounted is not compared with anything.
	want(t, target, "/none\x00", NotMounted)

	roottest.Bind(t, source, target)
	want(t, target, source, ShowsSource)
	want(t, target+"/", source, ShowsSource)
	want(t, target, t.TempDir(), ShowsOther)
	want(t, target, filepath.Join(t.TempDir(), "none"), ShowsOther)
	roottest.Tmpfs(t, target, 0)
	want(t, target, source, ShowsBeneath)
	want(t, target, t.TempDir(), ShowsOther)
	if err := m.Unmount(target); err != nil {
		t.Fatal(err)
	}
	want(t, target, source, ShowsSource)

	// What lies on top has been removed, not the source. A FUSE server may say that its root has no names.
	other := t.TempDir()
	roottest.Bind(t, other, target)
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	want(t, target, source, ShowsBeneath)
	if err := m.Unmount(target); err != nil {
		t.Fatal(err)
	}

	if err := os.RemoveAll(source); err != nil {
		t.Fatal(err)
	}
	want(t, target, source, ShowsRemoved)
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	want(t, target, source, ShowsRemoved)
}
