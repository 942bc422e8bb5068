package verbs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest/hostile"
)

// threeJobs adds what most tests of lists look at.
func threeJobs(n *node) {
	n.add(1, "etl/nightly-x7k2p/scratch", 3*time.Hour)
	n.change(1, func(d *volume.Description) { d.Size = volume.Size{Bytes: 1288490189, Inodes: 17} })
	n.add(2, "etl/nightly-9fz1c/scratch", 4*time.Hour)
	n.add(3, "ci/build/cache", 5*time.Hour)
}

func TestListOfVolumes(t *testing.T) {
	n := newNode(t)
	empty := katbox(t, "ls")
	if empty != (result{"", "no retained volumes\n", 0}) {
		t.Errorf("an empty list: %+v", empty)
	}
	threeJobs(n)
	n.add(4, "etl/running/scratch", 0)
	n.change(4, func(d *volume.Description) { d.Record.Phase = volume.Published })
	mustPrint(t, `NAMESPACE  POD            VOLUME   SIZE     RETAINED  EXPIRES
etl        nightly-x7k2p  scratch  1.2 GiB  3h ago    in 9h
etl        nightly-9fz1c  scratch  -        4h ago    in 8h
ci         build          cache    -        5h ago    in 7h
`, "ls")
	etl := `NAMESPACE  POD            VOLUME   SIZE     RETAINED  EXPIRES
etl        nightly-x7k2p  scratch  1.2 GiB  3h ago    in 9h
`
	mustPrint(t, etl, "ls", "etl", "--since", "200m")
	mustPrint(t, etl, "ls", "-n", "etl", "--pod", "nightly-x7k2p")
	mustPrint(t, etl, "ls", "etl/nightly-x7k2p/scratch")
	mustPrint(t, etl, "ls", id(1))
	mustPrint(t, etl, "ls", "--limit", "1")
	mustPrint(t, fmt.Sprintf(`NAMESPACE  POD    VOLUME  SIZE  RETAINED  EXPIRES  OUTCOME  ID
ci         build  cache   -     5h ago    in 7h    -        %s
`, id(3)), "ls", "ci", "-o", "wide")
	if r := katbox(t, "ls", "etl/nightly-x7k2p/other"); r.code != 0 || r.stderr != "no retained volumes\n" {
		t.Errorf("a list without a match: %+v", r)
	}
}

func TestNamesOfVolumesAreTargets(t *testing.T) {
	n := newNode(t)
	threeJobs(n)
	n.add(5, "etl/nightly-9fz1c/scratch", 6*time.Hour)
	n.add(6, "//", 7*time.Hour)
	mustPrint(t, "etl/nightly-x7k2p/scratch\n"+id(2)+"\nci/build/cache\n"+id(5)+"\n"+id(6)+"\n", "ls", "-o", "name")
	// What the list leaves out may have the same names.
	mustPrint(t, id(1)+"\n"+id(2)+"\n", "ls", "-o", "name", "--limit", "2")
	for name := range strings.Lines(katbox(t, "ls", "-o", "name").stdout) {
		if r := katbox(t, "stat", strings.TrimSpace(name)); r.code != 0 {
			t.Errorf("stat %s: %+v", name, r)
		}
	}
}

func TestListOfVolumesInJSON(t *testing.T) {
	n := newNode(t)
	mustPrint(t, "{\"items\":[]}\n", "ls", "-o", "json")
	threeJobs(n)
	var list api.VolumeList
	if err := json.Unmarshal([]byte(katbox(t, "ls", "-o", "json").stdout), &list); err != nil || len(list.Items) != 3 {
		t.Fatalf("%v, %+v", err, list)
	}
	v := list.Items[0]
	if v.ID != id(1) || *v.Bytes != 1288490189 || v.RetainedAt.IsZero() || v.Node != "n17" {
		t.Errorf("got %+v", v)
	}
}

func TestAListThatIsLongIsReadInPages(t *testing.T) {
	n := newNode(t)
	for i := range 11 {
		n.add(i, "etl/pod/scratch", time.Duration(i)*time.Hour)
	}
	if lines := strings.Count(katbox(t, "ls").stdout, "\n"); lines != 12 || n.lists != 6 {
		t.Errorf("%d lines in %d pages, want 12 in 6", lines, n.lists)
	}
	n.lists = 0
	if lines := strings.Count(katbox(t, "ls", "--limit", "3").stdout, "\n"); lines != 4 || n.lists != 2 {
		t.Errorf("%d lines in %d pages, want 4 in 2", lines, n.lists)
	}
}

