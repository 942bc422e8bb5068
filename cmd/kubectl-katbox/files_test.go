package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// modified is the time of the files of a test.
var modified = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// write writes a file, with all directories above it.
func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o640), os.Chmod(path, 0o640),
		os.Chtimes(path, modified, modified))
}

// someFiles fills a volume.
func someFiles(t *testing.T, dir string) {
	t.Helper()
	write(t, dir+"/out/log.txt", "one\ntwo\nthree\n")
	write(t, dir+"/out/deep/data", strings.Repeat("x", 2048))
	write(t, dir+"/.cache/index", "hidden")
	must(t, os.Symlink("/etc/shadow", dir+"/link"), os.Chtimes(dir+"/out", modified, modified), os.Chtimes(dir, modified, modified))
}

// wantOutput wants exit code 0, that text on stdout, and nothing on stderr.
func (u user) wantOutput(want string, args ...string) {
	u.t.Helper()
	code, stdout, stderr := u.run(args...)
	if code != 0 || stdout != want || stderr != "" {
		u.t.Errorf("%q: code %d, stderr %q, stdout of %d bytes\n%.1000s\nwant %d bytes\n%.1000s",
			args, code, stderr, len(stdout), stdout, len(want), want)
	}
}

func TestListOfFiles(t *testing.T) {
	c := clustertest.New(t)
	name, dir := c.Node("n1").Put(1, "ci", "nightly", "nightly-x7k2p")
	someFiles(t, dir)
	eve := as(t, c, "eve")
	for _, target := range []string{name, name + ":", "nightly-x7k2p", "pod/nightly-x7k2p:/", "job/nightly", "rv/" + name} {
		eve.wantOutput("link\nout/\n", "ls", target)
	}
	eve.wantOutput("deep/\nlog.txt\n", "ls", name+":out")
	eve.wantOutput("out/log.txt\n", "ls", name+":out/log.txt")
	eve.wantOutput(".cache/\nlink\nout/\n", "ls", "-a", name)
	eve.wantOutput("link\nout/\nout/deep/\nout/deep/data\nout/log.txt\n", "ls", "-R", name)
	eve.wantOutput(".cache/\n.cache/index\nlink\nout/\nout/deep/\nout/deep/data\nout/log.txt\n", "ls", "-Ra", name)
	eve.wantOutput("index\n", "ls", name+":.cache")
	eve.wantOutput("link\n", "ls", "--limit", "1", name)
	eve.wantOutput(name+":link\n"+name+":out\n", "ls", "-o", "name", "job/nightly:")
	_, long, _ := eve.run("ls", "-l", name+":out")
	// How wide the sizes are depends on that of a directory, which is the file system's.
	want := fmt.Sprintf(" -rw-r----- 1 %d %d 14 B 2026-03-04T05:06:07Z log.txt", os.Getuid(), os.Getgid())
	if !strings.HasSuffix(strings.Join(strings.Fields(long), " "), want) {
		t.Errorf("ls -l:\n%swant at the end\n%s", long, want)
	}
	_, text, _ := eve.run("ls", "-o", "json", name)
	var list api.FileList
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Entries) != 2 {
		t.Errorf("%v: %s", err, text)
	}
	eve.wantFailure(1, []string{`"nothing"`}, "ls", name+":nothing")
	eve.wantFailure(2, []string{"not wide, json or name"}, "ls", "-o", "yaml", name)
	eve.wantFailure(2, []string{"an argument is missing: kubectl katbox ls TARGET[:PATH]"}, "ls")
	as(t, c, "vic").wantFailure(1, []string{"user vic may list retained volumes in namespace ci, and not read their files"}, "ls", name)
}

func TestContentsOfFiles(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	name, dir := n.Put(1, "ci", "nightly", "nightly-x7k2p")
	someFiles(t, dir)
	odd := "bytes \x1b[2J\xff\x00\r\n"
	write(t, dir+"/a:b", odd)
	_, other := n.Put(2, "etl", "weekly", "weekly-a2b3c")
	write(t, other+"/log", strings.Repeat("line\n", 20))
	eve, bob := as(t, c, "eve"), as(t, c, "bob")
	eve.wantOutput(odd, "cat", "job/nightly:a:b")
	eve.wantOutput(odd+odd, "cat", name+":a:b", "nightly-x7k2p::a%3Ab")
	eve.wantOutput("two\nthree\n", "tail", "--lines", "2", name+":out/log.txt")
	eve.wantOutput("two\nthree\n", "tail", "-n", "2", name+":out/log.txt")
	eve.wantOutput("two\nthree\n", "tail", name+":out/log.txt", "-n2")
	eve.wantOutput("ree\n", "tail", "-c", "4", name+":out/log.txt")
	bob.wantOutput(strings.Repeat("line\n", 10), "tail", "-n", "etl", "weekly-a2b3c:log")
	bob.wantOutput(strings.Repeat("line\n", 12), "tail", "-n", "etl", "-n", "12", "weekly-a2b3c:log")
	bob.wantOutput(strings.Repeat("line\n", 12), "-n", "etl", "tail", "-n", "12", "weekly-a2b3c:log")
	eve.wantFailure(2, []string{"names no file: add a colon and the path, as in job/nightly:out/log.txt"}, "cat", "job/nightly")
	eve.wantFailure(2, []string{"give one"}, "tail", "-n", "2", "-c", "4", name+":out/log.txt")
	eve.wantFailure(1, []string{`"/out" is a directory: kubectl katbox ls lists it, and kubectl katbox cp copies it`}, "cat", name+":out")
	eve.wantFailure(1, []string{"link"}, "cat", name+":link")
	eve.wantFailure(4, []string{"no retained volume in namespace ci matches pod/gone"}, "cat", "gone:x")
}

