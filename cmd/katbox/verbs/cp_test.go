package verbs

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/verbs"
	"github.com/katbox/katbox/internal/volume"
)

// numbers is a text in which every place differs.
func numbers(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

func wantFile(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s has %d bytes, %v, want %d", name, len(got), err, len(want))
	}
}

// wantNames checks what is below a directory.
func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	var got []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			got = append(got, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s has %q, %v, want %q", dir, got, err, want)
	}
}

func TestCopyOfAFile(t *testing.T) {
	n := newNode(t)
	someFiles(t, n.add(1, "etl/nightly/scratch", time.Hour))
	dest := t.TempDir()
	mustPrint(t, "", "cp", "etl/nightly:out/log.txt", dest)
	mustPrint(t, "", "cp", "etl/nightly:out/log.txt", dest+"/other")
	wantNames(t, dest, "log.txt", "other")
	wantFile(t, dest+"/log.txt", "one\ntwo\nthree\n")
	wantFile(t, dest+"/other", "one\ntwo\nthree\n")
	if info, err := os.Stat(dest + "/other"); err != nil || !info.ModTime().Equal(modified) || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), info.ModTime())
	}
	mustPrint(t, "one\ntwo\nthree\n", "cp", "etl/nightly:out/log.txt", "-")
	mustPrint(t, "three\n", "cp", "--from", "8", "etl/nightly:out/log.txt", "-")

	mustFail(t, verbs.CodeFailed, []string{"cp", "etl/nightly:out/deep/er/data", dest + "/other"}, "exists already; --overwrite replaces it")
	wantFile(t, dest+"/other", "one\ntwo\nthree\n")
	mustPrint(t, "", "cp", "--overwrite", "etl/nightly:out/deep/er/data", dest+"/other")
	wantFile(t, dest+"/other", strings.Repeat("x", 2048))
	mustFail(t, verbs.CodeFailed, []string{"cp", "etl/nightly:out/log.txt", dest + "/missing/x"}, "no such file or directory")
	mustFail(t, verbs.CodeFailed, []string{"cp", "etl/nightly:out/log.txt", dest + "/missing/"},
		"missing/\" is not a directory: make it, or give the name of a file")
	wantNames(t, dest, "log.txt", "other")
}

// TestCopyFollowsNothingAtTheDestination: neither the name of the file nor those of its parts.
func TestCopyFollowsNothingAtTheDestination(t *testing.T) {
	n := newNode(t)
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", "evil")
	for _, name := range []string{"log", "log" + ".partial", "log" + ".partial.etag"} {
		dest, outside := t.TempDir(), t.TempDir()+"/precious"
		write(t, outside, "precious")
		if err := os.Symlink(outside, dest+"/"+name); err != nil {
			t.Fatal(err)
		}
		r := katbox(t, "cp", "--overwrite", "etl/nightly:log", dest)
		if wanted := name == "log"; (r.code == 0) != wanted {
			t.Errorf("%s: %+v", name, r)
		}
		wantFile(t, outside, "precious")
	}
	dest := t.TempDir()
	if err := unix.Mkfifo(dest+"/log"+".partial", 0o600); err != nil {
		t.Fatal(err)
	}
	mustFail(t, verbs.CodeFailed, []string{"cp", "etl/nightly:log", dest}, "is not a file: remove it")
}