// modified is a time that files of tests have.
var modified = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// someFiles fills a volume.
func someFiles(t *testing.T, dir string) {
	t.Helper()
	write(t, dir+"/out/log.txt", "one\ntwo\nthree\n")
	write(t, dir+"/out/deep/er/data", strings.Repeat("x", 2048))
	if err := os.Symlink("/etc/shadow", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir+"/out/log.txt", 0o640); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/out/log.txt", "/out/deep/er/data", "/out/deep/er", "/out/deep", "/out"} {
		if err := os.Chtimes(dir+path, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
}

func TestListOfFiles(t *testing.T) {
	n := newNode(t)
	someFiles(t, n.add(1, "etl/nightly/scratch", time.Hour))
	mustPrint(t, "link\nout/\n", "ls", "etl/nightly:")
	mustPrint(t, "deep/\nlog.txt\n", "ls", "etl/nightly/scratch:/out/")
	mustPrint(t, "deep/\ndeep/er/\ndeep/er/data\nlog.txt\n", "ls", "-R", id(1)+":out")
	mustPrint(t, "deep/\ndeep/er/\n", "ls", "-R", "--limit", "2", id(1)+":out")
	mustPrint(t, "out/log.txt\n", "ls", "etl/nightly:out/log.txt")
	mustPrint(t, "etl/nightly/scratch:out/deep\netl/nightly/scratch:out/log.txt\n", "ls", "-o", "name", "etl/nightly:out")
	mustPrint(t, id(1)+":out/deep\n"+id(1)+":out/log.txt\n", "ls", "-o", "name", id(1)+":out")
	// How wide the sizes are depends on that of a directory, which is the file system's.
	long := strings.Join(strings.Fields(katbox(t, "ls", "-l", "etl/nightly:out").stdout), " ")
	if want := fmt.Sprintf(" -rw-r----- 1 %d %d 14 B 2026-03-04T05:06:07Z log.txt", os.Getuid(),
		os.Getgid()); !strings.HasSuffix(long, want) {
		t.Errorf("got\n%swant at the end\n%s", long, want)
	}
	if long := katbox(t, "ls", "-l", "etl/nightly:").stdout; !strings.Contains(long, "link -> /etc/shadow\n") {
		t.Errorf("got\n%s", long)
	}
	var list api.FileList
	text := katbox(t, "ls", "-R", "-o", "json", "etl/nightly:out").stdout
	if err := json.Unmarshal([]byte(text), &list); err != nil || list.Path != "out" || len(list.Entries) != 4 ||
		!list.Entries[3].ModTime.Equal(modified) {
		t.Errorf("%v, %+v", err, list)
	}
	mustPrint(t, "{\"path\":\"out/deep/er\",\"entries\":[\n"+strings.TrimPrefix(text[strings.Index(text,
		`{"name":"data"`):strings.Index(text, ",\n{\"name\":\"log")], "")+
		"]}\n", "ls", "-o", "json", "etl/nightly:out/deep/er")
}

func TestListOfADeepTree(t *testing.T) {
	const levels = 16 // of one request
	n := newNode(t)
	dir := n.add(1, "etl/nightly/scratch", time.Hour)
	path := "d" + strings.Repeat("/d", 3*levels+4)
	write(t, filepath.Join(dir, path, "bottom"), "")
	write(t, filepath.Join(dir, "last"), "")
	r := katbox(t, "ls", "-R", "etl/nightly:")
	lines := strings.Split(r.stdout, "\n")
	if r.code != 0 || len(lines) != 3*levels+5+2+1 || lines[3*levels+5] != path+"/bottom" || lines[3*levels+6] != "last" {
		t.Errorf("%d lines, %+v", len(lines), r)
	}
	r = katbox(t, "ls", "-R", "etl/nightly:d/d/d")
	if lines := strings.Count(r.stdout, "\n"); lines != 3*levels+5+1-3 {
		t.Errorf("%d lines, %+v", lines, r)
	}
}

// TestListOfALargeDirectory asks for large pages: the daemon reads all names for each.
func TestListOfALargeDirectory(t *testing.T) {
	n := newNode(t)
	dir := n.add(1, "etl/nightly/scratch", time.Hour)
	for i := range 2500 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), "")
	}
	var requests atomic.Int64
	n.front = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/files") && !r.URL.Query().Has("stat") {
			requests.Add(1)
		}
		return false
	}
	if lines := strings.Count(katbox(t, "ls", "etl/nightly:").stdout, "\n"); lines != 2500 || requests.Load() != 1 {
		t.Errorf("%d lines after %d requests, want one request", lines, requests.Load())
	}
}

