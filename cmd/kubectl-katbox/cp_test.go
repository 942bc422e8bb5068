package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/clustertest"
	"github.com/katbox/katbox/internal/testing/terminaltest"
	"github.com/katbox/katbox/internal/testing/verbstest"
)

// isThere ends the note about a volume that an earlier run has copied.
const isThere = " is there already; --overwrite copies it again\n"

func TestCopy(t *testing.T) {
	c := clustertest.New(t)
	name, dir := c.Node("n1").Put(1, "ci", "nightly", "nightly-x7k2p")
	someFiles(t, dir)
	eve, dest := as(t, c, "eve"), t.TempDir()
	eve.wantOutput("", "cp", "nightly-x7k2p:out/log.txt", dest)
	eve.wantOutput("", "cp", name+":out/log.txt", dest+"/other")
	verbstest.WantFile(t, dest+"/log.txt", "one\ntwo\nthree\n")
	verbstest.WantFile(t, dest+"/other", "one\ntwo\nthree\n")
	eve.wantOutput("one\ntwo\nthree\n", "cp", name+":out/log.txt", "-")
	eve.wantOutput("", "cp", name+":out", dest+"/out")
	eve.wantOutput("", "cp", "--exclude", "deep", name+":out", dest+"/some")
	eve.wantOutput("", "cp", name, dest, "--tar")
	verbstest.WantNames(t, dest, "log.txt", "other", "out/deep/data", "out/log.txt", "some/log.txt", name+".tar")
	_, archive, _ := eve.run("cp", name, "-")
	verbstest.WantFile(t, dest+"/"+name+".tar", archive)
	entries := 0
	for reader := tar.NewReader(strings.NewReader(archive)); ; entries++ {
		if _, err := reader.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if entries < 6 {
		t.Errorf("the archive has %d entries", entries)
	}
	code, stdout, stderr := eve.run("cp", name, dest+"/all")
	if code != 0 || stdout != "" || stderr != "1 symbolic links were left out; --symlinks=keep makes them\n" {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	verbstest.WantNames(t, dest+"/all", ".cache/index", "out/deep/data", "out/log.txt")
	eve.wantFailure(1, []string{"exists already; --overwrite replaces it"}, "cp", name+":out/log.txt", dest)
	eve.wantFailure(2, []string{"DEST is empty"}, "cp", name, "")
	as(t, c, "vic").wantFailure(1, []string{"not read their files"}, "cp", name, dest+"/secret")
	verbstest.WantNames(t, dest+"/all", ".cache/index", "out/deep/data", "out/log.txt")
}

// job is a Job with two pods, each with two volumes.
type job struct {
	cluster *clustertest.Cluster
	eve     user
	names   []string
	dest    string
}

func newJob(t *testing.T) job {
	t.Helper()
	c := clustertest.New(t)
	j := job{cluster: c, eve: as(t, c, "eve"), dest: t.TempDir() + "/nightly"}
	for number, pod := range []string{"nightly-a2b3c", "nightly-x7k2p"} {
		n := c.Node(fmt.Sprintf("n%d", number))
		for i, name := range []string{"scratch", "cache"} {
			full, dir := n.Put(1+2*number+i, "ci", "nightly", pod, func(d *volume.Description) {
				d.Record.VolumeName, d.Size = name, volume.Size{Bytes: 600_000, Inodes: 3}
			})
			write(t, dir+"/log", pod+" "+name+"\n"+verbstest.Numbers(20_000))
			must(t, os.Chtimes(dir, modified, modified))
			j.names = append(j.names, full)
		}
		_, other := n.Put(11+number, "ci", "weekly", "weekly-"+fmt.Sprint(number))
		write(t, other+"/log", "of another Job")
	}
	return j
}

func (j job) wantComplete(t *testing.T) {
	t.Helper()
	var all []string
	for _, pod := range []string{"nightly-a2b3c", "nightly-x7k2p"} {
		for _, name := range []string{"scratch", "cache"} {
			all = append(all, pod+"/"+name+"/log")
			verbstest.WantFile(t, j.dest+"/"+pod+"/"+name+"/log", pod+" "+name+"\n"+verbstest.Numbers(20_000))
		}
	}
	verbstest.WantNames(t, j.dest, all...)
}

// TestCopyOfAJob: the volumes of all its pods come, whatever node they are on.
func TestCopyOfAJob(t *testing.T) {
	j := newJob(t)
	j.eve.wantOutput("", "cp", "job/nightly", j.dest)
	j.wantComplete(t)
	code, _, stderr := j.eve.run("cp", "job/nightly", j.dest)
	if code != 0 || strings.Count(stderr, isThere) != 4 {
		t.Errorf("again: code %d, %s", code, stderr)
	}
	must(t, os.WriteFile(j.dest+"/nightly-a2b3c/scratch/log", []byte("changed"), 0o600))
	j.eve.wantOutput("", "cp", "job/nightly", j.dest, "--overwrite")
	j.wantComplete(t)

	dest := t.TempDir()
	j.eve.wantOutput("", "cp", "job/nightly:log", dest+"/logs", "--volume", "scratch")
	verbstest.WantNames(t, dest+"/logs", "nightly-a2b3c/scratch/log", "nightly-x7k2p/scratch/log")
	j.eve.wantOutput("", "cp", "job/nightly", dest+"/tar", "--tar", "--volume", "cache")
	verbstest.WantNames(t, dest+"/tar", "nightly-a2b3c/cache.tar", "nightly-x7k2p/cache.tar")
	_, archive, _ := j.eve.run("cp", j.names[1], "-")
	verbstest.WantFile(t, dest+"/tar/nightly-a2b3c/cache.tar", archive)
	code, _, stderr = j.eve.run("cp", "job/nightly", dest+"/tar", "--tar", "--volume", "cache")
	if code != 0 || strings.Count(stderr, isThere) != 2 {
		t.Errorf("again: code %d, %s", code, stderr)
	}
	j.eve.wantOutput("", "cp", "job/nightly", dest+"/last", "--last")
	verbstest.WantNames(t, dest+"/last", "log")
	j.eve.wantFailure(1, []string{"4 retained volumes match job/nightly"}, "cp", "job/nightly", "-")
	j.eve.wantFailure(4, []string{"no retained volume in namespace ci matches job/gone"}, "cp", "job/gone", dest)
	// A file that was put there is not taken for a copy of the volume.
	code, _, stderr = j.eve.run("cp", "job/nightly", dest+"/logs")
	if code != 1 || strings.Count(stderr, "is not a copy of this directory; --overwrite copies into it") != 2 ||
		!strings.Contains(stderr, "2 of 4 volumes were not copied") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// TestCopyOfAJobGoesOnWithTheOthers: one volume that fails is said, and the exit code is 1. The same
// command copies what is missing.
func TestCopyOfAJobGoesOnWithTheOthers(t *testing.T) {
	j := newJob(t)
	broken := j.names[2]
	j.cluster.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, broken+"/log") {
			return false
		}
		http.Error(w, "no luck", http.StatusInternalServerError)
		return true
	})
	code, _, stderr := j.eve.run("cp", "job/nightly", j.dest)
	if code != 1 || !strings.Contains(stderr, broken+": ") || !strings.Contains(stderr, "no luck") ||
		!strings.Contains(stderr, "1 of 4 volumes") {
		t.Errorf("code %d, %s", code, stderr)
	}
	j.cluster.Intercept(nil)
	before := len(j.cluster.Requests())
	if code, _, stderr := j.eve.run("cp", "job/nightly", j.dest); code != 0 || strings.Count(stderr, isThere) != 3 {
		t.Errorf("code %d, %s", code, stderr)
	}
	j.wantComplete(t)
	streams := 0
	for _, request := range j.cluster.Requests()[before:] {
		if strings.Contains(request, "/log?") {
			streams++
		}
	}
	if streams != 1 {
		t.Errorf("%d volumes were read again, want one", streams)
	}
	if code, _, stderr := j.eve.run("cp", "job/nightly:nothing", t.TempDir()); code != 1 ||
		!strings.Contains(stderr, "4 of 4 volumes were not copied") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// TestCopyOfAJobWithANodeAway copies what there is, and is no success.
func TestCopyOfAJobWithANodeAway(t *testing.T) {
	j := newJob(t)
	j.cluster.Lost("n1")
	code, _, stderr := j.eve.run("cp", "job/nightly", j.dest)
	if code != 1 || !strings.Contains(stderr, "Warning: ") || !strings.Contains(stderr, "volumes may be missing in the copy") {
		t.Errorf("code %d, %s", code, stderr)
	}
	verbstest.WantNames(t, j.dest, "nightly-a2b3c/scratch/log", "nightly-a2b3c/cache/log")
}

// TestCopyFollowsNothing (T44): not where a part of the destination is a symbolic link.
func TestCopyFollowsNothing(t *testing.T) {
	j := newJob(t)
	for _, link := range []string{"nightly-a2b3c", "nightly-a2b3c/cache", "nightly-a2b3c/cache.partial"} {
		dest, outside := t.TempDir(), t.TempDir()
		must(t, os.MkdirAll(filepath.Dir(dest+"/"+link), 0o755), os.Symlink(outside, dest+"/"+link))
		code, _, stderr := j.eve.run("cp", "job/nightly", dest, "--overwrite")
		if code != 1 || !strings.Contains(stderr, "is not a directory, and nothing is followed: remove it") {
			t.Errorf("%s: code %d, %s", link, code, stderr)
		}
		verbstest.WantNames(t, outside)
	}
	for _, link := range []string{"log", "log.partial", "log.partial.etag"} {
		dest, outside := t.TempDir(), t.TempDir()+"/precious"
		must(t, os.WriteFile(outside, []byte("precious"), 0o600), os.Symlink(outside, dest+"/"+link))
		code, _, stderr := j.eve.run("cp", j.names[0]+":log", dest, "--overwrite")
		if wanted := link == "log"; (code == 0) != wanted {
			t.Errorf("%s: code %d, %s", link, code, stderr)
		}
		verbstest.WantFile(t, outside, "precious")
	}
}

// TestPodsOfOneNameGetDirectoriesOfTheirOwn: a StatefulSet's pods, in one Job's clothes.
func TestPodsOfOneNameGetDirectoriesOfTheirOwn(t *testing.T) {
	c := clustertest.New(t)
	n, dest := c.Node("n1"), t.TempDir()
	var want []string
	for i := range 2 {
		name, dir := n.Put(1+i, "ci", "nightly", "nightly-0")
		write(t, dir+"/log", fmt.Sprint(i))
		want = append(want, "nightly-0/scratch"+name[strings.LastIndex(name, "."):]+"/log")
	}
	as(t, c, "eve").wantOutput("", "cp", "job/nightly", dest)
	verbstest.WantNames(t, dest, want...)
}

// TestACutStreamGoesOn (T17): an update of the gateway in the middle costs a pause.
func TestACutStreamGoesOn(t *testing.T) {
	j := newJob(t)
	content := "nightly-a2b3c scratch\n" + verbstest.Numbers(20_000)
	for _, args := range [][]string{
		{"cat", j.names[0] + ":log"}, {"cp", j.names[0] + ":log", "-"}, {"tail", "--lines", "20000", j.names[0] + ":log"},
	} {
		_, whole, _ := j.eve.run(args...)
		j.cluster.Cut(1, 1000, 0, 60_000)
		j.eve.wantOutput(whole, args...)
	}
	j.cluster.Cut(1, 1000, 0, 60_000)
	j.eve.wantOutput("", "cp", j.names[0]+":log", j.dest+".log")
	verbstest.WantFile(t, j.dest+".log", content)
	// No replica answers the third and fourth request for files, which go on with the first volume, nor the
	// sixth, which begins with the second one.
	var asked atomic.Int64
	j.cluster.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") && !strings.HasSuffix(r.URL.Path, "/files") {
			return false
		}
		switch asked.Add(1) {
		case 3, 4, 6:
			http.Error(w, "error trying to reach service: dial tcp: connection refused", http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	j.cluster.Cut(50_000)
	j.eve.wantOutput("", "cp", "job/nightly", j.dest)
	if n := asked.Load(); n != 4*2+1+3 {
		t.Errorf("%d requests, want two for each volume, one for the rest of the first, and three that were repeated", n)
	}
	j.wantComplete(t)
}

// TestACutCopyGoesOnInTheNextRun (T45): its beginning stays, and the rest is asked for by Range and
// If-Range.
func TestACutCopyGoesOnInTheNextRun(t *testing.T) {
	j := newJob(t)
	target, dest := j.names[0]+":log", t.TempDir()
	var asked atomic.Pointer[http.Header]
	var refuse atomic.Bool
	j.cluster.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		header := r.Header.Clone()
		asked.Store(&header)
		if refuse.Load() && header.Get("Range") != "" {
			http.Error(w, "no luck", http.StatusInternalServerError)
			return true
		}
		return false
	})
	refuse.Store(true)
	j.cluster.Cut(60_000)
	code, stdout, stderr := j.eve.run("cp", target, dest)
	if code != 1 || stdout != "" || !strings.Contains(stderr, "log.partial\" holds the first 59 KiB: to go on, repeat the command") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	verbstest.WantNames(t, dest, "log.partial", "log.partial.etag")
	refuse.Store(false)
	code, _, stderr = j.eve.run("cp", target, dest)
	header := *asked.Load()
	if code != 0 || !strings.Contains(stderr, "going on after 59 KiB") || header.Get("Range") != "bytes=59999-" ||
		header.Get("If-Range") == "" {
		t.Errorf("code %d, %s, asked with %v", code, stderr, header)
	}
	verbstest.WantNames(t, dest, "log")
	verbstest.WantFile(t, dest+"/log", "nightly-a2b3c scratch\n"+verbstest.Numbers(20_000))
}

