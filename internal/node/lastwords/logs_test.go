package lastwords

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/api"
)

var nightly = Pod{UID: "0e8dfcf5-8b1f-4a52-9c7b-2f8f9b0c1d2e", Namespace: "ci", Name: "nightly-x7k2p"}

const nightlyDir = "ci_nightly-x7k2p_0e8dfcf5-8b1f-4a52-9c7b-2f8f9b0c1d2e"

// node is a directory of pods' logs that is followed.
type node struct {
	*Logs
	t   *testing.T
	dir string
	// opened gets a token when the number of open files has changed.
	opened chan struct{}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, mostOpen int) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), opened: make(chan struct{}, 1)}
	var err error
	n.Logs, err = Open(Config{Dir: n.dir, MostOpen: mostOpen, Opened: func(int) {
		select {
		case n.opened <- struct{}{}:
		default:
		}
	}})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		n.Close()
		if open := n.open.Load(); open != 0 {
			t.Errorf("%d files are open at the end", open)
		}
	})
	return n
}

// await waits until a number of files is open.
func (n *node) await(open int64) {
	n.t.Helper()
	late, cancel := context.WithTimeout(n.t.Context(), time.Minute)
	defer cancel()
	for n.open.Load() != open {
		select {
		case <-n.opened:
		case <-late.Done():
			n.t.Fatalf("%d files are open, want %d", n.open.Load(), open)
		}
	}
}

func (n *node) path(elements ...string) string {
	return filepath.Join(append([]string{n.dir, nightlyDir}, elements...)...)
}

func (n *node) write(container, file, text string) {
	n.t.Helper()
	must(n.t, os.MkdirAll(n.path(container), 0o755))
	must(n.t, os.WriteFile(n.path(container, file), []byte(text), 0o640))
}

// copied is what Copy makes of the pod.
func (n *node) copied(limit int64) (map[string]string, Kept) {
	n.t.Helper()
	to := n.t.TempDir()
	kept, err := n.copyTo(to, limit)
	must(n.t, err)
	return content(n.t, to), kept
}

func (n *node) copyTo(dir string, limit int64) (Kept, error) {
	n.t.Helper()
	to, err := os.Open(dir)
	must(n.t, err)
	defer to.Close()
	return n.Copy(n.t.Context(), nightly.UID, int(to.Fd()), limit, context.Context.Err)
}

// content is what is in a directory, by the paths.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	}))
	return found
}

func wantContent(t *testing.T, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("kept\n%q, want\n%q", got, want)
	}
}

// line is a line of a runtime.
func line(text string) string { return "2026-11-30T05:00:00.123456789Z stdout F " + text + "\n" }

