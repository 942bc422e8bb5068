package tarball

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/cli/unpack"
	"github.com/katbox/katbox/internal/lib/patterns"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// volume makes a directory with everything that an archive has to keep.
func volume(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write(t, in("plain"), "hello\n")
	write(t, in("empty"), "")
	write(t, in("block"), strings.Repeat("x", 512))
	write(t, in("large"), strings.Repeat("0123456789abcdef", 40_000))
	write(t, in("ä–名"), "not ASCII")
	write(t, in("bad\xff\xfeutf8"), "not UTF-8")
	write(t, in("new\nline \x1b[31m"), "control characters")
	write(t, in("-rf"), "looks like a flag")
	write(t, in(strings.Repeat("n", 255)), "a long name")
	must(t, os.Mkdir(in("dir"), 0o750))
	must(t, os.Mkdir(in("dir/empty"), 0o700))
	write(t, in("dir/inner"), "inner")
	must(t, os.Chmod(in("dir/inner"), 0o640))
	must(t, os.Chtimes(in("dir/inner"), time.Time{}, time.Unix(-86_400*365*10, 0)))
	must(t, os.Link(in("plain"), in("dir/linked")))
	must(t, os.Symlink("/etc/shadow", in("symlink")))
	must(t, os.Symlink("gone\xff", in("dir/dangling")))
	deep := dir
	for len(deep) < 3900 {
		deep = filepath.Join(deep, strings.Repeat("d", 100))
	}
	must(t, os.MkdirAll(deep, 0o755))
	write(t, filepath.Join(deep, "file"), "deep down")
	holes(t, in("dir/holes"), 1<<20, 100_000, 700_001)
	holes(t, in("hole\xffutf8"), 1<<20, 0)
	holes(t, in("only-hole"), 5<<20)
	return dir
}

// holes makes a file with some bytes at each of the given places.
func holes(t testing.TB, path string, size int64, at ...int64) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(size))
	for _, offset := range at {
		_, err := f.WriteAt([]byte("data"), offset)
		must(t, err)
	}
}

// content describes everything below a directory.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || path == dir {
			return err
		}
		text := fmt.Sprint(info.Mode())
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			must(t, err)
			text += fmt.Sprint(" ", info.ModTime().UnixNano(), " ", string(b))
		case info.IsDir():
			text += fmt.Sprint(" ", info.ModTime().UnixNano())
		default:
			target, err := os.Readlink(path)
			must(t, err)
			text += " " + target
		}
		name, err := filepath.Rel(dir, path)
		all[name] = text
		return err
	}))
	return all
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%q is %.100q, want %.100q", name, got[name], want[name])
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%q is too much", name)
		}
	}
}

// Every program unpacks the same files, with their holes.
func TestUnpackers(t *testing.T) {
	unix.Umask(0o022)
	dir := volume(t)
	archive, report := archiveOf(t, dir, Options{})
	if report.Skipped+report.Changed > 0 {
		t.Errorf("report: %+v", report)
	}
	want := contents(t, dir)
	for _, test := range []struct {
		name   string
		unpack func(to string) error
	}{
		{"katbox", func(to string) error {
			_, err := unpack.Unpack(t.Context(), bytes.NewReader(archive), unpack.Options{Dir: to, Symlinks: true})
			return err
		}},
		{"tar", func(to string) error {
			return program(archive, "tar", "--warning=no-timestamp", "--warning=no-unknown-keyword", "-C", to, "-xf", "-")
		}},
		{"bsdtar", func(to string) error { return program(archive, "bsdtar", "-C", to, "-xf", "-") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.name != "katbox" {
				roottest.Programs(t, test.name)
			}
			to := t.TempDir()
			must(t, test.unpack(to))
			same(t, contents(t, to), want)
			for _, name := range []string{"dir/holes", "hole\xffutf8", "only-hole"} {
				var st unix.Stat_t
				must(t, unix.Stat(filepath.Join(to, name), &st))
				if st.Blocks*512 > 100_000 {
					t.Errorf("%q takes %d bytes on the disk", name, st.Blocks*512)
				}
			}
			var first, second unix.Stat_t
			must(t, unix.Stat(filepath.Join(to, "plain"), &first))
			must(t, unix.Stat(filepath.Join(to, "dir/linked"), &second))
			if first.Ino != second.Ino {
				t.Error("the hard link became a copy")
			}
		})
	}
}

