package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/soak/testbed"
)

// pointsVariable names, in the environment of a daemon that was built with crash
// points, the directory to talk through; package crashpoint says how.
const pointsVariable = "KATBOX_CRASHPOINTS"

// errDied: the daemon ended while the test waited for it.
var errDied = errors.New("the daemon has ended")

// scene is a node with one daemon, on which one operation is played with or without a
// crash. It notes what the kubelet was answered, and so what has to be true.
type scene struct {
	*daemon
	op crashOperation
	// binary is the daemon with crash points.
	binary  string
	volumes []*playedVolume
	// running and ended are there in most scenes, and no operation touches them.
	running, ended *playedVolume
	// armedAt is the length of the trace when the operation began, from the length when its
	// own part began.
	armedAt, from int
	// endedRecord is the record of ended before the operation.
	endedRecord []byte
}

func newScene(t *testing.T, op crashOperation, binary string) *scene {
	t.Helper()
	// The name of a test is too long for the path of a socket.
	dir, err := os.MkdirTemp("", "crash")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	roottest.UnmountBelowAtEnd(t, dir)
	s := &scene{daemon: &daemon{t: t, dir: dir}, op: op, binary: binary}
	for _, d := range []string{s.points(), s.outside(), filepath.Join(s.layout().Pods(), testbed.DaemonPod)} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	s.write(filepath.Join(s.outside(), "precious"), "precious")
	if op.fileSystem {
		if err := errors.Join(os.Mkdir(s.workdir(), 0o750), unix.Mount("crash", s.workdir(), "tmpfs", 0, "size=64m,nr_inodes=400")); err != nil {
			t.Fatal(err)
		}
	}
	if op.quotas != "" {
		bindWorkdir(t, s.daemon, op.quotas)
	}
	s.runOn(op.kernel, pointsVariable+"="+s.points())
	// What is answered before it is on the disk is not there before something else is committed, so that each run
	// reaches the same points.
	s.flags = append([]string{"--afterlifespan", op.lifespan().String(), "--record-sync", "30s", "--record-sync-patience", "1h"}, op.flags...)
	if op.registers {
		s.flags = append(s.flags, "--registration-dir", filepath.Join(dir, "reg"))
	}
	return s
}

// runOn makes the daemon run on a kernel from its next start on.
func (s *scene) runOn(k fakeKernel, env ...string) {
	s.program, s.env = s.binary, env
	if k != "" {
		s.program = os.Args[0]
		s.env = append(s.env, kernelVariable+"="+string(k), programVariable+"="+s.binary)
	}
}

func (s *scene) points() string  { return filepath.Join(s.dir, "points") }
func (s *scene) outside() string { return filepath.Join(s.dir, "outside") }
func (s *scene) foreign() string { return filepath.Join(s.workdir(), "notes") }

