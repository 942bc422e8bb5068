package verbs

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/testing/verbstest"
)

// stall makes the node send that many bytes of a stream and then no more, until the client or go ends that.
func (n *node) stall(after int, release <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.front = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/bytes") {
			return false
		}
		n.handler.ServeHTTP(&stalling{w, after, r, release}, r)
		return true
	}
}

// silence makes the node answer nothing to who asks for bytes, until the client ends that.
func (n *node) silence() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.front = func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/bytes") {
			return false
		}
		<-r.Context().Done()
		return true
	}
}

type stalling struct {
	http.ResponseWriter
	left    int
	request *http.Request
	release <-chan struct{}
}

func (s *stalling) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *stalling) Write(p []byte) (int, error) {
	if len(p) > s.left {
		if _, err := s.ResponseWriter.Write(p[:s.left]); err != nil {
			return 0, err
		}
		_ = http.NewResponseController(s.ResponseWriter).Flush()
		select {
		case <-s.request.Context().Done():
			panic(http.ErrAbortHandler)
		case <-s.release:
		}
		n, err := s.ResponseWriter.Write(p[s.left:])
		return s.left + n, err
	}
	s.left -= len(p)
	return s.ResponseWriter.Write(p)
}

// await waits until a file exists and holds a text.
func await(t *testing.T, name, text string) {
	t.Helper()
	for {
		if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, []byte(text)) {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s never held %q", name, text)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// awaitFiles waits until a number of files are whole. Which ones come first is up to the file system.
func (c *copies) awaitFiles(t *testing.T, want int) {
	t.Helper()
	for {
		names, _ := filepath.Glob(c.dest + ".partial/*/log")
		whole := 0
		for _, name := range names {
			if b, err := os.ReadFile(name); err == nil && bytes.HasSuffix(b, []byte("39999\n")) {
				whole++
			}
		}
		if whole >= want {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("there never were %d files", want)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// copies is a volume with a few directories of files, and starts the program that copies it.
type copies struct {
	*node
	dest  string
	files []string
}

func newCopies(t *testing.T) *copies {
	c := &copies{node: newNode(t), dest: t.TempDir() + "/files"}
	dir := c.add(1, "etl/nightly/scratch", time.Hour)
	for i := range 6 {
		name := fmt.Sprintf("%d/log", i)
		write(t, dir+"/"+name, c.content(i))
		if err := os.Chmod(fmt.Sprintf("%s/%d", dir, i), 0o555); err != nil {
			t.Fatal(err)
		}
		c.files = append(c.files, name)
	}
	return c
}

func (c *copies) content(i int) string { return fmt.Sprintln(i) + verbstest.Numbers(40_000) }

// start starts the program behind words of a command line.
func (c *copies) start(t *testing.T, before ...string) *exec.Cmd {
	t.Helper()
	args := append(before, os.Args[0], "cp", "etl/nightly", c.dest)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), asVerb+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// Below nohup it would ignore the end of its terminal, as these tests do then. What they handle it has by default.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// wantAll wants all files with their contents, and nothing else.
func (c *copies) wantAll(t *testing.T) {
	t.Helper()
	var names []string
	for i, name := range c.files {
		names = append(names, "files/"+name)
		verbstest.WantFile(t, c.dest+"/"+name, c.content(i))
		if info, err := os.Stat(fmt.Sprintf("%s/%d", c.dest, i)); err != nil || info.Mode().Perm() != 0o555 {
			t.Errorf("directory %d: %v, %v", i, info.Mode(), err)
		}
	}
	verbstest.WantNames(t, strings.TrimSuffix(c.dest, "/files"), names...)
}

// TestACopyThatWasEndedGoesOn: whatever signal ends a copy of a directory, the same command goes on where it was.
func TestACopyThatWasEndedGoesOn(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			c := newCopies(t)
			c.stall(720_000, nil)
			cmd := c.start(t)
			if signal == syscall.SIGKILL {
				await(t, c.dest+".partial.etag", `"next":69`) // the first three files
			}
			c.awaitFiles(t, 3)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); signal != syscall.SIGKILL && code != verbs.CodeInterrupted {
				t.Errorf("exit code %d, %v", code, err)
			}
			c.wantGoneOn(t)
		})
	}
}

// wantGoneOn runs the program again, and wants it to go on.
func (c *copies) wantGoneOn(t *testing.T) {
	t.Helper()
	var asked atomic.Pointer[string]
	c.mu.Lock()
	c.front = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/bytes") {
			from := r.Header.Get("Range")
			asked.Store(&from)
		}
		return false
	}
	c.mu.Unlock()
	r := katbox(t, "cp", "etl/nightly", c.dest)
	if r.code != 0 || !strings.Contains(r.stderr, "going on after 6") || *asked.Load() == "" {
		t.Errorf("%+v, asked from %q", r, *asked.Load())
	}
	c.wantAll(t)
}