func program(in []byte, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	cmd.Stdin = bytes.NewReader(in)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		return fmt.Errorf("%s: %s: %w", name, out, errors.Join(err, errors.New("it failed or warned")))
	}
	return nil
}

// An archive that is resumed has exactly the bytes that were missing.
func TestResume(t *testing.T) {
	dir := volume(t)
	full, whole := archiveOf(t, dir, Options{})
	random := rand.New(rand.NewPCG(1, 2))
	places := []int64{0, 1, 511, 512, 513, int64(len(full)) - 1024, int64(len(full)) - 1, int64(len(full))}
	for range 200 {
		places = append(places, random.Int64N(int64(len(full))))
	}
	for _, skip := range places {
		resumed, report := archiveOf(t, dir, Options{Skip: skip})
		if !bytes.Equal(resumed, full[skip:]) {
			t.Fatalf("resumed at %d of %d: other bytes", skip, len(full))
		}
		report.Changed, whole.Changed = 0, 0
		if fmt.Sprint(report) != fmt.Sprint(whole) {
			t.Fatalf("resumed at %d: report %+v, want %+v", skip, report, whole)
		}
	}
	_, err := Write(t.Context(), io.Discard, reading(t, dir), Options{Skip: int64(len(full)) + 1})
	wantError(t, err, ErrBadSkip)
}

// tarNames are the names in an archive.
func tarNames(t testing.TB, archive []byte) (names []string) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err == io.EOF {
			slices.Sort(names)
			return names
		}
		must(t, err)
		names = append(names, h.Name)
	}
}

func TestExcludeAndPath(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "a/node_modules/b"), 0o755))
	must(t, os.MkdirAll(filepath.Join(dir, "a/out"), 0o755))
	write(t, filepath.Join(dir, "a/node_modules/b/x"), "")
	write(t, filepath.Join(dir, "a/out/x.log"), "")
	write(t, filepath.Join(dir, "a/x.log"), "")
	for _, test := range []struct {
		path    string
		exclude []string
		want    string
	}{
		{"", nil, "a/ a/node_modules/ a/node_modules/b/ a/node_modules/b/x a/out/ a/out/x.log a/x.log"},
		{"", []string{"node_modules"}, "a/ a/out/ a/out/x.log a/x.log"},
		{"", []string{"*.log", "b"}, "a/ a/node_modules/ a/out/"},
		{"", []string{"a/*.log", "a/node*"}, "a/ a/out/ a/out/x.log"},
		{"a", []string{"node_modules"}, "out/ out/x.log x.log"},
		{"a/out/x.log", nil, "x.log"},
		{"a", []string{"*"}, ""},
	} {
		archive, _ := archiveOf(t, dir, Options{Path: mustPath(t, test.path), Exclude: test.exclude})
		if got := strings.Join(tarNames(t, archive), " "); got != test.want {
			t.Errorf("path %q without %q: %q, want %q", test.path, test.exclude, got, test.want)
		}
	}
	_, err := Write(t.Context(), io.Discard, reading(t, dir), Options{Exclude: []string{"[a"}})
	wantError(t, err, patterns.ErrBad)
}

// What cannot be archived is left out of a directory, and refused by itself.
func TestSkipped(t *testing.T) {
	dir := t.TempDir()
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	must(t, os.Symlink("fifo", filepath.Join(dir, "link")))
	write(t, filepath.Join(dir, "file"), "")
	must(t, unix.Chmod(filepath.Join(dir, "file"), 0o6755))
	archive, report := archiveOf(t, dir, Options{})
	if got := strings.Join(tarNames(t, archive), " "); got != "file link" {
		t.Errorf("the archive has %q", got)
	}
	if report.Skipped != 1 || !slices.Equal(report.SkippedNames, []string{"fifo"}) {
		t.Errorf("report: %+v", report)
	}
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err != nil {
			break
		}
		if h.Name == "file" && h.Mode != 0o755 {
			t.Errorf("mode %o", h.Mode)
		}
	}
	for name, want := range map[string]error{"fifo": files.ErrNotRegular, "link": files.ErrSymlink, "none": os.ErrNotExist} {
		_, err := Write(t.Context(), io.Discard, reading(t, dir), Options{Path: mustPath(t, name)})
		wantError(t, err, want)
	}
}
