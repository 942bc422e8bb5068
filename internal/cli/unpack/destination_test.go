//go:build linux

package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// folded are the file systems that take names for one that differ in case.
var folded = []string{"vfat", "exfat", "ext4"}

// TestOneNameForTwo: on a file system that takes two names for one, the first entry stays, the second is left out and
// said, and the rest is there: in a new directory and in one that exists, with and without replacing, and a second time.
func TestOneNameForTwo(t *testing.T) {
	entries := []tar.Header{
		file("README"), file("readme"), directory("Docs"), file("Docs/a"), directory("docs"), file("docs/b"),
		file("sub/\u00c9t\u00e9"), file("sub/\u00e9T\u00e9"), file("1"), file("last"),
	}
	for _, fstype := range folded {
		t.Run(fstype, func(t *testing.T) {
			want := []string{"readme", "docs/", "sub/\u00e9T\u00e9"}
			if fstype == "vfat" {
				want = want[:2] // Without an option, its letters with accents are two bytes of another alphabet.
			}
			top := roottest.Folding(t, fstype, 64)
			for _, row := range []struct {
				name      string
				overwrite bool
				exists    bool
				save      func(Checkpoint) error
			}{
				{"new", false, false, nil},
				{"existing", true, true, nil},
				{"replaced", true, true, nil},
				{"resumable", false, true, (&saved{}).save},
			} {
				dest := filepath.Join(top, row.name)
				if row.exists {
					must(t, os.Mkdir(dest, 0o777))
				}
				for range 2 {
					_, err := Unpack(t.Context(), bytes.NewReader(naming(t, entries...)), Options{Dir: dest, Overwrite: row.overwrite, Save: row.save})
					if row.name == "new" && errors.Is(err, ErrExists) {
						break // the second time
					}
					wantLeftOut(t, dest, err, want...)
					for _, name := range []string{"README", "Docs/a", "sub/\u00c9t\u00e9", "1", "last"} {
						if b, err := os.ReadFile(filepath.Join(dest, name)); err != nil || string(b) != name {
							t.Errorf("%s: %s: %q, %v", row.name, name, b, err)
						}
					}
				}
			}
		})
	}
}

// TestOneNameForTwoAfterACut: what a call before has brought is known by its very name.
func TestOneNameForTwoAfterACut(t *testing.T) {
	for _, fstype := range folded {
		t.Run(fstype, func(t *testing.T) {
			top := roottest.Folding(t, fstype, 64)
			whole := naming(t, directory("d"), file("d/README"), file("d/1"), file("d/readme"), file("d/last"))
			for cut := 512; cut < len(whole)-1024; cut += 512 {
				dest, s := filepath.Join(top, "x"), saved{}
				_, err := Unpack(t.Context(), bytes.NewReader(whole[:cut]), Options{Dir: dest, Save: s.save})
				if err == nil {
					t.Fatal("no error")
				}
				_, err = Unpack(t.Context(), bytes.NewReader(whole[s.Next:]), Options{Dir: dest, Save: s.save, From: s.Checkpoint})
				wantLeftOut(t, dest, err, "d/readme")
				names, err := os.ReadDir(filepath.Join(dest, "d"))
				if err != nil || len(names) != 3 {
					t.Errorf("cut at %d: %v, %v", cut, names, err)
				}
				must(t, os.RemoveAll(dest))
			}
		})
	}
}