// TestACopyKilledAgainAndAgainGoesOn: also one that goes on is killed, and what it was writing is no file of the copy.
func TestACopyKilledAgainAndAgainGoesOn(t *testing.T) {
	c := newCopies(t)
	for _, after := range []int{300_000, 400_000, 100_000} {
		c.stall(after, nil)
		cmd := c.start(t)
		before, _ := os.ReadFile(c.dest + ".partial.etag")
		for now := before; bytes.Count(now, []byte(`"next"`)) <= bytes.Count(before, []byte(`"next"`)); {
			now, _ = os.ReadFile(c.dest + ".partial.etag")
			if t.Context().Err() != nil {
				t.Fatal("there is no checkpoint")
			}
			time.Sleep(5 * time.Millisecond)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
	c.mu.Lock()
	c.front = nil
	c.mu.Unlock()
	if r := katbox(t, "cp", "etl/nightly", c.dest); r.code != 0 {
		t.Errorf("%+v", r)
	}
	c.wantAll(t)
}

// TestACopyWithoutItsTerminalGoesOn where nohup wants that.
func TestACopyWithoutItsTerminalGoesOn(t *testing.T) {
	c, release := newCopies(t), make(chan struct{})
	c.stall(720_000, release)
	cmd := c.start(t, "sh", "-c", `trap "" HUP; exec "$@"`, "sh")
	c.awaitFiles(t, 3)
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	close(release)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	c.wantAll(t)
}

// TestACopyThatCannotGoOnSaysSo before it deletes what there is of it.
func TestACopyThatCannotGoOnSaysSo(t *testing.T) {
	c := newCopies(t)
	c.stall(720_000, nil)
	cmd := c.start(t)
	c.awaitFiles(t, 3)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	write(t, c.dest+".partial.etag", "damaged")
	c.mu.Lock()
	c.front = nil
	c.mu.Unlock()
	if r := katbox(t, "cp", "etl/nightly", c.dest); r.code != 0 || !strings.Contains(r.stderr, "beginning anew") {
		t.Errorf("%+v", r)
	}
	c.wantAll(t)
}

// TestACopyKilledBeforeItBeganDeletesNothing: a directory that was there before the first copy stays, though a killed copy
// has left its file beside it.
func TestACopyKilledBeforeItBeganDeletesNothing(t *testing.T) {
	for what, there := range map[string]func(t *testing.T, c *copies){
		"when the copy begins": func(t *testing.T, c *copies) { write(t, c.dest+".partial/mine", "mine") },
		"when it is repeated":  func(*testing.T, *copies) {},
	} {
		t.Run(what, func(t *testing.T) {
			c := newCopies(t)
			there(t, c)
			c.silence()
			c.streams()
			cmd := c.start(t)
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			for refused := false; !refused && c.streams() == 0; {
				select {
				case err := <-ended: // It has refused at once.
					t.Log(err)
					ended <- err
					refused = true
				case <-time.After(5 * time.Millisecond):
				}
			}
			_ = cmd.Process.Kill()
			t.Log(<-ended)
			c.mu.Lock()
			c.front = nil
			c.mu.Unlock()
			_ = os.Remove(c.dest + ".partial")
			write(t, c.dest+".partial/mine", "mine")
			r := katbox(t, "cp", "etl/nightly", c.dest)
			if r.code != verbs.CodeFailed || !strings.Contains(r.stderr, "exists already, and is not the beginning of a copy") {
				t.Errorf("%+v", r)
			}
			verbstest.WantFile(t, c.dest+".partial/mine", "mine")
		})
	}
}