// TestProgress: a copy of several volumes shows how much of all has come.
func TestProgress(t *testing.T) {
	j := newJob(t)
	terminal := terminaltest.Open(t)
	done := make(chan string)
	go func() { done <- terminal.Shown() }()
	args := []string{"kubectl-katbox", "cp", "job/nightly", j.dest, "--kubeconfig", j.eve.kubeconfig}
	code := run(t.Context(), args, strings.NewReader(""), io.Discard, terminal.Back)
	must(t, terminal.Back.Close())
	shown := <-done
	if code != 0 || !strings.Contains(shown, "4 volumes, 2.3 MiB: ") || !strings.Contains(shown, " %, ") ||
		!strings.HasSuffix(shown, fmt.Sprintf("\r\x1b[K4 volumes, 2.3 MiB: all is in %q\r\n", j.dest)) {
		t.Errorf("code %d, the terminal shows %q", code, shown)
	}
	j.wantComplete(t)
}

// TestCopyToWhatIsNoDirectory says what is wrong with DEST, and not that something came.
func TestCopyToWhatIsNoDirectory(t *testing.T) {
	c := clustertest.New(t)
	name, dir := c.Node("n1").Put(1, "ci", "nightly", "nightly-x7k2p")
	someFiles(t, dir)
	eve, dest := as(t, c, "eve"), t.TempDir()
	must(t, os.WriteFile(dest+"/file", []byte("mine"), 0o600), os.Symlink("nowhere", dest+"/dangling"))
	for _, row := range []struct{ from, to, want string }{
		{"out", "file", "/file\" is not a directory: "},
		{"out", "dangling", "/dangling\" is not a directory: "},
		{"out/log.txt", "file/", "/file/\" is not a directory: "},
		{"out/log.txt", "none/", "/none/\" is not a directory: "},
	} {
		before := len(c.Requests())
		eve.wantFailure(1, []string{row.want}, "cp", name+":"+row.from, dest+"/"+row.to)
		if _, _, stderr := eve.run("cp", name+":"+row.from, dest+"/"+row.to); strings.Contains(stderr, "what came") {
			t.Errorf("%+v: %s", row, stderr)
		}
		for _, asked := range c.Requests()[before:] {
			if strings.Contains(asked, "/log?") {
				t.Errorf("%+v: it was read: %s", row, asked)
			}
		}
	}
	verbstest.WantFile(t, dest+"/file", "mine")
}
