package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/lib/logging"
	"github.com/katbox/katbox/internal/lib/program"
)

// TestStdoutThatStalls: the daemon still answers calls, changes volumes and ends.
func TestStdoutThatStalls(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h", "--http-endpoint", httpEndpoint())
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	d.logTo = writer
	d.start()
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	// More than the pipe and the daemon hold: the log has each call with its volume.
	refused := d.request(testPod, strings.Repeat("x", 3000))
	for range logging.Most / 2000 {
		if _, err := d.node.NodePublishVolume(t.Context(), refused); status.Code(err) != codes.InvalidArgument {
			t.Fatalf("%v, want InvalidArgument", err)
		}
	}
	d.publish(testPod, volumeID(1))
	holder := exec.Command("sleep", "600")
	holder.Dir = d.target(testPod)
	holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := holder.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = holder.Wait() // it was killed
	}()
	for range 3 { // the supervisor logs a volume that is stuck
		if err := d.tryUnpublish(testPod, volumeID(1)); status.Code(err) != codes.Aborted {
			t.Errorf("unpublish of a busy target: %v, want Aborted", err)
		}
	}
	d.makePod("other")
	d.publish("other", volumeID(2))
	d.unpublish("other", volumeID(2))
	if lost := d.metrics()["katbox_log_lines_dropped_total"]; lost == 0 {
		t.Error("no line of the log was dropped")
	}
	d.wantAnswer("/healthz", 200, "ok")
	if code := d.signal(syscall.SIGTERM); code != 0 || d.stderr.String() != "" {
		t.Errorf("exit code %d, stderr %q, want 0 and nothing", code, d.stderr)
	}
}

// TestStderrThatStalls: the daemon ends without its last line.
func TestStderrThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		if code := program.ExitCode(programName, errors.New("broken"), stalled(goOn)); code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		close(goOn)
	})
}

// stalled is a writer that accepts nothing before it is closed.
type stalled chan struct{}

func (s stalled) Write(p []byte) (int, error) {
	<-s
	return len(p), nil
}
