package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/soak/internal/synced"
	"github.com/katbox/katbox/soak/story"
)

func TestLook(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		spoil func(dir string) error
		want  story.Verb
		count int
		bad   bool
	}{
		{"whole", func(string) error { return nil }, story.Whole, 2, false},
		{"more than was acknowledged", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, synced.Name(3)), []byte("x"), 0o644)
		}, story.Whole, 2, false},
		{"one lost", func(dir string) error { return os.Remove(filepath.Join(dir, synced.Name(1))) }, story.Partial, 0, true},
		{"one empty", func(dir string) error { return os.Truncate(filepath.Join(dir, synced.Name(2)), 0) }, story.Partial, 0, true},
		{"one with zeros", func(dir string) error {
			path := filepath.Join(dir, synced.Name(2))
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, make([]byte, info.Size()), 0o644)
		}, story.Partial, 0, true},
		{"of another volume", func(dir string) error { return synced.Write(dir, synced.Name(2), "short/p/b", 2) }, story.Partial, 0, true},
		{"emptied", func(dir string) error {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			return os.Mkdir(dir, 0o755)
		}, story.Empty, 0, false},
		{"gone", os.RemoveAll, story.Gone, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			const volume = "short/p/a"
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for k := 1; k <= 2; k++ {
				if err := synced.Write(dir, synced.Name(k), volume, k); err != nil {
					t.Fatal(err)
				}
			}
			if err := test.spoil(dir); err != nil {
				t.Fatal(err)
			}
			if got, text := look(dir, volume, 2); got != test.want {
				t.Errorf("it looks %s (%s), want %s", got, text, test.want)
			}
			if got, err := count(dir, volume, 2); got != test.count || (err != nil) != test.bad {
				t.Errorf("%d markers, %v; want %d", got, err, test.count)
			}
		})
	}
}
