package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// folding is a folder of a file system that takes names for one if they fold to the same.
type folding struct{ folder }

func (f folding) enter(name string) (folder, error) {
	below, err := f.folder.enter(fold(name))
	return folding{below}, err
}
func (f folding) makeDirectory(name string, mode fs.FileMode) error {
	return f.folder.makeDirectory(fold(name), mode)
}
func (f folding) create(name string, mode fs.FileMode) (*os.File, error) {
	return f.folder.create(fold(name), mode)
}
func (f folding) link(name string, in folder, to string) error {
	return f.folder.link(fold(name), in.(folding).folder, fold(to))
}
func (f folding) symlink(name, to string) error { return f.folder.symlink(fold(name), to) }
func (f folding) rename(name, to string, replace bool) error {
	return f.folder.rename(fold(name), fold(to), replace)
}
func (f folding) look(name string) (thing, error) { return f.folder.look(fold(name)) }
func (f folding) setTime(name string, modified time.Time) error {
	return f.folder.setTime(fold(name), modified)
}

// foldingMac is macOS on such a file system.
var foldingMac = system{rules: macRules, open: func(path string) (folder, error) {
	top, err := openRooted(path)
	return folding{top}, err
}}

// naming is an archive whose regular files have their names as contents.
func naming(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content = h.Name
		}
		h.Mode, h.Size = 0o755, int64(len(content))
		must(t, w.WriteHeader(&h))
		_, err := w.Write([]byte(content))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

// wantReasons checks which entries are left out, each with a reason.
func wantReasons(t testing.TB, err error, names ...string) {
	t.Helper()
	left := &LeftOutError{}
	if errors.As(err, &left) != (len(names) > 0) || len(names) == 0 && err != nil {
		t.Fatalf("error %v, want %q", err, names)
	}
	got := []string{}
	for _, l := range left.First {
		got = append(got, l.Name)
		if l.Why == "" || !strings.Contains(err.Error(), fmt.Sprintf("%q (%s)", l.Name, l.Why)) {
			t.Errorf("%q is left out without a reason: %v", l.Name, err)
		}
	}
	if !slices.Equal(got, names) && len(names) > 0 {
		t.Errorf("left out are %q, want %q", got, names)
	}
}

// wantLeftOut is wantReasons, and checks that the files that are there have their contents.
func wantLeftOut(t testing.TB, dest string, err error, names ...string) {
	t.Helper()
	wantReasons(t, err, names...)
	must(t, filepath.WalkDir(dest, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		name, nameErr := filepath.Rel(dest, path)
		if folded := fold(filepath.ToSlash(name)); fold(string(content)) != folded && string(content) != "f" {
			t.Errorf("%q has the contents of %q", name, content)
		}
		return errors.Join(err, nameErr)
	}))
}

// What has the same name as something else of the archive is left out, and the rest is there.
func TestNamesThatAreOne(t *testing.T) {
	for _, test := range []struct {
		name    string
		entries []tar.Header
		// out is left out; below is how many more are, which have no reason of their own.
		out   []string
		below int
		// first is a file, and content is what it has.
		first, content string
	}{
		{"files", []tar.Header{file("A"), file("a"), file("b")}, []string{"a"}, 0, "A", "A"},
		{"three", []tar.Header{file("ab"), file("aB"), file("AB")}, []string{"aB", "AB"}, 0, "ab", "ab"},
		{"composed", []tar.Header{file("\u00e9"), file("e\u0301")}, []string{"e\u0301"}, 0, "\u00e9", "\u00e9"},
		{"directories", []tar.Header{directory("D"), file("D/f"), directory("d"), file("d/f"), file("d/g")}, []string{"d/"}, 2, "D/f", "D/f"},
		{"directories without entries", []tar.Header{file("D/f"), file("d/f"), file("d/e/g")}, []string{"d/f"}, 1, "D/f", "D/f"},
		{"below", []tar.Header{file("x/y/A"), file("x/y/a"), file("x/y/z")}, []string{"x/y/a"}, 0, "x/y/A", "x/y/A"},
		{"a file and a directory", []tar.Header{file("A"), directory("a"), file("a/x")}, []string{"a/"}, 1, "A", "A"},
		{"a directory and a file", []tar.Header{directory("A"), file("A/x"), file("a")}, []string{"a"}, 0, "A/x", "A/x"},
		{"hard links", []tar.Header{file("A"), file("a"), link("l", "a"), link("m", "l")}, []string{"a", "l", "m"}, 0, "A", "A"},
		{"hard link below", []tar.Header{file("D/f"), file("d/f"), link("l", "d/f")}, []string{"d/f", "l"}, 0, "D/f", "D/f"},
		{"a hard link", []tar.Header{file("f"), link("A", "f"), link("a", "f")}, []string{"a"}, 0, "f", "f"},
		{"a symbolic link", []tar.Header{symlink("A", "x"), file("a"), file("b")}, []string{"a"}, 0, "b", "b"},
		{"other directories", []tar.Header{file("x/A"), file("y/a")}, nil, 0, "y/a", "y/a"},
	} {
		for _, overwrite := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %t", test.name, overwrite), func(t *testing.T) {
				needsSymlinks(t, test.entries...)
				dest := t.TempDir()
				_, err := unpackOn(t.Context(), foldingMac, bytes.NewReader(naming(t, test.entries...)),
					Options{Dir: dest, Overwrite: overwrite, Symlinks: true})
				wantLeftOut(t, dest, err, test.out...)
				if left := (*LeftOutError)(nil); errors.As(err, &left) && left.Count != len(test.out)+test.below {
					t.Errorf("%d are left out: %v", left.Count, err)
				}
				if b, err := os.ReadFile(filepath.Join(dest, fold(test.first))); err != nil || string(b) != test.content {
					t.Errorf("%s has %q, %v", test.first, b, err)
				}
			})
		}
	}
}

