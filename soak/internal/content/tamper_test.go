package content

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// firstFile is the path of a plain file.
func firstFile(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "file-0-*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, error %v", files, err)
	}
	return files[0]
}

// overwrite writes at an offset and changes neither size nor time otherwise.
func overwrite(path string, offset int64, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), offset)
	return errors.Join(err, f.Close())
}

// replace puts something else in the place of a file.
func replace(path string, with func(path string) error) error {
	return errors.Join(os.RemoveAll(path), with(path))
}

func emptyFile(path string) error { return os.WriteFile(path, nil, 0o644) }

// inDeepest does something in the directory at the bottom.
func inDeepest(dir string, s Spec, do func(at int) error) error {
	w, err := newWalker(dir)
	if err != nil {
		return err
	}
	defer w.close()
	var deepest []string
	for e := range s.entries() {
		if len(e.in) > len(deepest) {
			deepest = e.in
		}
	}
	if err := w.enter(deepest); err != nil {
		return err
	}
	return do(w.at)
}

func TestVerifyFindsEveryChange(t *testing.T) {
	for name, tt := range map[string]struct {
		tamper func(t *testing.T, dir string, s Spec) error
		want   string
	}{
		"marker removed": {func(_ *testing.T, dir string, _ Spec) error { return os.Remove(filepath.Join(dir, MarkerName)) }, "marker"},
		"marker of another volume": {func(_ *testing.T, dir string, _ Spec) error {
			return os.WriteFile(filepath.Join(dir, MarkerName), []byte("csi-2 m1\n"), 0o644)
		}, "marker"},
		"directory removed": {func(_ *testing.T, dir string, _ Spec) error { return os.RemoveAll(dir) }, "no such file"},
		"everything removed": {func(_ *testing.T, dir string, _ Spec) error {
			return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755))
		}, "not looked at any more"},
		"file removed": {func(t *testing.T, dir string, _ Spec) error { return os.Remove(firstFile(t, dir)) }, "file \"file-0-"},
		"file renamed": {func(t *testing.T, dir string, _ Spec) error {
			return os.Rename(firstFile(t, dir), firstFile(t, dir)+"x")
		}, "no such file"},
		"a byte changed": {func(t *testing.T, dir string, _ Spec) error {
			return overwrite(firstFile(t, dir), 3, "\x00\x01\x02\x03\x04\x05\x06\x07")
		}, "bytes are not"},
		"the last byte changed": {func(t *testing.T, dir string, _ Spec) error {
			data, err := os.ReadFile(firstFile(t, dir))
			data[len(data)-1]++
			return errors.Join(err, os.WriteFile(firstFile(t, dir), data, 0o644))
		}, "bytes are not"},
		"file cut off":       {func(t *testing.T, dir string, _ Spec) error { return os.Truncate(firstFile(t, dir), 1) }, "its size"},
		"file grown":         {func(t *testing.T, dir string, _ Spec) error { return os.Truncate(firstFile(t, dir), 1<<20) }, "its size"},
		"file with one more": {func(t *testing.T, dir string, _ Spec) error { return os.Link(firstFile(t, dir), dir+"/one-more") }, "names"},
		"file is a directory": {func(t *testing.T, dir string, _ Spec) error {
			return replace(firstFile(t, dir), func(p string) error { return os.Mkdir(p, 0o644) })
		}, "its type"},
		"file is a FIFO": {func(t *testing.T, dir string, _ Spec) error {
			return replace(firstFile(t, dir), func(p string) error { return unix.Mkfifo(p, 0o644) })
		}, "its type"},
		"file is a symlink": {func(t *testing.T, dir string, _ Spec) error {
			return replace(firstFile(t, dir), func(p string) error { return os.Symlink("sparse", p) })
		}, "its type"},
		"permissions changed": {func(t *testing.T, dir string, _ Spec) error { return os.Chmod(firstFile(t, dir), 0o600) }, "permissions"},
		"odd name removed":    {func(_ *testing.T, dir string, _ Spec) error { return os.Remove(filepath.Join(dir, " ")) }, `file " "`},
		"not UTF-8 removed":   {func(_ *testing.T, dir string, _ Spec) error { return os.RemoveAll(filepath.Join(dir, "\xff\xfe\x80")) }, `\xff`},
		"long name removed": {func(_ *testing.T, dir string, _ Spec) error {
			return os.RemoveAll(filepath.Join(dir, strings.Repeat("n", 255)))
		}, "nnn"},
		"hole filled": {func(_ *testing.T, dir string, _ Spec) error { return overwrite(dir+"/sparse", 1<<29, "x") }, "bytes are not"},
		"sparse cut":  {func(_ *testing.T, dir string, _ Spec) error { return os.Truncate(dir+"/sparse", 1<<29) }, "its size"},
		"symlink to elsewhere": {func(_ *testing.T, dir string, s Spec) error {
			return replace(dir+"/link-1", func(p string) error { return os.Symlink(s.Outside+"x", p) })
		}, "leads to"},
		"symlink to less": {func(_ *testing.T, dir string, s Spec) error {
			return replace(dir+"/link-1", func(p string) error { return os.Symlink(s.Outside[1:], p) })
		}, "leads to"},
		"symlink followed": {func(_ *testing.T, dir string, _ Spec) error { return replace(dir+"/link-1", emptyFile) }, "its type"},
		"hard link is a copy": {func(_ *testing.T, dir string, _ Spec) error {
			data, err := os.ReadFile(dir + "/linked")
			return errors.Join(err, replace(dir+"/hard-1", func(p string) error { return os.WriteFile(p, data, 0o644) }))
		}, "no link of"},
		"hard link removed": {func(_ *testing.T, dir string, _ Spec) error { return os.Remove(dir + "/hard-2") }, `hard link "hard-2"`},
		"FIFO is a file":    {func(_ *testing.T, dir string, _ Spec) error { return replace(dir+"/fifo", emptyFile) }, "its type"},
		"socket removed":    {func(_ *testing.T, dir string, _ Spec) error { return os.Remove(dir + "/socket") }, "socket"},
		"setuid taken":      {func(_ *testing.T, dir string, _ Spec) error { return os.Chmod(dir+"/mode-4755-file", 0o755) }, "permissions"},
		"directory opened":  {func(_ *testing.T, dir string, _ Spec) error { return os.Chmod(dir+"/mode-0000", 0o755) }, "permissions"},
		"in a closed one":   {func(_ *testing.T, dir string, _ Spec) error { return os.Remove(dir + "/mode-0000/inside") }, "inside"},
		"branch removed":    {func(_ *testing.T, dir string, _ Spec) error { return os.RemoveAll(dir + "/deep/branch-63") }, "branch-63"},
		"deepest removed": {func(_ *testing.T, dir string, s Spec) error {
			return inDeepest(dir, s, func(at int) error { return unix.Unlinkat(at, "leaf", 0) })
		}, "leaf"},
	} {
		t.Run(name, func(t *testing.T) {
			s := everything(t)
			// Hundreds of directories are made where they are looked at only.
			s.Content.Deep = strings.Contains(tt.want, "leaf") || strings.Contains(tt.want, "branch")
			dir, done := filled(t, s)
			if err := tt.tamper(t, dir, s); err != nil {
				t.Fatal(err)
			}
			if err := Verify(dir, s, done); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestVerifyAsksForNoMoreThanWasFilled: the rest found no room.
func TestVerifyAsksForNoMoreThanWasFilled(t *testing.T) {
	s := anybodys(t)
	dir, done := filled(t, s)
	i, last := 0, 0
	for e := range s.entries() {
		if i++; e.kind == hardlink {
			last = i
		}
	}
	if err := os.Remove(dir + "/hard-2"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "deep")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		entries int
		ok      bool
	}{{done.Entries, false}, {last, false}, {last - 1, true}, {0, true}} {
		part := Filled{Marker: true, Entries: tt.entries}
		if err := Verify(dir, s, part); (err == nil) != tt.ok {
			t.Errorf("the first %d entries: error %v, want none: %t", tt.entries, err, tt.ok)
		}
	}
}
