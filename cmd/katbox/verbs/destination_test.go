package verbs

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/verbstest"
)

// copyAll copies a volume as one of several below a directory, as the plugin does with those of a job.
func copyAll(t *testing.T, ref, dest string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	s := &session{socket: os.Getenv(socketVariable), client: api.Dial(os.Getenv(socketVariable))}
	defer s.client.Close()
	s.Session = &verbs.Session{Program: "katbox", Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Now: time.Now}
	part := verbs.Part{Volume: verbs.Volume{Reader: reader{s.client, s}, ID: id(1), Target: "v"}, Pod: "pod", Name: "scratch"}
	var o verbs.CopyOptions
	o.Define(pflag.NewFlagSet("", pflag.ContinueOnError))
	if err := s.CopyAll(t.Context(), []verbs.Part{part}, ref, dest, &o); err != nil {
		return result{stderr: stderr.String() + err.Error(), code: verbs.CodeOf(err)}
	}
	return result{stdout.String(), stderr.String(), 0}
}

// TestCopyIsKnownByItsTime: a copy of several volumes is repeated on file systems whose times are coarser than those of the
// original, or that cannot hold them, and nothing is read twice. A file with another time is no copy.
func TestCopyIsKnownByItsTime(t *testing.T) {
	for name, mount := range map[string]func(t *testing.T) string{
		"ext4 with inodes of 128 bytes": func(t *testing.T) string { return roottest.FileSystem(t, "ext4", 64, "-I", "128") },
		"vfat":                          func(t *testing.T) string { return roottest.FileSystem(t, "vfat", 64) },
		"exfat":                         func(t *testing.T) string { return roottest.FileSystem(t, "exfat", 64) },
		"here":                          func(t *testing.T) string { return t.TempDir() },
	} {
		for what, original := range map[string]time.Time{
			"odd": time.Date(2026, 3, 4, 5, 6, 7, 123_456_789, time.UTC), "before FAT": time.Date(1975, 3, 4, 5, 6, 7, 1, time.UTC),
			"in a far future": time.Date(2150, 3, 4, 5, 6, 7, 999_999_999, time.UTC),
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				n, dest := newNode(t), mount(t)
				dir := n.add(1, "etl/nightly/scratch", time.Hour)
				write(t, dir+"/log", "content")
				for _, path := range []string{dir + "/log", dir} {
					if err := os.Chtimes(path, original, original); err != nil {
						t.Fatal(err)
					}
				}
				for ref, file := range map[string]string{"": "all/pod/scratch/log", "log": "one/pod/scratch/log"} {
					top := filepath.Join(dest, strings.Split(file, "/")[0])
					if r := copyAll(t, ref, top); r.code != 0 {
						t.Fatalf("%+v", r)
					}
					streams := n.streams()
					if r := copyAll(t, ref, top); r.code != 0 || !strings.Contains(r.stderr, "is there already") || n.streams() != streams {
						t.Errorf("again: %+v", r)
					}
					verbstest.WantNames(t, top, strings.TrimPrefix(file, filepath.Base(top)+"/"))
					verbstest.WantFile(t, filepath.Join(dest, file), "content")
					other := original.Add(-1 * time.Hour)
					if original.Year() != 2026 {
						other = modified
					}
					for _, path := range []string{filepath.Join(dest, file), filepath.Dir(filepath.Join(dest, file))} {
						if err := os.Chtimes(path, other, other); err != nil {
							t.Fatal(err)
						}
					}
					if r := copyAll(t, ref, top); r.code != verbs.CodeFailed || !strings.Contains(r.stderr, "exists already") {
						t.Errorf("of another time: %+v", r)
					}
				}
			})
		}
	}
}

// streams counts how often bytes were asked for, from the first call on.
func (n *node) streams() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.counted == nil {
		n.counted = new(int)
		front := n.front
		n.front = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/bytes") {
				n.mu.Lock()
				*n.counted++
				n.mu.Unlock()
			}
			return front != nil && front(w, r)
		}
	}
	return *n.counted
}

