package verbs

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/verbstest"
)

func TestCopyOfAFile(t *testing.T) {
	n := newNode(t)
	someFiles(t, n.add(1, "etl/nightly/scratch", time.Hour))
	dest := t.TempDir()
	mustPrint(t, "", "cp", "etl/nightly:out/log.txt", dest)
	mustPrint(t, "", "cp", "etl/nightly:out/log.txt", dest+"/other")
	verbstest.WantNames(t, dest, "log.txt", "other")
	verbstest.WantFile(t, dest+"/log.txt", "one\ntwo\nthree\n")
	verbstest.WantFile(t, dest+"/other", "one\ntwo\nthree\n")
	if info, err := os.Stat(dest + "/other"); err != nil || !info.ModTime().Equal(modified) || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), info.ModTime())
	}
	mustPrint(t, "one\ntwo\nthree\n", "cp", "etl/nightly:out/log.txt", "-")
	mustPrint(t, "three\n", "cp", "--from", "8", "etl/nightly:out/log.txt", "-")

	mustFail(t, verbs.CodeFailed, []string{"cp", "etl/nightly:out/deep/er/data", dest + "/other"}, "exists already; --overwrite replaces it")
	verbstest.WantFile(t, dest+"/other", "one\ntwo\nthree\n")
	mustPrint(t, "", "cp", "--overwrite", "etl/nightly:out/deep/er/data", dest+"/other")
	verbstest.WantFile(t, dest+"/other", strings.Repeat("x", 2048))
	mustFail(t, verbs.CodeFailed, []string{"cp", "etl/nightly:out/log.txt", dest + "/missing/x"}, "no such file or directory")
	mustFail(t, verbs.CodeFailed, []string{"cp", "etl/nightly:out/log.txt", dest + "/missing/"},
		"missing/\" is not a directory: make it, or give the name of a file")
	verbstest.WantNames(t, dest, "log.txt", "other")
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
		verbstest.WantFile(t, outside, "precious")
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
	verbstest.WantNames(t, dest, "out/deep/er/data", "out/log.txt")
	verbstest.WantFile(t, dest+"/out/log.txt", "one\ntwo\nthree\n")
	// What is there stays, and what is missing comes.
	write(t, dest+"/out/log.txt", "mine")
	if err := os.RemoveAll(dest + "/out/deep"); err != nil {
		t.Fatal(err)
	}
	r = katbox(t, "cp", "etl/nightly", dest)
	if r.code != verbs.CodeFailed ||
		!strings.Contains(r.stderr, `1 entry: "out/log.txt" (it exists already); --overwrite replaces files`+"\n") {
		t.Errorf("%+v", r)
	}
	verbstest.WantNames(t, dest, "out/deep/er/data", "out/log.txt")
	verbstest.WantFile(t, dest+"/out/log.txt", "mine")
	r = katbox(t, "cp", "--overwrite", "--symlinks=keep", "--exclude", "deep", "etl/nightly:", dest)
	if r != (result{"", left, 0}) {
		t.Errorf("%+v", r)
	}
	verbstest.WantNames(t, dest, "link", "out/deep/er/data", "out/log.txt")
	dest = t.TempDir()
	mustPrint(t, "", "cp", "etl/nightly:out", dest, "--exclude", "deep")
	verbstest.WantNames(t, dest, "log.txt")

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
	write(t, dir+"/large", verbstest.Numbers(100_000))
	whole := katbox(t, "cp", "etl/nightly", "-").stdout
	dest := t.TempDir()
	mustPrint(t, "", "cp", "--tar", "etl/nightly", dest+"/new.tar")
	verbstest.WantFile(t, dest+"/new.tar", whole)
	n.cut(1, 1000, 300_000)
	mustPrint(t, "", "cp", "--tar", "etl/nightly", dest)
	mustPrint(t, "", "cp", "--tar", "etl/nightly:out", dest, "--exclude", "deep")
	mustPrint(t, "", "cp", "--tar", "etl/nightly:out/log.txt", dest)
	verbstest.WantNames(t, dest, id(1)+".tar", "log.txt.tar", "new.tar", "out.tar")
	verbstest.WantFile(t, dest+"/"+id(1)+".tar", whole)
	verbstest.WantFile(t, dest+"/out.tar", katbox(t, "cp", "etl/nightly:out", "-", "--exclude", "deep").stdout)
	mustFail(t, verbs.CodeFailed, []string{"cp", "--tar", "etl/nightly", dest + "/new.tar"}, "exists already; --overwrite replaces it")
	before := volume.Description{}
	n.goneAfter(300_000, &before)
	mustFail(t, verbs.CodeFailed, []string{"cp", "--tar", id(1), dest + "/late.tar"}, "to go on, repeat the command")
	n.change(1, func(d *volume.Description) { *d = before })
	r := katbox(t, "cp", "--tar", id(1), dest+"/late.tar")
	if r.code != 0 || !strings.Contains(r.stderr, "going on after 289 KiB") {
		t.Errorf("%+v", r)
	}
	verbstest.WantFile(t, dest+"/late.tar", whole)
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
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", verbstest.Numbers(200_000))
	shown, code := onTerminal(t, "", "cp", "etl/nightly:log", t.TempDir())
	if code != 0 || !strings.Contains(shown, "log: ") || !strings.Contains(shown, " %, ") || !strings.HasSuffix(shown, "\r\x1b[K") {
		t.Errorf("exit code %d, terminal shows %q", code, shown)
	}
}

// TestExclude: patterns are those of a .gitignore, and one that has left nothing out is said.
func TestExclude(t *testing.T) {
	n := newNode(t)
	dir := n.add(1, "etl/nightly/scratch", time.Hour)
	for _, name := range []string{"a/node_modules/x", "node_modules/y", "out/a.tmp", "out/b", "z.tmp"} {
		write(t, dir+"/"+name, name)
	}
	for what, row := range map[string]struct {
		flags, left, note string
	}{
		"directories": {"node_modules/", "a/ out/a.tmp out/b z.tmp", ""},
		"the top":     {"/node_modules", "a/node_modules/x out/a.tmp out/b z.tmp", ""},
		"any depth":   {"**/*.tmp", "a/node_modules/x node_modules/y out/b", ""},
		"taken back":  {"*.tmp !z.tmp", "a/node_modules/x node_modules/y out/b z.tmp", ""},
		"nothing": {"*.tmp nothing /b", "a/node_modules/x node_modules/y out/b",
			"--exclude \"nothing\" left nothing out\n--exclude \"/b\" left nothing out\n"},
	} {
		t.Run(what, func(t *testing.T) {
			args := []string{"cp", "etl/nightly", "", "--exclude=" + strings.Join(strings.Fields(row.flags), " --exclude=")}
			args = append(args[:3], strings.Fields(args[3])...)
			for _, dest := range []string{t.TempDir() + "/new", t.TempDir()} {
				args[2] = dest
				if r := katbox(t, args...); r != (result{"", row.note, 0}) {
					t.Errorf("%+v", r)
				}
				verbstest.WantNames(t, dest, strings.Fields(row.left)...)
			}
			args[2] = t.TempDir() + "/all.tar"
			if r := katbox(t, append(args, "--tar")...); r != (result{"", row.note, 0}) {
				t.Errorf("%+v", r)
			}
		})
	}
	mustFail(t, verbs.CodeFailed, []string{"cp", "etl/nightly", t.TempDir(), "--exclude", "["}, "not a valid pattern")
}
