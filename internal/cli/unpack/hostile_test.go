package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// No archive changes anything outside of the destination, be it by what it brings or by what is
// there. OUTSIDE is the path of a directory outside.
func TestHostileArchives(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		for _, test := range []struct {
			name    string
			entries []tar.Header
			// want is the error, in every mode of unpacking.
			want error
		}{
			{"parent", []tar.Header{file("../outside/file")}, ErrUnsafe},
			{"parent in the middle", []tar.Header{directory("a"), file("a/../../outside/file")}, ErrUnsafe},
			{"parent at the end", []tar.Header{directory("a/..")}, ErrUnsafe},
			{"parent directory", []tar.Header{directory("../outside/new")}, ErrUnsafe},
			{"absolute", []tar.Header{file("OUTSIDE/file")}, ErrUnsafe},
			{"absolute directory", []tar.Header{directory("OUTSIDE/new")}, ErrUnsafe},
			{"present", []tar.Header{directory(".")}, ErrUnsafe},
			{"empty element", []tar.Header{file("a//b")}, ErrUnsafe},
			{"through a symlink of the archive", []tar.Header{symlink("s", "../outside"), file("s/file")}, ErrExists},
			{"through an absolute symlink", []tar.Header{symlink("s", "/"), file("sOUTSIDE/file")}, ErrExists},
			{"through two symlinks", []tar.Header{symlink("a", "."), symlink("b", "a/.."), file("b/outside/file")}, ErrExists},
			{"directory onto a symlink", []tar.Header{symlink("s", "../outside/dir"), directory("s")}, ErrExists},
			{"through a symlink that was there", []tar.Header{file("to-outside/file")}, ErrExists},
			{"directory through a symlink that was there", []tar.Header{directory("to-outside/new")}, ErrExists},
			{"directory onto a symlink that was there", []tar.Header{directory("to-outside")}, ErrExists},
			{"symlink through a symlink that was there", []tar.Header{symlink("to-outside/new", "x")}, ErrExists},
			{"hard link to a parent", []tar.Header{link("l", "../outside/file")}, ErrUnsafe},
			{"hard link to an absolute name", []tar.Header{link("l", "OUTSIDE/file")}, ErrUnsafe},
			{"hard link through a symlink", []tar.Header{link("l", "to-outside/file")}, ErrUnsafe},
			{"hard link to a symlink", []tar.Header{link("l", "to-file")}, ErrUnsafe},
			{"hard link to a directory", []tar.Header{directory("a"), link("l", "a")}, ErrUnsafe},
			{"hard link into a symlink", []tar.Header{file("f"), link("to-outside/l", "f")}, ErrExists},
			{"device", []tar.Header{{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}}, ErrUnsafe},
			{"block device", []tar.Header{{Typeflag: tar.TypeBlock, Name: "disk", Devmajor: 8}}, ErrUnsafe},
			{"FIFO", []tar.Header{{Typeflag: tar.TypeFifo, Name: "fifo"}}, ErrUnsafe},
			{"unknown type", []tar.Header{{Typeflag: 'Z', Name: "unknown"}}, ErrUnsafe},
			{"global header", []tar.Header{{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"path": "x"}}}, tar.ErrHeader},
		} {
			t.Run(test.name, func(t *testing.T) {
				for _, overwrite := range []bool{false, true} {
					needsSymlinks(t, test.entries...)
					outside, dest := place(t)
					entries := slices.Clone(test.entries)
					for i := range entries {
						entries[i].Name = strings.ReplaceAll(entries[i].Name, "OUTSIDE", outside)
						entries[i].Linkname = strings.ReplaceAll(entries[i].Linkname, "OUTSIDE", outside)
					}
					before := state(t, outside)
					_, err := unpackOn(t.Context(), on, bytes.NewReader(header(t, entries)), Options{Dir: dest, Overwrite: overwrite, Symlinks: true})
					// An absolute path of Windows has a colon and backslashes.
					if left := (*LeftOutError)(nil); runtime.GOOS != "windows" || !errors.As(err, &left) {
						wantError(t, err, test.want)
					}
					if after := state(t, outside); after != before {
						t.Errorf("overwrite %v: outside was\n%sand is\n%s", overwrite, before, after)
					}
				}
			})
		}
	})
}

// header is archive without the modes that a global header may not have.
func header(t testing.TB, entries []tar.Header) []byte {
	t.Helper()
	if entries[0].Typeflag != tar.TypeXGlobalHeader {
		return archive(t, entries...)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(&entries[0]))
	must(t, w.Close())
	return b.Bytes()
}