// TestCopyWithoutLocks: a file system without locks is no other process.
func TestCopyWithoutLocks(t *testing.T) {
	roottest.Programs(t, "strace")
	if out, err := exec.Command("strace", "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		roottest.Lacks(t, "strace", err, string(out))
	}
	for _, row := range []struct{ errno, want string }{
		{"ENOSYS", ""}, {"ENOLCK", ""}, {"EOPNOTSUPP", ""}, {"EINTR:when=1", ""}, {"EAGAIN", "another katbox cp writes"}, {"EIO", "lock "},
	} {
		n := newNode(t)
		write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", "content")
		for what, target := range map[string]string{"files": "etl/nightly", "log": "etl/nightly:log"} {
			dest := t.TempDir()
			cmd := exec.Command("strace", "-f", "-qq", "-o", os.DevNull, "-e", "trace=flock", "-e", "inject=flock:error="+row.errno,
				os.Args[0], "cp", target, dest+"/"+what)
			cmd.Env = append(os.Environ(), asVerb+"=1")
			out, err := cmd.CombinedOutput()
			if (err == nil) != (row.want == "") || !strings.Contains(string(out), row.want) {
				t.Errorf("%s, %s: %v, %s", row.errno, what, err, out)
			}
			if row.want == "" {
				verbstest.WantNames(t, dest, map[string]string{"files": "files/log", "log": "log"}[what])
			}
		}
	}
}

// TestLongNamesAreCopied: also where there is no room for a suffix, and after a cut.
func TestLongNamesAreCopied(t *testing.T) {
	for length := 240; length <= 255; length += 3 {
		n, name := newNode(t), strings.Repeat("n", length)
		content := verbstest.Numbers(100_000)
		write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/x/"+name, content)
		above := t.TempDir()
		for _, target := range []string{"x/" + name, "x"} {
			dest, before := above+"/"+name[1:]+target[:1], volume.Description{}
			n.goneAfter(300_000, &before)
			mustFail(t, verbs.CodeFailed, []string{"cp", id(1) + ":" + target, dest}, "")
			n.change(1, func(d *volume.Description) { *d = before })
			if r := katbox(t, "cp", id(1)+":"+target, dest); r.code != 0 || len(target) > 1 && !strings.Contains(r.stderr, "going on after") {
				t.Errorf("%d, %s: %+v", length, target, r)
			}
			if target == "x" {
				dest += "/" + name
			}
			verbstest.WantFile(t, dest, content)
			if names, err := os.ReadDir(above); err != nil || len(names) != 1 {
				t.Errorf("%v, %v", names, err)
			}
			if err := os.RemoveAll(above + "/" + name[1:] + target[:1]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWhatADestinationRefusesIsListed: with the exit code that says so, and what can be done.
func TestWhatADestinationRefusesIsListed(t *testing.T) {
	n, top := newNode(t), roottest.FileSystem(t, "exfat", 64)
	dir := n.add(1, "etl/nightly/scratch", time.Hour)
	for _, name := range []string{"README", "a/first", "a/12:00:00.log", "b/last"} {
		write(t, dir+"/"+name, name)
	}
	if err := os.Link(dir+"/a/first", dir+"/b/second"); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/readme", "readme")
	for range 2 {
		r := katbox(t, "cp", "--overwrite", "etl/nightly", top+"/files")
		if r.code != verbs.CodeFailed || !strings.Contains(r.stderr, "all is there but 3 entries") || !strings.Contains(r.stderr, "--tar") ||
			!strings.Contains(r.stderr, `"a/12:00:00.log"`) || !strings.Contains(strings.ToLower(r.stderr), `it has the same name as "readme"`) {
			t.Errorf("%+v", r)
		}
		links := 0
		for _, name := range []string{"a/first", "b/second"} {
			if b, err := os.ReadFile(top + "/files/" + name); err == nil && string(b) == "a/first" {
				links++
			}
		}
		if links != 1 {
			t.Errorf("%d of two hard links are there", links)
		}
		verbstest.WantFile(t, top+"/files/b/last", "b/last")
	}
	// One file alone says what to do, and so does the tar.
	r := katbox(t, "cp", "etl/nightly:a/12:00:00.log", top)
	if r.code != verbs.CodeFailed || !strings.Contains(r.stderr, "give the name of a file as DEST") {
		t.Errorf("%+v", r)
	}
	mustPrint(t, "", "cp", "etl/nightly:a/12:00:00.log", top+"/12.log")
	mustPrint(t, "", "cp", "--tar", "etl/nightly", top+"/all.tar")
}
