package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/soak/internal/history"
)

// TestVain: volumes that go early with their files open are too many once a driver can tell that they make no room.
func TestVain(t *testing.T) {
	const file, dir = 256 << 10, 4 << 10
	for _, test := range []struct {
		name           string
		each           weight
		held, retained int
		may            int // how many may go; none is too many if that is 0
	}{
		{"large files", weight{files: file}, 8, 8, 6},
		{"of many", weight{files: file}, 80, 70, 10},
		{"of many that came later", weight{files: file}, 8, 80, 10},
		{"too small to tell for long", weight{files: file / 8}, 8, 8, 32},
		{"with directories, which come free", weight{files: 32 << 10, rest: 2 * dir}, 8, 8, 0},
		{"with directories that are a small part", weight{files: file, rest: 2 * dir}, 8, 8, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := &vain{held: map[*history.Volume]weight{}}
			for range test.held {
				v.held[&history.Volume{}] = test.each
			}
			for n := 1; n <= 100; n++ {
				wrong, _ := v.goes(test.each, test.retained)
				if want := test.may > 0 && n > test.may; wrong != want {
					t.Fatalf("volume %d: %t, want %t", n, wrong, want)
				}
			}
		})
	}
}

// TestWeightOf: a hole takes nothing, and a file with two names takes its room once.
func TestWeightOf(t *testing.T) {
	data := filepath.Join(t.TempDir(), "pod", "volume")
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(data, "file")
	try(os.MkdirAll(data, 0o755))
	try(os.WriteFile(name, make([]byte, 64<<10), 0o600))
	try(os.WriteFile(filepath.Join(data, "hole"), nil, 0o600))
	try(os.Truncate(filepath.Join(data, "hole"), 1<<40))
	try(os.Link(name, filepath.Join(data, "link")))
	f, err := os.Open(name)
	try(err)
	try(f.Sync()) // else it has no blocks yet
	try(f.Close())
	if w := weightOf(data); w.files < 64<<10 || w.files > 80<<10 {
		t.Errorf("its files take %d bytes, want some 64 KiB", w.files)
	}
}
