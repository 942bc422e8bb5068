package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestCanaries(t *testing.T) {
	name := func(elements ...string) func(*Canaries) string {
		return func(c *Canaries) string { return filepath.Join(append([]string{c.Directory(1)}, elements...)...) }
	}
	file, private, directory, below := name("a"), name("private"), name(), name("below", "program")
	for _, test := range []struct {
		what   string
		change func(c *Canaries) error
		want   string // in the error
	}{
		{"a file removed", func(c *Canaries) error { return os.Remove(below(c)) }, `"program" is missing`},
		{"a directory removed", func(c *Canaries) error { return os.RemoveAll(directory(c)) }, `"canary-1" is missing`},
		{"everything removed", func(c *Canaries) error { return os.RemoveAll(filepath.Dir(directory(c))) }, "is missing"},
		{"a file added", func(c *Canaries) error { return os.WriteFile(directory(c)+"/.new", nil, 0o600) }, `".new" was added`},
		{"a directory beside", func(c *Canaries) error { return os.Mkdir(directory(c)+"-new", 0o700) }, `"canary-1-new" was added`},
		{"other content", func(c *Canaries) error { return overwrite(private(c), "x") }, "its content is another"},
		{"longer", func(c *Canaries) error { return appendTo(file(c), "x") }, "its content is another: 301 bytes, of what were 300"},
		{"shorter", func(c *Canaries) error { return os.Truncate(file(c), 100) }, "its content is another: 100 bytes, of what were 300"},
		{"the same content", func(c *Canaries) error { return overwrite(private(c), "") }, "it was written to"},
		{"the same content and time", func(c *Canaries) error {
			return errors.Join(overwrite(file(c), ""), os.Chtimes(file(c), time.Time{}, c.at(file(c)).modifiedTime()))
		}, "changed back"},
		{"mode", func(c *Canaries) error { return os.Chmod(file(c), 0o640) }, "its mode is 0640 and was 0644"},
		{"mode of a directory", func(c *Canaries) error { return os.Chmod(directory(c), 0o700) }, "its mode is 0700 and was 0755"},
		{"mode there and back", func(c *Canaries) error {
			return errors.Join(os.Chmod(file(c), 0o600), os.Chmod(file(c), 0o644))
		}, "changed back"},
		{"time", func(c *Canaries) error { return os.Chtimes(file(c), time.Time{}, time.Now()) }, "time of modification"},
		{"a link", func(c *Canaries) error {
			return os.Link(file(c), filepath.Join(filepath.Dir(c.directories[0]), "../link"))
		}, "it has 2 links and had 1"},
		{"a symlink instead", func(c *Canaries) error {
			return errors.Join(os.Rename(file(c), file(c)+"-away"), os.Symlink("a-away", file(c)))
		}, "was added"},
		{"a FIFO instead", func(c *Canaries) error {
			return errors.Join(os.Remove(file(c)), unix.Mkfifo(file(c), 0o644))
		}, "it was written to"},
		{"added and removed", func(c *Canaries) error {
			return errors.Join(os.Mkdir(directory(c)+"/new", 0o700), os.Remove(directory(c)+"/new"))
		}, "it was written to"},
	} {
		t.Run(test.what, func(t *testing.T) {
			c := newCanaries(t, 3)
			if err := test.change(c); err != nil {
				t.Fatal(err)
			}
			if err := c.Check(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v; want %q", err, test.want)
			}
		})
	}
}

func newCanaries(t *testing.T, n int) *Canaries {
	t.Helper()
	c, err := MakeCanaries(filepath.Join(t.TempDir(), "canaries"), n)
	if err != nil {
		t.Fatal(err)
	}
	// The times of change are as coarse as the kernel's clock.
	made := c.things[len(c.things)-1].state.change
	probe := filepath.Join(t.TempDir(), "probe")
	await(t, "the time is another", func() bool {
		if err := os.WriteFile(probe, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		state, _, _, err := look(probe)
		return err == nil && state.change != made
	})
	if err := c.Check(); err != nil {
		t.Fatalf("nothing has changed: %v", err)
	}
	return c
}

// at is what there has to be at a path.
func (c *Canaries) at(path string) canaryState {
	for _, thing := range c.things {
		if thing.path == path {
			return thing.state
		}
	}
	return canaryState{}
}

func (s canaryState) modifiedTime() time.Time { return time.Unix(s.modified.Unix()) }

// overwrite puts the text over the beginning of a file, or, if it is empty,
// writes what was there before.
func overwrite(path, text string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(text), content[len(text):]...), 0)
}

func appendTo(path, text string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, text...), 0)
}

func TestCanariesStay(t *testing.T) {
	c := newCanaries(t, 20)
	seen := map[string]bool{}
	for i := range 20 {
		dir := c.Directory(i)
		seen[dir] = true
		for _, f := range canaryFiles {
			path := filepath.Join(dir, f.name)
			info, err := os.Stat(path)
			if err != nil || info.Mode() != f.mode || info.Size() != int64(f.size) {
				t.Errorf("%s: %v, %v; want mode %v", path, info, err, f.mode)
			}
			if _, err := os.ReadFile(path); err != nil {
				t.Error(err)
			}
		}
	}
	if len(seen) != 20 || !seen[c.Directory(20)] {
		t.Errorf("%d directories, the one after the last is %s", len(seen), c.Directory(20))
	}
	if err := c.Check(); err != nil {
		t.Errorf("after reading: %v", err)
	}
	if _, err := MakeCanaries(t.TempDir(), 0); err == nil {
		t.Error("no canaries at all, and no error")
	}
}

func TestCanaryMountedOver(t *testing.T) {
	needMounts(t)
	c := newCanaries(t, 2)
	elsewhere, dir := t.TempDir(), c.Directory(1)
	// A canary can be the source of a mount, and nothing changes.
	unmountAtEnd(t, elsewhere)
	if err := Bind(dir, elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Errorf("as a source: %v", err)
	}
	unmountAtEnd(t, dir)
	if err := Bind(c.Directory(0), dir); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "something is mounted on it") {
		t.Errorf("with something on it: %v", err)
	}
}

func BenchmarkCanaries(b *testing.B) {
	c, err := MakeCanaries(b.TempDir(), 20)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := c.Check(); err != nil {
			b.Fatal(err)
		}
	}
}