func TestCopyOfAVolume(t *testing.T) {
	n := newNode(t)
	dir := n.add(1, "etl/nightly/scratch", time.Hour)
	someFiles(t, dir)
	if err := unix.Mkfifo(dir+"/pi\x1bpe", 0o600); err != nil {
		t.Fatal(err)
	}
	left := "1 entries were left out, which are neither files, directories nor symbolic links: \"pi\\x1bpe\"\n"
	dest := t.TempDir() + "/new"
	r := katbox(t, "cp", "etl/nightly", dest)
	if r != (result{"", "1 symbolic links were left out; --symlinks=keep makes them\n" + left, 0}) {
		t.Errorf("%+v", r)
	}
	wantNames(t, dest, "out", "out/deep", "out/deep/er", "out/deep/er/data", "out/log.txt")
	wantFile(t, dest+"/out/log.txt", "one\ntwo\nthree\n")
	mustFail(t, verbs.CodeFailed, []string{"cp", "etl/nightly", dest}, "--overwrite replaces files")
	r = katbox(t, "cp", "--overwrite", "--symlinks=keep", "--exclude", "deep", "etl/nightly:", dest)
	if r != (result{"", left, 0}) {
		t.Errorf("%+v", r)
	}
	wantNames(t, dest, "link", "out", "out/deep", "out/deep/er", "out/deep/er/data", "out/log.txt")
	dest = t.TempDir()
	mustPrint(t, "", "cp", "etl/nightly:out", dest, "--exclude", "deep")
	wantNames(t, dest, "log.txt")

	r = katbox(t, "cp", "etl/nightly", "-")
	if r.code != 0 || r.stderr != left {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
	names := 0
	for archive := tar.NewReader(strings.NewReader(r.stdout)); ; names++ {
		if _, err := archive.Next(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if names < 6 {
		t.Errorf("the archive has %d entries", names)
	}
	if rest := katbox(t, "cp", "--from", "1000", "etl/nightly:", "-"); rest.stdout != r.stdout[1000:] {
		t.Error("the rest of the archive differs")
	}
}

// TestCopyToAnArchive: the archive is a file as any other, also where it is cut.
func TestCopyToAnArchive(t *testing.T) {
	n := newNode(t)
	dir := n.add(1, "etl/nightly/scratch", time.Hour)
	someFiles(t, dir)
	write(t, dir+"/large", numbers(100_000))
	whole := katbox(t, "cp", "etl/nightly", "-").stdout
	dest := t.TempDir()
	mustPrint(t, "", "cp", "--tar", "etl/nightly", dest+"/new.tar")
	wantFile(t, dest+"/new.tar", whole)
	n.cut(1, 1000, 300_000)
	mustPrint(t, "", "cp", "--tar", "etl/nightly", dest)
	mustPrint(t, "", "cp", "--tar", "etl/nightly:out", dest, "--exclude", "deep")
	mustPrint(t, "", "cp", "--tar", "etl/nightly:out/log.txt", dest)
	wantNames(t, dest, id(1)+".tar", "log.txt.tar", "new.tar", "out.tar")
	wantFile(t, dest+"/"+id(1)+".tar", whole)
	wantFile(t, dest+"/out.tar", katbox(t, "cp", "etl/nightly:out", "-", "--exclude", "deep").stdout)
	mustFail(t, verbs.CodeFailed, []string{"cp", "--tar", "etl/nightly", dest + "/new.tar"}, "exists already; --overwrite replaces it")
	before := volume.Description{}
	n.goneAfter(300_000, &before)
	mustFail(t, verbs.CodeFailed, []string{"cp", "--tar", id(1), dest + "/late.tar"}, "to go on, repeat the command")
	n.change(1, func(d *volume.Description) { *d = before })
	r := katbox(t, "cp", "--tar", id(1), dest+"/late.tar")
	if r.code != 0 || !strings.Contains(r.stderr, "going on after 293 KiB") {
		t.Errorf("%+v", r)
	}
	wantFile(t, dest+"/late.tar", whole)
}

func TestHolesStayHoles(t *testing.T) {
	n := newNode(t)
	const size = 64 << 20
	name := n.add(1, "etl/nightly/scratch", time.Hour) + "/sparse"
	write(t, name, "begin")
	if err := os.Truncate(name, size); err != nil {
		t.Fatal(err)
	}
	dest := t.TempDir()
	mustPrint(t, "", "cp", "etl/nightly:sparse", dest)
	var st syscall.Stat_t
	if err := syscall.Stat(dest+"/sparse", &st); err != nil || st.Size != size || st.Blocks*512 > 1<<20 {
		t.Errorf("%v, %d bytes on %d blocks", err, st.Size, st.Blocks)
	}
	got, err := os.ReadFile(dest + "/sparse")
	if err != nil || !bytes.HasPrefix(got, []byte("begin\x00")) || len(bytes.TrimRight(got, "\x00")) != 5 {
		t.Errorf("%v", err)
	}
}

// TestProgress: it is on a terminal only, and gone in the end.
func TestProgress(t *testing.T) {
	n := newNode(t)
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", numbers(200_000))
	shown, code := onTerminal(t, "", "cp", "etl/nightly:log", t.TempDir())
	if code != 0 || !strings.Contains(shown, "log: ") || !strings.Contains(shown, " %, ") || !strings.HasSuffix(shown, "\r\x1b[K") {
		t.Errorf("exit code %d, terminal shows %q", code, shown)
	}
}