// TestNamesOfAFAT: a short name and a dot at the end are one with another name.
func TestNamesOfAFAT(t *testing.T) {
	dest := roottest.FileSystem(t, "vfat", 64)
	_, err := Unpack(t.Context(), bytes.NewReader(naming(t,
		file("long name.text"), file("LONGNA~1.TEX"), file("a"), file("a."), file("..."), file("last"))), Options{Dir: dest, Overwrite: true})
	wantReasons(t, err, "LONGNA~1.TEX", "a.", "...")
	for _, name := range []string{"long name.text", "a", "last"} {
		if b, err := os.ReadFile(filepath.Join(dest, name)); err != nil || string(b) != name {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// TestWhatAFileSystemLacks: what it refuses is left out, whatever its error number is, and the rest is there. A directory
// without modes is no error.
func TestWhatAFileSystemLacks(t *testing.T) {
	long := strings.Repeat("n", 255)
	private := directory("private")
	private.Mode = 0o700
	entries := []tar.Header{
		file("first"), link("second", "first"), link("third", "second"), symlink("s", "first"), file("12:00:00.log"), directory("a:b"),
		file("a:b/c"), private, file("private/x"), file("d/what?"), file("d/" + long), file("last"),
	}
	for _, fstype := range []string{"vfat", "exfat"} {
		t.Run(fstype, func(t *testing.T) {
			top := roottest.FileSystem(t, fstype, 64)
			for name, o := range map[string]Options{"plain": {}, "overwrite": {Overwrite: true}, "resumable": {Save: (&saved{}).save}} {
				o.Dir, o.Symlinks = filepath.Join(top, name), true
				_, err := Unpack(t.Context(), bytes.NewReader(naming(t, entries...)), o)
				wantReasons(t, err, "second", "third", "s", "12:00:00.log", "a:b/", "d/what?")
				if left := (*LeftOutError)(nil); !errors.As(err, &left) || left.Count != 7 {
					t.Errorf("%v", err)
				}
				for _, name := range []string{"first", "private/x", "d/" + long, "last"} {
					if b, err := os.ReadFile(filepath.Join(o.Dir, name)); err != nil || string(b) != name {
						t.Errorf("%.20s: %q, %v", name, b, err)
					}
				}
				for _, dir := range []string{"", "d", "private"} {
					if left, _ := filepath.Glob(filepath.Join(o.Dir, dir, "*"+suffix+"*")); len(left) > 0 {
						t.Errorf("%q stays", left)
					}
				}
			}
		})
	}
}

// TestTooLargeForTheFileSystem: such a file is left out, and the rest is there. ext4 without extents has an end.
func TestTooLargeForTheFileSystem(t *testing.T) {
	dest := filepath.Join(roottest.FileSystem(t, "ext4", 64, "-O", "^extent,^64bit", "-b", "1024"), "new")
	large := holes(t, "1\n20000000000\n1\nx", 20_000_000_001)
	entries := append(large[:len(large)-1024], archive(t, file("last"))...)
	_, err := Unpack(t.Context(), bytes.NewReader(entries), Options{Dir: dest})
	left := (*LeftOutError)(nil)
	if !errors.As(err, &left) || left.Count != 1 {
		t.Fatalf("%v", err)
	}
	names, err := os.ReadDir(dest)
	if err != nil || len(names) != 1 || names[0].Name() != "last" {
		t.Errorf("%v, %v", names, err)
	}
}

// TestFullDiskEnds: no entry is left out for what no other one would have either.
func TestFullDiskEnds(t *testing.T) {
	dest := filepath.Join(roottest.FileSystem(t, "ext4", 16), "new")
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"a", "b"} {
		content := bytes.Repeat([]byte(name), 32<<20)
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}))
		_, err := w.Write(content)
		must(t, err)
	}
	must(t, w.Close())
	_, err := Unpack(t.Context(), &b, Options{Dir: dest})
	if err == nil || errors.As(err, new(*LeftOutError)) || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("%v", err)
	}
}

// TestCoarseTimes are those that the file system keeps.
func TestCoarseTimes(t *testing.T) {
	dest := roottest.FileSystem(t, "ext4", 64, "-I", "128")
	f := file("f")
	f.ModTime, f.Format = time.Unix(1_600_000_000, 123_456_789), tar.FormatPAX
	report, err := Unpack(t.Context(), bytes.NewReader(archive(t, f)), Options{Dir: dest})
	info, statErr := os.Stat(filepath.Join(dest, "f"))
	if err != nil || statErr != nil || report.Untimed != 0 || info.ModTime().Unix() != f.ModTime.Unix() {
		t.Errorf("%v, %v, %+v, %v", err, statErr, report, info.ModTime())
	}
}