// TestFollows: the directory comes after the pod's volume, its files come and are renamed, and all goes before anything is
// copied. What was written after the names were gone is there, too.
func TestFollows(t *testing.T) {
	n := start(t, 100)
	n.Follow(nightly)
	n.write("main", "0.log", line("first"))
	n.await(1)
	writer, err := os.OpenFile(n.path("main", "0.log"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer writer.Close()
	must(t, os.Rename(n.path("main", "0.log"), n.path("main", "0.log.20261130-050000")))
	n.write("main", "0.log", line("second"))
	n.await(2)
	n.write("init", "0.log", line("at first"))
	n.await(3)
	n.write("main", "1.log", line("again"))
	n.await(4)
	must(t, os.RemoveAll(n.path()))
	_, err = writer.WriteString(line("the last word"))
	must(t, err)
	n.Look(t.Context(), nightly.UID)

	got, kept := n.copied(1 << 20)
	want := map[string]string{
		"main/0.log.20261130-050000": line("first") + line("the last word"),
		"main/0.log":                 line("second"),
		"main/1.log":                 line("again"),
		"init/0.log":                 line("at first"),
	}
	wantContent(t, got, want)
	if kept.Files != 4 || kept.Missing != 0 || kept.Bytes != int64(len(strings.Join(slices.Collect(maps.Values(want)), ""))) {
		t.Errorf("kept %+v", kept)
	}
	n.Leave(nightly.UID)
	n.await(0)
	if n.Has(nightly.UID) {
		t.Error("a pod that is left has files")
	}
}

// TestLooksAtOnce: without Run, as where the pod ends before it has looked.
func TestLooksAtOnce(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(Config{Dir: dir, MostOpen: 10})
	must(t, err)
	defer l.Close()
	n := &node{Logs: l, t: t, dir: dir}
	n.Follow(nightly)
	if n.Has(nightly.UID) {
		t.Error("a pod without a directory has files")
	}
	n.write("main", "0.log", line("all"))
	n.Look(t.Context(), nightly.UID)
	must(t, os.RemoveAll(n.path()))
	if !n.Has(nightly.UID) {
		t.Error("what was opened is not there")
	}
	got, _ := n.copied(1 << 20)
	wantContent(t, got, map[string]string{"main/0.log": line("all")})
	if _, kept := (&node{Logs: l, t: t, dir: dir}).copied(1 << 20); kept.Files != 1 {
		t.Error("it cannot be copied twice")
	}
}

// TestSeen: what the kernel says is enough to know that all is open, and nothing that comes then is missed.
func TestSeen(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(Config{Dir: dir, MostOpen: 10})
	must(t, err)
	defer l.Close()
	n := &node{Logs: l, t: t, dir: dir}
	n.Follow(nightly)
	want := map[string]string{}
	comes := func(what string, change func()) {
		t.Helper()
		n.Look(t.Context(), nightly.UID)
		if !n.upToDate(nightly.UID).isSeen() {
			t.Errorf("%s: it is not known that all is open", what)
		}
		change()
		if n.upToDate(nightly.UID).isSeen() {
			t.Errorf("%s is not noticed", what)
		}
	}
	for _, file := range []string{"0.log", "1.log"} {
		comes(file, func() { n.write("main", file, line(file)) })
		want["main/"+file] = line(file)
	}
	comes("another container", func() { n.write("sidecar", "0.log", line("beside")) })
	want["sidecar/0.log"] = line("beside")
	comes("a rotated file", func() { must(t, os.Rename(n.path("main", "0.log"), n.path("main", "0.log.20261130-050000"))) })
	delete(want, "main/0.log")
	want["main/0.log.20261130-050000"] = line("0.log")
	comes("the end", func() { must(t, os.RemoveAll(n.path())) })
	got, _ := n.copied(1 << 20)
	wantContent(t, got, want)
	comes("the same pod again", func() { n.write("main", "2.log", line("again")) })

	// What is not opened is looked for each time.
	must(t, os.Symlink("2.log", n.path("main", "3.log")))
	n.Look(t.Context(), nightly.UID)
	if n.upToDate(nightly.UID).isSeen() {
		t.Error("a link is open")
	}
}

// TestHostile: a pod that writes to the directory of the logs gets nothing read that is not its own regular file, and no
// call waits for it.
func TestHostile(t *testing.T) {
	n := start(t, 100)
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/0.log", []byte("secret"), 0o600))
	must(t, os.WriteFile(n.dir+"/passwd", []byte("secret"), 0o600))

	n.write("main", "0.log", line("mine"))
	must(t, os.Symlink(secret, n.path("main", "1.log")))
	must(t, os.Symlink("0.log", n.path("main", "2.log")))
	must(t, os.Link(n.dir+"/passwd", n.path("main", "3.log")))
	must(t, unix.Mkfifo(n.path("main", "4.log"), 0o644))
	must(t, os.Mkdir(n.path("main", "5.log"), 0o755))
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err)
	defer unix.Close(socket)
	here, err := os.Getwd()
	must(t, err)
	must(t, os.Chdir(n.path("main"))) // the whole path is too long for a socket
	err = errors.Join(unix.Bind(socket, &unix.SockaddrUnix{Name: "6.log"}), os.Chdir(here))
	must(t, err)
	if os.Geteuid() == 0 {
		must(t, unix.Mknod(n.path("main", "7.log"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	}
	must(t, os.Symlink(outside, n.path("linked")))
	for _, name := range []string{"..", "a\nb", "\x1b]0;x\a", "UPPER", "-a", strings.Repeat("a", 64), ".hidden", "a b", "\xff"} {
		must(t, os.MkdirAll(n.path(name), 0o755))
		if name != ".." {
			must(t, os.WriteFile(n.path(name, "0.log"), []byte("odd"), 0o644))
		}
	}
	for _, name := range []string{"0.log.tmp", "0.log.20261130-050000.gz.tmp", "x.log", "0.log\n", ".0.log", "1e3.log", "0.log.gz"} {
		n.write("main", name, "odd")
	}
	n.Follow(nightly)
	n.await(1)
	n.Look(t.Context(), nightly.UID)
	got, _ := n.copied(1 << 20)
	wantContent(t, got, map[string]string{"main/0.log": line("mine")})

	// The directory itself may be a link, or another pod's.
	must(t, os.RemoveAll(n.path()))
	n.Leave(nightly.UID)
	must(t, os.Symlink(outside, n.dir+"/"+nightlyDir))
	n.Follow(nightly)
	n.Look(t.Context(), nightly.UID)
	if n.Has(nightly.UID) {
		t.Error("a link to another directory was followed")
	}
}

// TestOddPods have no directory.
func TestOddPods(t *testing.T) {
	for _, p := range []Pod{
		{}, {UID: "u"}, {UID: "u", Namespace: "ns"}, {UID: "u", Name: "p"}, {UID: "..", Namespace: "ns", Name: "p"},
		{UID: "a/b", Namespace: "ns", Name: "p"}, {UID: "u", Namespace: "../x", Name: "p"}, {UID: "u", Namespace: "ns", Name: "a/b"},
		{UID: "u", Namespace: ".ns", Name: "p"}, {UID: "u", Namespace: "ns", Name: strings.Repeat("p", 253)},
	} {
		if got := p.directory(); got != "" {
			t.Errorf("%+v has the directory %q", p, got)
		}
	}
	if got := nightly.directory(); got != nightlyDir {
		t.Errorf("the directory is %q", got)
	}
}

// TestMostOpen: what is too much to be held is copied all the same, as long as it has its name.
func TestMostOpen(t *testing.T) {
	n := start(t, 2)
	want := map[string]string{}
	for i := range 5 {
		name := fmt.Sprintf("%d.log", i)
		n.write("main", name, line(name))
		want["main/"+name] = line(name)
	}
	n.Follow(nightly)
	n.Look(t.Context(), nightly.UID)
	if open := n.open.Load(); open != 2 || !n.Crowded() {
		t.Errorf("%d files are open, want 2", open)
	}
	got, _ := n.copied(1 << 20)
	wantContent(t, got, want)
	if open := n.open.Load(); open != 2 {
		t.Errorf("%d files are open after the copy, want 2", open)
	}
}

// TestRemovedFilesAreClosed after a while, because their space is free only then; except for the newest of a container.
func TestRemovedFilesAreClosed(t *testing.T) {
	n := start(t, 100)
	n.write("main", "0.log", line("before"))
	n.write("main", "1.log", line("now"))
	n.write("main", "1.log.20261130-050000", line("turned"))
	n.Follow(nightly)
	n.await(3)
	must(t, os.Rename(n.path("main", "1.log.20261130-050000"), n.path("main", "1.log.20261130-050000.gz"))) // as if it were another file
	must(t, os.RemoveAll(n.path()))
	n.Look(t.Context(), nightly.UID)
	p := n.of(nightly.UID)
	late := func() { // what a timer does
		n.watch.look(p)
		n.Look(t.Context(), nightly.UID)
	}
	age := func(name string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range p.files {
			if f.file == name && f.removed.IsZero() {
				t.Errorf("%s is not known to be removed", name)
			}
			if f.file == name {
				f.removed = f.removed.Add(-removedFor)
			}
		}
	}
	late()
	if open := n.open.Load(); open != 3 {
		t.Fatalf("%d files are open, want 3", open)
	}
	age("0.log")
	age("1.log")
	late()
	if open := n.open.Load(); open != 2 {
		t.Errorf("%d files are open, want the newest and the one that was removed just now", open)
	}
}

// TestCompressedTakesThePlace of what was rotated.
func TestCompressedTakesThePlace(t *testing.T) {
	n := start(t, 100)
	n.write("main", "0.log.20261130-050000", line("turned"))
	n.write("main", "0.log", line("now"))
	n.Follow(nightly)
	n.await(2)
	n.write("main", "0.log.20261130-050000.gz", "packed")
	must(t, os.Remove(n.path("main", "0.log.20261130-050000")))
	n.Look(t.Context(), nightly.UID)
	got, _ := n.copied(1 << 20)
	wantContent(t, got, map[string]string{"main/0.log.20261130-050000.gz": "packed", "main/0.log": line("now")})
}

// TestLimit: the end of the newest is kept, from the beginning of a line on, and what is missing is said.
func TestLimit(t *testing.T) {
	n := start(t, 100)
	n.write("main", "0.log", strings.Repeat(line("old"), 10))
	n.write("main", "1.log", strings.Repeat(line("filler"), 100)+line("the end"))
	n.write("sidecar", "0.log", line("small"))
	n.Follow(nightly)
	n.await(3)
	got, kept := n.copied(int64(len(line("small")) + 2*len(line("filler")) + len(line("the end")) + 5))
	missing := got[api.MissingLogs]
	delete(got, api.MissingLogs)
	wantContent(t, got, map[string]string{"main/1.log": strings.Repeat(line("filler"), 2) + line("the end"), "sidecar/0.log": line("small")})
	var said api.LogsMissing
	must(t, json.Unmarshal([]byte(missing), &said))
	if want := []api.LogMissing{
		{Container: "main", File: "1.log", Bytes: int64(98 * len(line("filler"))), Why: api.LogsLimit},
		{Container: "main", File: "0.log", Bytes: int64(10 * len(line("old"))), Why: api.LogsLimit},
	}; !slices.Equal(said.Files, want) {
		t.Errorf("missing is %+v, want %+v", said.Files, want)
	}
	if kept.Missing != said.Files[0].Bytes+said.Files[1].Bytes || kept.Files != 2 {
		t.Errorf("kept %+v", kept)
	}
}

// TestOneLineWithoutEnd is cut anywhere.
func TestOneLineWithoutEnd(t *testing.T) {
	n := start(t, 100)
	n.write("main", "0.log", strings.Repeat("x", 3<<20))
	n.Follow(nightly)
	n.await(1)
	got, _ := n.copied(2 << 20)
	if len(got["main/0.log"]) != 2<<20 {
		t.Errorf("%d bytes are kept", len(got["main/0.log"]))
	}
}

// TestCopyAgain replaces what is there, and keeps it where there is nothing any more.
func TestCopyAgain(t *testing.T) {
	n := start(t, 100)
	to := t.TempDir()
	n.write("init", "0.log", line("at first"))
	n.write("main", "0.log", strings.Repeat(line("long"), 10))
	n.Follow(nightly)
	n.await(2)
	_, err := n.copyTo(to, 100)
	must(t, err)
	if content(t, to)[api.MissingLogs] == "" {
		t.Error("nothing is said to be missing")
	}
	must(t, os.WriteFile(to+"/main/0.log", []byte("half"), 0o644))
	must(t, os.RemoveAll(n.path()))
	n.Leave(nightly.UID)
	n.write("main", "1.log", line("another"))
	n.Follow(nightly)
	_, err = n.copyTo(to, 1000)
	must(t, err)
	wantContent(t, content(t, to), map[string]string{"main/1.log": line("another")})
	n.Leave(nightly.UID)
	must(t, os.RemoveAll(n.path()))
	n.Follow(nightly)
	kept, err := n.copyTo(to, 1000)
	must(t, err)
	wantContent(t, content(t, to), map[string]string{"main/1.log": line("another")})
	if kept.Files != 0 {
		t.Errorf("kept %+v", kept)
	}
}

// TestFullDisk and a reader that leaves end a copy, and no other one.
func TestFullDisk(t *testing.T) {
	n := start(t, 100)
	n.write("main", "0.log", line("text"))
	n.Follow(nightly)
	n.await(1)
	for call, errno := range map[string]unix.Errno{"Pwrite": unix.ENOSPC, "Mkdirat": unix.ENOSPC, "Createat": unix.EDQUOT} {
		t.Run(call, func(t *testing.T) {
			kernel.Inject(t, func(made, _ string) error {
				if made == "Clone" {
					return unix.EOPNOTSUPP
				}
				if made == call {
					return errno
				}
				return nil
			})
			if _, err := n.copyTo(t.TempDir(), 1000); !errors.Is(err, errno) {
				t.Errorf("the error is %v, want %v", err, errno)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	to, err := os.Open(t.TempDir())
	must(t, err)
	defer to.Close()
	kernel.Inject(t, func(made, _ string) error {
		if made == "Clone" {
			return unix.EOPNOTSUPP
		}
		return nil
	})
	if _, err := n.Copy(ctx, nightly.UID, int(to.Fd()), 1000, context.Context.Err); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// TestManyNames: a directory with more names than a kubelet makes costs no more than is bounded.
func TestManyNames(t *testing.T) {
	n := start(t, 1000)
	must(t, os.MkdirAll(n.path("main"), 0o755))
	for i := range mostFiles + 10 {
		must(t, os.WriteFile(n.path("main", fmt.Sprintf("%d.log", i)), []byte(line("x")), 0o644))
	}
	for i := range mostContainers + 10 {
		must(t, os.MkdirAll(n.path(fmt.Sprintf("c%d", i)), 0o755))
	}
	n.Follow(nightly)
	n.Look(t.Context(), nightly.UID)
	if open := n.open.Load(); open > mostFiles {
		t.Errorf("%d files are open, want at most %d", open, mostFiles)
	}
	if _, kept := n.copied(1 << 20); kept.Files > 2*mostFiles {
		t.Errorf("%d files are kept", kept.Files)
	}
}

// TestBinary is kept as it is.
func TestBinary(t *testing.T) {
	n := start(t, 10)
	text := string(bytes.Repeat([]byte{0, 1, 0xff, '\n', 0x1b, '['}, 1<<17))
	n.write("main", "0.log", text)
	n.Follow(nightly)
	n.await(1)
	got, _ := n.copied(1 << 30)
	if got["main/0.log"] != text {
		t.Errorf("%d bytes are kept of %d, or others", len(got["main/0.log"]), len(text))
	}
}