// TestListOfPathsThatAreTooLong: a request cannot name them, and what comes after them is listed.
func TestListOfPathsThatAreTooLong(t *testing.T) {
	n := newNode(t)
	dir := n.add(1, "etl/nightly/scratch", time.Hour)
	hostile.Deep(t, dir, 60, strings.Repeat("d", 100))
	write(t, filepath.Join(dir, "last"), "")
	for _, output := range []string{"", "name", "json"} {
		r := katbox(t, "ls", "-R", "-o", output, "etl/nightly:")
		if r.code != verbs.CodeFailed || !strings.Contains(r.stdout, "last") || !strings.Contains(r.stderr, "1 directories") {
			t.Errorf("-o %q: code %d, %d bytes, %q", output, r.code, len(r.stdout), r.stderr)
		}
	}
}

// hostileNames are names that a pod gave to harm who looks at them, and how they are shown.
var hostileNames = map[string]string{
	"\x1b]0;owned\x07":    `\x1b]0;owned\x07`,
	"\x1b[2Jcleared":      `\x1b[2Jcleared`,
	"line\nbreak":         `line\x0abreak`,
	"over\rwrite":         `over\x0dwrite`,
	"bad\xff\xfeutf":      `bad\xff\xfeutf`,
	"c1\u009b31m":         `c1\u009b31m`,
	"\u202egpj.exe":       `\u202egpj.exe`,
	"back\\slash":         `back\\slash`,
	":colon":              ":colon",
	"a:b":                 "a:b",
	"per%cent%0A":         "per%cent%0A",
	"quo\"te'; $(reboot)": "quo\"te'; $(reboot)",
	"<img onerror=x>":     "<img onerror=x>",
	"-rf":                 "-rf",
	" ":                   " ",
	"größe-日本":            "größe-日本",
}

// safe reports whether a terminal shows all of a text, in the lines that it has.
func safe(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) })
}

// TestHostileNamesReachNoTerminal: neither in the output of any verb nor in an error message, on a
// terminal or not; and each name that is listed leads to its file.
func TestHostileNamesReachNoTerminal(t *testing.T) {
	n := newNode(t)
	dir := n.add(1, "etl/nightly/scratch", time.Hour)
	for name := range hostileNames {
		write(t, dir+"/d/"+name, "content of "+name)
	}
	if err := unix.Symlink("to\x1b[2J\u202e\xff", dir+"/link\n"); err != nil {
		t.Fatal(err)
	}
	plain := katbox(t, "ls", "etl/nightly:d").stdout
	for name, want := range hostileNames {
		if !strings.Contains("\n"+plain, "\n"+want+"\n") {
			t.Errorf("the list does not have %q as %s:\n%s", name, want, plain)
		}
	}
	listed := 0
	for line := range strings.Lines(katbox(t, "ls", "-o", "name", "etl/nightly:d").stdout) {
		listed++
		r := katbox(t, "cat", strings.TrimSuffix(line, "\n"))
		name := strings.TrimPrefix(r.stdout, "content of ")
		if _, ok := hostileNames[name]; r.code != 0 || !ok {
			t.Errorf("cat %s: %+v", line, r)
		}
	}
	if listed != len(hostileNames) {
		t.Errorf("%d names, want %d", listed, len(hostileNames))
	}
	for _, args := range [][]string{
		{"ls", "-l", "-R", "etl/nightly:"}, {"ls", "-R", "-o", "name", "etl/nightly:"}, {"ls", "-R", "-o", "json", "etl/nightly:"},
		{"stat", "etl/nightly:link\n"}, {"stat", "-o", "json", "etl/nightly:link\n"}, {"stat", "etl/nightly::d/%1B%5B2Jcleared"},
		{"cat", "etl/nightly:link\n"}, {"cat", "etl/nightly:\x1b[2J\u202e\xff"}, {"cat", "\x1b[2J\u202e\xff"}, {"tail", "etl/nightly:d/\x1b/x"},
		{"ls", "etl/nightly:\x1b[2J"}, {"cp", "etl/nightly:link\n", t.TempDir()}, {"cp", "etl/nightly:\u202e", "-"}, {"rm", "--yes", "x\x1b"},
		{"\x1b[2J"}, {"ls", "--\x1b[2J"}, {"ls", "a", "\x1b[2J"}, {"ls", "-o", "\x1b[2J"}, {"ls", "-n", "\x1b", "etl"},
		{"ls", "--since", "\x1b"},
		{"tail", "-c", "\x1b", "x:y"}, {"cp", "etl/nightly:d", t.TempDir() + "/\x1b/\u202e"}, {"ls", "--socket", "/\x1b"},
		{"report", "/nowhere/\x1b"},
	} {
		r := katbox(t, args...)
		if !safe(r.stdout) || !safe(r.stderr) {
			t.Errorf("katbox %q: stdout %q, stderr %q", args, r.stdout, r.stderr)
		}
		if r.code != 0 && strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("katbox %q: stderr %q", args, r.stderr)
		}
	}
}