// Files and symbolic links that are in the way are replaced or stay. They are not written into.
func TestOverwrite(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		for _, test := range []struct {
			name  string
			entry tar.Header
			// replaced: Overwrite replaces what is there.
			replaced bool
		}{
			{"existing", file("existing"), true},
			{"to-file", file("to-file"), true},
			{"to-existing", file("to-existing"), true},
			{"to-outside", file("to-outside"), true},
			{"existing", symlink("existing", "x"), true},
			{"to-file", symlink("to-file", "x"), true},
			{"existing", link("existing", "twice"), true},
			{"to-file", link("to-file", "twice"), true},
			{"twice", link("twice", "second"), true},
			{"dir", file("dir"), false},
			{"dir", symlink("dir", "x"), false},
			{"fifo", file("fifo"), false},
			{"existing", directory("existing"), false},
			{"to-outside", directory("to-outside"), false},
		} {
			for _, overwrite := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s by %q %t", test.name, test.entry.Typeflag, overwrite), func(t *testing.T) {
					overwrites(t, on, test.name, test.entry, overwrite, overwrite && test.replaced)
				})
			}
		}
	})
}

func overwrites(t *testing.T, on system, name string, entry tar.Header, overwrite, replaced bool) {
	needsSymlinks(t, entry)
	if runtime.GOOS == "windows" && name == "fifo" {
		t.Skip("there are none")
	}
	outside, dest := place(t)
	must(t, os.Mkdir(filepath.Join(dest, "dir"), 0o755))
	fifo(t, filepath.Join(dest, "fifo"))
	write(t, filepath.Join(dest, "twice"), "old")
	must(t, os.Link(filepath.Join(dest, "twice"), filepath.Join(dest, "second")))
	before, beforeOutside := state(t, dest), state(t, outside)
	_, err := unpackOn(t.Context(), on, bytes.NewReader(archive(t, entry)), Options{Dir: dest, Overwrite: overwrite, Symlinks: true})
	if replaced {
		must(t, err)
		if leftover, _ := filepath.Glob(dest + "/*" + suffix + "*"); len(leftover) > 0 {
			t.Errorf("%q stays", leftover)
		}
	} else {
		wantError(t, err, ErrExists)
		if state(t, dest) != before {
			t.Errorf("it was\n%sand is\n%s", before, state(t, dest))
		}
	}
	if state(t, outside) != beforeOutside {
		t.Error("something changed outside")
	}
	if b, err := os.ReadFile(filepath.Join(dest, "existing")); name != "existing" && (err != nil || string(b) != "old") {
		t.Errorf("the file behind it has %q, %v", b, err)
	}
}

// Nothing gets a bit above 0777, and symbolic links are left out unless they are asked for.
func TestModesAndSymlinks(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		dest := filepath.Join(t.TempDir(), "new")
		set := file("setuid")
		set.Mode = 0o7755
		dir := directory("dir")
		dir.Mode = 0o7555
		closed := directory("closed")
		closed.Mode = 0o500
		entries := archive(t, set, dir, file("dir/inner"), closed, file("closed/inner"), symlink("s", "dir"), link("l", "dir/inner"))
		report, err := unpackOn(t.Context(), on, bytes.NewReader(entries), Options{Dir: dest})
		must(t, err)
		want := Report{Files: 3, Directories: 2, Links: 1, SkippedSymlinks: 1, Bytes: int64(len(entries)), Next: int64(len(entries)) - 1024}
		if report != want {
			t.Errorf("report %+v, want %+v", report, want)
		}
		for name, want := range map[string]fs.FileMode{
			"setuid": 0o755, "dir": fs.ModeDir | 0o555, "closed": fs.ModeDir | 0o500, "dir/inner": 0o755,
		} {
			info, err := os.Lstat(filepath.Join(dest, name))
			must(t, err)
			if !on.noModes && info.Mode()|0o022 != want|0o022 {
				t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
			}
		}
		if _, err := os.Lstat(filepath.Join(dest, "s")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the symbolic link: %v", err)
		}
		must(t, os.Chmod(filepath.Join(dest, "closed"), 0o700))
	})
}

// An archive that ends early is an error, wherever that is. A file that is cut is not there.
func TestCutArchive(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		whole := archive(t, file("first"), directory("dir"), file("dir/second"))
		for cut := 0; cut < len(whole); cut += 13 {
			dest := t.TempDir()
			_, err := unpackOn(t.Context(), on, bytes.NewReader(whole[:cut]), Options{Dir: dest})
			if err == nil {
				t.Fatalf("cut at %d of %d: no error", cut, len(whole))
			}
			for name, end := range map[string]int{"first": 512 + 3, "dir/second": 4*512 - 512 + 512 + 3} {
				_, err := os.Lstat(filepath.Join(dest, name))
				if (err == nil) != (cut >= end) {
					t.Fatalf("cut at %d: %s: %v", cut, name, err)
				}
			}
		}
		dest := t.TempDir()
		_, err := unpackOn(t.Context(), on, bytes.NewReader(whole[:513]), Options{Dir: dest})
		if err == nil || !strings.Contains(err.Error(), "first.partial") {
			t.Errorf("error %v does not name the partial file", err)
		}
		if b, err := os.ReadFile(filepath.Join(dest, "first.partial")); err != nil {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// A file is not written into another one that has the name of its partial file.
func TestPartialIsTaken(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		dest := t.TempDir()
		long := strings.Repeat("n", nameMax)
		entries := archive(t, file("a.partial"), file("a.partial.1"), file("a"), file(long))
		_, err := unpackOn(t.Context(), on, bytes.NewReader(entries), Options{Dir: dest})
		must(t, err)
		names, err := os.ReadDir(dest)
		must(t, err)
		if len(names) != 4 || names[3].Name() != long {
			t.Errorf("%v", names)
		}
	})
}