// On the file system of the test: where names are not one, all of them are there, also when they are
// unpacked once more; where they are, the first.
func TestNamesHere(t *testing.T) {
	dest := t.TempDir()
	on := system{rules: macRules, open: openRooted}
	all := map[string]string{"A": "A", "a": "a", "D/f": "D/f", "d/f": "d/f", "l": "a"}
	out := []string{}
	must(t, os.Mkdir(filepath.Join(dest, "probe"), 0o700))
	if _, err := os.Lstat(filepath.Join(dest, "PROBE")); err == nil {
		all = map[string]string{"A": "A", "a": "A", "D/f": "D/f", "d/f": "D/f"}
		out = []string{"a", "d/f", "l"}
	}
	entries := naming(t, file("A"), file("a"), file("D/f"), file("d/f"), link("l", "a"))
	for _, overwrite := range []bool{false, true} {
		_, err := unpackOn(t.Context(), on, bytes.NewReader(entries), Options{Dir: dest, Overwrite: overwrite})
		wantReasons(t, err, out...)
		for name, want := range all {
			if b, err := os.ReadFile(filepath.Join(dest, name)); err != nil || string(b) != want {
				t.Errorf("%s has %q, %v", name, b, err)
			}
		}
	}
}

// What was there before is replaced, or stays, as if it had the very name.
func TestNameThatWasThere(t *testing.T) {
	for _, overwrite := range []bool{false, true} {
		dest := t.TempDir()
		write(t, filepath.Join(dest, fold("a")), "old")
		_, err := unpackOn(t.Context(), foldingMac, bytes.NewReader(naming(t, file("A"), file("A"))), Options{Dir: dest, Overwrite: overwrite})
		want := "A"
		if !overwrite {
			wantError(t, err, ErrExists)
			want = "old"
		} else {
			must(t, err)
		}
		if b, err := os.ReadFile(filepath.Join(dest, fold("a"))); err != nil || string(b) != want {
			t.Errorf("overwrite %t: %q, %v", overwrite, b, err)
		}
	}
}

// asWindows has the names of Windows alone.
var asWindows = system{rules: windowsRules, open: openRooted}

// A name that Windows does not have is left out, and the rest is there.
func TestNamesOfWindows(t *testing.T) {
	dest := t.TempDir()
	write(t, filepath.Join(dest, "THERE~1.TXT"), "f")
	_, err := unpackOn(t.Context(), asWindows, bytes.NewReader(naming(t,
		file("CON"), file("ok"), directory("a:b"), file("a:b/x"), directory("a:b/y"), file("a:b/y/z"), file("d/a. "), file("d/a"),
		link("l", "a:b/x"), link("m", "d/a. "), link("n", "l"),
		symlink("s", "//host/share"), symlink("t", "ok:x"), file("THERE~1.TXT"), file("NEW~1.TXT"),
		file("C:/x"), file(`..\outside`), file(`\\host\share\x`), file(`d\y`),
	)), Options{Dir: dest, Overwrite: true, Symlinks: true})
	wantLeftOut(t, dest, err, "CON", "a:b/", "d/a. ", "l", "m", "n", "s", "t", "THERE~1.TXT", "C:/x")
	if left := (*LeftOutError)(nil); !errors.As(err, &left) || left.Count != 16 {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"ok", "d/a", "NEW~1.TXT"} {
		if b, err := os.ReadFile(filepath.Join(dest, name)); err != nil || string(b) != name {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	names, err := os.ReadDir(dest)
	must(t, err)
	if len(names) != 4 {
		t.Errorf("%v", names)
	}
}

// Names that are left out take little memory, and a message names few of them.
func TestManyNamesAreLeftOut(t *testing.T) {
	for _, test := range []struct {
		count int
		want  string
	}{{1, "but 1 entry: \"0:\" ("}, {11, "but 11 entries: "}, {mostPlaces, "but 10000 entries: "}, {mostPlaces + 1, "more than 10000 names"}} {
		var entries []tar.Header
		for i := range test.count {
			entries = append(entries, file(fmt.Sprintf("%d:", i)))
		}
		_, err := unpackOn(t.Context(), asWindows, bytes.NewReader(naming(t, entries...)), Options{Dir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 2000 {
			t.Errorf("%d names: %.2000v", test.count, err)
		}
	}
}

func TestShortened(t *testing.T) {
	for _, test := range []struct {
		name string
		most int
		want string
	}{
		{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"a\u00e9", 2, "a"}, {"a\u00e9b", 3, "a\u00e9"}, {"\U0001f431x", 3, ""},
		{"\xff\xff\xff\xff\xff\xff", 5, "\xff\xff\xff\xff\xff"},
	} {
		if got := shortened(test.name, test.most); got != test.want {
			t.Errorf("%q, %d: %q, want %q", test.name, test.most, got, test.want)
		}
	}
}
