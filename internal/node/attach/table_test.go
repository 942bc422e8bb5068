package attach

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestAt(t *testing.T) {
	table := []Mount{{Target: "/"}, {Target: "/a", Source: "lower"}, {Target: "/a/b"}, {Target: "/a", Source: "upper"}}
	for path, want := range map[string]string{"/a": "upper", "/a/": "upper", "//a/./": "upper", "/a/b": "", "/": ""} {
		if got, ok := At(table, path); !ok || got.Source != want || got.Target != filepath.Clean(path) {
			t.Errorf("%s: %+v, %t", path, got, ok)
		}
	}
	for _, path := range []string{"", "/b", "/a/b/c", "a"} {
		if got, ok := At(table, path); ok {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

func TestTable(t *testing.T) {
	roottest.Need(t)
	dir := t.TempDir()
	lower, upper, file := filepath.Join(dir, "a b\n"), filepath.Join(dir, "upper"), filepath.Join(dir, "file")
	for _, path := range []string{lower, upper} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	roottest.Tmpfs(t, lower, unix.MS_NOEXEC)
	if err := os.Mkdir(filepath.Join(lower, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	roottest.Bind(t, filepath.Join(lower, "sub"), upper)
	roottest.Mount(t, "", upper, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	roottest.Bind(t, file, file)
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(lower, &st); err != nil {
		t.Fatal(err)
	}
	below, ok := At(table, lower)
	if !ok || below.Root != "/" || below.FSType != "tmpfs" || below.Source != "katbox-test" || below.Device != st.Dev || below.ReadOnly ||
		!slices.Contains(below.Flags, "noexec") || !slices.Contains(below.Options, "size=65536k") {
		t.Errorf("%+v, %t", below, ok)
	}
	above, ok := At(table, upper)
	if !ok || above.Root != "/sub" || above.Device != below.Device || !above.ReadOnly || !slices.Contains(above.Options, "rw") {
		t.Errorf("%+v, %t", above, ok)
	}
	if m, ok := At(table, file); !ok {
		t.Errorf("%+v, %t", m, ok)
	}
}