// What gets the name while the file is unpacked stays.
func TestNameIsTakenMeanwhile(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		dest := t.TempDir()
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "file", Mode: 0o644, Size: 4 * bufferSize}))
		_, err := w.Write(bytes.Repeat([]byte("new "), bufferSize))
		must(t, err)
		must(t, w.Close())
		r := io.MultiReader(io.LimitReader(&b, 2*bufferSize), &calls{func() { write(t, filepath.Join(dest, "file"), "theirs") }}, &b)
		_, err = unpackOn(t.Context(), on, r, Options{Dir: dest})
		wantError(t, err, ErrExists)
		if got, err := os.ReadFile(filepath.Join(dest, "file")); err != nil || string(got) != "theirs" {
			t.Errorf("%.10q, %v", got, err)
		}
	})
}

// calls is an empty reader that calls a function.
type calls struct{ function func() }

func (c *calls) Read([]byte) (int, error) {
	c.function()
	return 0, io.EOF
}

// A directory that is moved away meanwhile does not take the archive along.
func TestMovedMeanwhile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nothing moves a directory that is open")
	}
	eachSystem(t, func(t *testing.T, on system) {
		const depth = maxOpen + 10
		outside, dest := place(t)
		var entries []tar.Header
		for i := 1; i <= depth; i++ {
			entries = append(entries, directory(strings.Repeat("d/", i-1)+"d"))
		}
		down := archive(t, entries...)
		down = down[:len(down)-1024]
		up := archive(t, file("d/d/z"))
		before := state(t, filepath.Join(outside, "dir"))
		r := io.MultiReader(bytes.NewReader(down), &calls{func() {
			must(t, os.Rename(filepath.Join(dest, "d/d/d"), filepath.Join(outside, "d")))
		}}, bytes.NewReader(up))
		_, err := unpackOn(t.Context(), on, r, Options{Dir: dest})
		if err == nil || !strings.Contains(err.Error(), "moved") {
			t.Errorf("error %v", err)
		}
		names, err := os.ReadDir(outside)
		must(t, err)
		if len(names) != 3 || before != state(t, filepath.Join(outside, "dir")) {
			t.Errorf("outside has %v", names)
		}
	})
}

// An error of the reader behind the end of the archive is an error, and so is one that says nothing
// but that the stream was cut.
func TestErrorBehindTheEnd(t *testing.T) {
	for _, want := range []error{io.ErrUnexpectedEOF, errors.New("the volume is gone")} {
		r := io.MultiReader(bytes.NewReader(archive(t, file("file"))), iotest.ErrReader(want))
		_, err := Unpack(t.Context(), r, Options{Dir: t.TempDir()})
		wantError(t, err, want)
	}
}

// Directories deeper than what is held open get their modes, and hostile depth costs no handles.
func TestDeepDirectories(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		const depth = 3 * maxOpen
		var entries []tar.Header
		for i := 1; i <= depth; i++ {
			d := directory(strings.Repeat("d/", i-1) + "d")
			d.Mode = 0o700 + int64(i%2)
			entries = append(entries, d, file(strings.Repeat("d/", i)+"before"))
		}
		for i := depth; i > 0; i-- {
			entries = append(entries, file(strings.Repeat("d/", i)+"z"))
		}
		dest := t.TempDir()
		_, err := unpackOn(t.Context(), on, bytes.NewReader(archive(t, entries...)), Options{Dir: dest})
		must(t, err)
		for i := 1; i <= depth; i++ {
			dir := filepath.Join(dest, strings.Repeat("d/", i))
			info, err := os.Lstat(dir)
			must(t, err)
			if want := fs.FileMode(0o700 + i%2); !on.noModes && info.Mode().Perm() != want {
				t.Fatalf("level %d has mode %v, want %v", i, info.Mode().Perm(), want)
			}
			for _, name := range []string{"before", "z"} {
				_, err := os.Lstat(filepath.Join(dir, name))
				must(t, err)
			}
		}
	})
}