func (s *scene) write(path, content string) {
	s.t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = testbed.WriteUnforked(path, []byte(content))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// playThrough plays the operation to its end and kills the daemon. It returns the points
// that the daemon reached, and where the operation's own part of them begins.
func (s *scene) playThrough() (trace []string, from int) {
	s.t.Helper()
	s.setUp()
	if err := s.op.do(s); err != nil {
		s.t.Fatalf("%v\n%s", err, s.logText())
	}
	s.must(s.await("the last effect is over", func() bool {
		after := 0
		for _, line := range s.trace() {
			if strings.HasPrefix(line, "after ") {
				after++
			}
		}
		return 2*after == len(s.trace())
	}))
	trace = s.trace()[s.armedAt:]
	if s.process != nil {
		s.kill()
	}
	s.checkPromises()
	return trace, s.from
}

// playCrash plays the operation until the daemon ends itself.
func (s *scene) playCrash(o occurrence) {
	s.t.Helper()
	s.setUp()
	kill := filepath.Join(s.points(), "kill")
	s.write(kill+".new", fmt.Sprintln(o.point, o.time))
	if err := os.Rename(kill+".new", kill); err != nil { // the daemon reads it at any time, and whole
		s.t.Fatal(err)
	}
	result := s.op.do(s)
	if s.process != nil {
		s.died()
	}
	if exists(kill) {
		s.t.Fatalf("the operation did not reach the point: %v\n%s", result, s.logText())
	}
	s.checkPromises()
}

// setUp makes the node as it is before the operation.
func (s *scene) setUp() {
	s.t.Helper()
	if !s.op.empty {
		s.must(s.startIt())
		s.write(s.foreign(), "notes")
		s.running = s.addPublished("running", podFiles())
		if !s.op.alone {
			s.ended = s.addPublished("ended", podFiles())
			s.must(s.unpublishVolume(s.ended))
		}
		if s.op.prepare != nil {
			s.op.prepare(s)
		}
		if s.ended != nil {
			_, s.endedRecord = s.records(s.ended)
		}
	}
	if s.op.stop != 0 {
		s.signal(s.op.stop)
		s.checkLog()
	}
	if s.op.offline != nil {
		s.op.offline(s)
	}
	s.armedAt = len(s.trace())
}

// died waits for the daemon to end itself.
func (s *scene) died() {
	s.t.Helper()
	process := s.process
	tooLate := time.AfterFunc(hangs, func() { _ = process.Signal(syscall.SIGQUIT) })
	defer tooLate.Stop()
	s.wait()
	state := process.State().Sys().(syscall.WaitStatus)
	s.checkLog()
	if !state.Signaled() || state.Signal() != syscall.SIGKILL {
		s.t.Fatalf("the daemon has not killed itself: %v\n%s\n%s", state, s.stdout, s.stderr)
	}
}

// kill ends the daemon from outside.
func (s *scene) kill() {
	s.t.Helper()
	s.signal(syscall.SIGKILL)
	s.checkLog()
}

// logText is what the daemon has written; it ends the daemon, if that still runs.
func (s *scene) logText() string {
	if s.process != nil {
		s.signal(syscall.SIGKILL)
	}
	return s.stdout.String() + s.stderr.String()
}

func (s *scene) trace() []string {
	s.t.Helper()
	content, err := testbed.ReadUnforked(filepath.Join(s.points(), "trace"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	lines := strings.Split(string(content), "\n")
	return lines[:len(lines)-1]
}

// met returns how often the operation has reached a point so far.
func (s *scene) met(point string) int {
	n := 0
	for _, line := range s.trace()[s.armedAt:] {
		if line == point {
			n++
		}
	}
	return n
}

// ownPart says that the operation's own part begins here; the points so far belong to
// another operation.
func (s *scene) ownPart() { s.from = len(s.trace()) - s.armedAt }

// await waits for something that the daemon does by itself, while it lives.
func (s *scene) await(what string, is func() bool) error {
	for deadline := time.Now().Add(hangs); !is(); {
		select {
		case <-s.process.Ended():
			return errDied
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("still not: %s", what)
		}
	}
	return nil
}

// startIt starts the daemon as part of an operation, and waits for the last of its sockets: it is
// ready for the kubelet before it has made those.
func (s *scene) startIt() error {
	s.t.Helper()
	sockets, from := 2, len(s.trace())
	if s.op.registers {
		sockets++
	}
	s.launch()
	if err := s.ready(); err != nil {
		return err
	}
	return s.await("all sockets are there", func() bool {
		made := 0
		for _, line := range s.trace()[from:] {
			if line == "after socket.Listen/Chmod" {
				made++
			}
		}
		return made == sockets
	})
}

// stopIt stops the daemon in order as an operation.
func (s *scene) stopIt() error {
	s.t.Helper()
	if err := s.process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-s.process.Ended()
	if !strings.Contains(s.stdout.String(), `"stopped"`) {
		return errDied
	}
	if code := s.wait(); code != 0 {
		return fmt.Errorf("exit code %d", code)
	}
	s.checkLog()
	return nil
}

// lifespan is that of the daemon that runs.
func (s *scene) lifespan() time.Duration {
	lifespan, err := time.ParseDuration(s.flags[1])
	if err != nil {
		s.t.Fatal(err)
	}
	return lifespan
}

// checkLog checks the log of a daemon that has ended.
func (s *scene) checkLog() {
	s.t.Helper()
	if s.stderr.String() != "" {
		s.t.Errorf("stderr: %s", s.stderr)
	}
	for line := range strings.Lines(s.stdout.String()) {
		var entry struct{ Level string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			// A kill may cut the last line off.
			if strings.HasSuffix(line, "\n") {
				s.t.Errorf("the daemon's log has %q: %v", line, err)
			}
			continue
		}
		isAllowed := func(text string) bool { return strings.Contains(line, text) }
		if entry.Level == "error" && !slices.ContainsFunc(s.op.errors, isAllowed) || strings.Contains(line, "panic") {
			s.t.Errorf("the daemon's log has %s", line)
		}
	}
}