func TestSeveralVolumesMatchAFile(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	for number, pod := range []string{"nightly-new", "nightly-old"} {
		_, dir := n.Put(number+1, "ci", "nightly", pod)
		write(t, dir+"/log", pod+"\n")
		_, cache := n.Put(number+11, "ci", "nightly", pod, func(d *volume.Description) { d.Record.VolumeName = "cache" })
		write(t, cache+"/log", pod+" cache\n")
	}
	eve := as(t, c, "eve")
	eve.wantFailure(1, []string{"4 retained volumes match job/nightly: give one of these names, or --last"}, "cat", "job/nightly:log")
	eve.wantFailure(1, []string{"2 retained volumes match pod/nightly-old"}, "cat", "nightly-old:log")
	eve.wantOutput("nightly-new\n", "cat", "--last", "job/nightly:log")
	eve.wantOutput("nightly-old cache\n", "cat", "--volume", "cache", "nightly-old:log")
	eve.wantOutput("nightly-new cache\n", "cat", "--last", "--volume", "cache", "job/nightly:log")
	eve.wantOutput("nightly-new\n", "cat", "--last", "-l", resource.LabelJob+"=nightly", "job/nightly:log")
}

func TestStat(t *testing.T) {
	c := clustertest.New(t)
	name, dir := c.Node("n1").Put(1, "ci", "nightly", "nightly-x7k2p", func(d *volume.Description) {
		d.Record.Unpublished = time.Now().Add(-2*time.Hour - 30*time.Minute)
		d.Size, d.Early = volume.Size{Bytes: 1288490189, Inodes: 17}, true
	})
	someFiles(t, dir)
	eve := as(t, c, "eve")
	_, text, _ := eve.run("stat", "job/nightly")
	for _, want := range []string{
		"Name:       " + name + "\n", "Pod:        nightly-x7k2p\n", "Owner:      job/nightly\n", "Node:       n1\n", "Phase:      Retained\n",
		"(2h30m ago)\n",
		"(in 2d2h), earlier than its lifespan: the disk fills up\n", "Size:       1.2 GiB (1288490189 bytes)\n", "Inodes:     17\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	_, text, _ = eve.run("stat", "-o", "json", name)
	var v resource.RetainedVolume
	if err := json.Unmarshal([]byte(text), &v); err != nil || v.Name != name || v.Spec.PodName != "nightly-x7k2p" {
		t.Errorf("%v: %s", err, text)
	}
	_, text, _ = eve.run("stat", "nightly-x7k2p:out/log.txt")
	for _, want := range []string{
		"Path:         /out/log.txt\n", "Target:       " + name + ":out/log.txt\n", "Mode:         0640 (-rw-r-----)\n",
		"Modified:     2026-03-04T05:06:07Z (",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	as(t, c, "vic").wantFailure(2, []string{"is not json"}, "stat", "-o", "yaml", name)
}

// hostileNames are names that a pod gave to harm who looks at them.
var hostileNames = []string{
	"\x1b]0;owned\x07", "\x1b[2Jcleared", "line\nbreak", "over\rwrite", "bad\xff\xfeutf", "c1\u009b31m", "\u202egpj.exe", "back\\slash",
	":colon", "a:b", "per%cent%0A", "quo\"te'; $(reboot)", "<img onerror=x>", "-rf", " ", "größe-日本", "a+b&c=d?e#f",
}

// TestHostileNames (T29): each name that is listed leads to its file, and none reaches a terminal as it is.
func TestHostileNames(t *testing.T) {
	safe := func(text string) bool {
		return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) })
	}
	c := clustertest.New(t)
	name, dir := c.Node("n1").Put(1, "ci", "nightly", "nightly-x7k2p")
	left := map[string]bool{}
	for _, odd := range hostileNames {
		write(t, dir+"/d/"+odd, "content of "+odd)
		left[odd] = true
	}
	must(t, os.Symlink("to\x1b[2J\u202e\xff", dir+"/link\n"))
	eve := as(t, c, "eve")
	_, list, _ := eve.run("ls", "-o", "name", name+":d")
	for line := range strings.Lines(list) {
		code, stdout, stderr := eve.run("cat", strings.TrimSuffix(line, "\n"))
		odd := strings.TrimPrefix(stdout, "content of ")
		if code != 0 || !left[odd] {
			t.Errorf("cat %s: code %d, %q, %q", line, code, stdout, stderr)
		}
		delete(left, odd)
	}
	if len(left) > 0 {
		t.Errorf("not listed: %v", left)
	}
	for _, args := range [][]string{
		{"ls", "-lR", name}, {"ls", "-R", "-o", "json", name}, {"ls", "-R", "-o", "name", name},
		{"stat", name + ":link\n"}, {"stat", "-o", "json", name + ":link\n"},
		{"cat", name + ":link\n"}, {"cat", name + ":\x1b[2J\u202e\xff"}, {"cat", "\x1b[2J\u202e\xff"}, {"tail", name + ":d/\x1b/x"},
		{"ls", "-n", "\x1b", name}, {"cp", name + ":link\n", t.TempDir()}, {"cp", name + ":\u202e", "-"}, {"cp", "job/\x1b", "x"},
		{"cp", name + ":d", t.TempDir() + "/\x1b/\u202e"}, {"ls", "--selector", "\x1b", name},
	} {
		if _, stdout, stderr := eve.run(args...); !safe(stdout) || !safe(stderr) {
			t.Errorf("%q: stdout %q, stderr %q", args, stdout, stderr)
		}
	}
}
