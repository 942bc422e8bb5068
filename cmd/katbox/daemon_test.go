package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"github.com/katbox/katbox/internal/testing/attachtest"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/soak/testbed"
)

// hangs is after how long something hangs.
var hangs = roottest.Hangs

// asDaemon in the environment makes the test binary the daemon: the tests run
// the real process, with the race detector in it.
const asDaemon = "KATBOX_TEST_AS_DAEMON"

func TestMain(m *testing.M) {
	attachtest.BecomeWriter()
	switch {
	case os.Getenv(asDaemon) == "1":
		enterGroup()
		main()
		return
	case os.Getenv(kernelVariable) != "":
		execUnderFilter()
	case os.Getenv(asBare) != "":
		fmt.Fprintln(os.Stderr, serveBare(os.Getenv(asBare)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// daemon is a real daemon process over real directories and mounts.
type daemon struct {
	t     testing.TB
	dir   string
	flags []string
	// program runs instead of this test binary, with env in its environment.
	program string
	env     []string
	// logTo is the daemon's stdout instead of the buffer of that name.
	logTo *os.File
	// process is nil while there is none.
	process *testbed.Process
	stdout  *output
	stderr  *output
	conn    *grpc.ClientConn
	node    csi.NodeClient
}

// output is what a process has written. A test that fails may print it while the process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

const testPod = "5f1c8a52-1f4e-4f0e-9d43-6a1b2c3d4e5f"

// newDaemon prepares the directories of a node; start starts the process.
func newDaemon(t testing.TB, flags ...string) *daemon {
	t.Helper()
	roottest.Need(t)
	d := &daemon{t: t, dir: t.TempDir(), flags: flags}
	roottest.UnmountBelowAtEnd(t, d.dir)
	d.makePod(testPod)
	return d
}

func (d *daemon) layout() testbed.Layout { return testbed.At(d.dir) }

func (d *daemon) workdir() string { return d.layout().Work }

// inline is the kubelet's side of an inline volume.
func (d *daemon) inline(pod, id string) testbed.Volume {
	return testbed.Volume{Kubelet: d.layout().Kubelet, Work: d.workdir(), Pod: pod, Name: "scratch", ID: id}
}

func (d *daemon) makePod(pod string) {
	d.t.Helper()
	must(d.t, d.inline(pod, "").MakeTargetDir())
}

func (d *daemon) target(pod string) string { return d.inline(pod, "").Target() }

func (d *daemon) data(pod, id string) string { return d.inline(pod, id).Data() }

// command returns the daemon's process, not started.
func (d *daemon) command() *exec.Cmd {
	args := append(d.layout().Flags("--headroom", "0", "--kubelet-line", "none", "--log-level", "debug"), d.flags...)
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asDaemon+"=1")
	if d.program != "" {
		cmd = exec.Command(d.program, args...)
		cmd.Env = append(os.Environ(), d.env...)
	}
	d.stdout, d.stderr = &output{}, &output{}
	cmd.Stdout, cmd.Stderr = d.stdout, d.stderr
	if d.logTo != nil {
		cmd.Stdout = d.logTo
	}
	return cmd
}

// start starts the daemon and waits until it is ready.
func (d *daemon) start() {
	d.t.Helper()
	d.launch()
	if err := d.ready(); err != nil {
		d.t.Fatalf("%v\n%s%s", err, d.stdout, d.stderr)
	}
}

// launch starts the daemon and does not wait.
func (d *daemon) launch() {
	d.t.Helper()
	var err error
	d.process, err = testbed.Start(d.command())
	must(d.t, err)
	d.conn, err = testbed.Dial(d.layout().Socket, testbed.Eager())
	must(d.t, err)
	d.node = csi.NewNodeClient(d.conn)
	d.t.Cleanup(d.end)
}

// ready waits until the daemon answers, or has ended. The first answer has to be that it is ready: it serves nothing before.
func (d *daemon) ready() error {
	ctx, cancel := context.WithTimeout(d.t.Context(), hangs)
	defer cancel()
	ended := d.process.Ended()
	go func() {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	probe, err := csi.NewIdentityClient(d.conn).Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true))
	if err != nil || !probe.GetReady().GetValue() {
		return fmt.Errorf("the daemon is not ready: %v, %w", probe, err)
	}
	return nil
}

// end is the clean-up after a test; it does nothing when the test ended the
// daemon itself.
func (d *daemon) end() {
	if d.process != nil {
		d.signal(syscall.SIGKILL)
	}
}

// signal ends the daemon and returns its exit code, -1 after a kill.
func (d *daemon) signal(sig syscall.Signal) int {
	d.t.Helper()
	must(d.t, d.process.Signal(sig))
	return d.wait()
}

// wait waits until the daemon has ended, and returns its exit code.
func (d *daemon) wait() int {
	d.t.Helper()
	if exit, err := (&exec.ExitError{}), d.process.Err(); err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	code := d.process.State().ExitCode()
	if strings.Contains(d.stderr.String(), "DATA RACE") {
		d.t.Errorf("the daemon has a data race:\n%s", d.stderr)
	}
	d.process = nil
	if err := d.conn.Close(); err != nil {
		d.t.Error(err)
	}
	return code
}

// crash is a SIGKILL and a start.
func (d *daemon) crash() {
	d.t.Helper()
	_, err := os.Stat(d.layout().Admin)
	d.signal(syscall.SIGKILL)
	d.start()
	if err == nil {
		d.serves()
	}
}

// serves waits for the admin socket, which is the last thing that the daemon opens.
func (d *daemon) serves() {
	d.t.Helper()
	d.eventually("the admin socket is served", func() bool {
		c, err := net.Dial("unix", d.layout().Admin)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// fails runs the daemon, which must end by itself, and returns its only line on stderr.
func (d *daemon) fails() string {
	d.t.Helper()
	p, err := testbed.Start(d.command())
	must(d.t, err)
	if code := p.State().ExitCode(); code != 1 {
		d.t.Fatalf("exit code %d (%v), want 1\n%s", code, p.Err(), d.stderr)
	}
	line := strings.TrimSuffix(d.stderr.String(), "\n")
	if line == "" || strings.Contains(line, "\n") {
		d.t.Errorf("stderr %q, want one line", line)
	}
	return line
}

func (d *daemon) request(pod, id string) *csi.NodePublishVolumeRequest {
	return testbed.Publish(id, d.target(pod), pod, nil)
}

func (d *daemon) publish(pod, id string) {
	d.t.Helper()
	_, err := d.node.NodePublishVolume(d.t.Context(), d.request(pod, id))
	must(d.t, err)
}

// publishRepeated publishes a volume whose deletion may not have ended.
func (d *daemon) publishRepeated(pod, id string) {
	d.t.Helper()
	must(d.t, repeated(func() error {
		_, err := d.node.NodePublishVolume(d.t.Context(), d.request(pod, id))
		return err
	}))
}

func (d *daemon) tryUnpublish(pod, id string) error {
	_, err := d.node.NodeUnpublishVolume(d.t.Context(), testbed.Unpublish(id, d.target(pod)))
	return err
}

func (d *daemon) unpublish(pod, id string) {
	d.t.Helper()
	must(d.t, d.tryUnpublish(pod, id))
}

func (d *daemon) writeMarker(pod string) {
	d.t.Helper()
	must(d.t, os.WriteFile(filepath.Join(d.target(pod), "marker"), []byte(pod), 0o600))
}

func (d *daemon) wantMarker(pod, id, when string) {
	d.t.Helper()
	got, err := os.ReadFile(filepath.Join(d.data(pod, id), "marker"))
	if err != nil || string(got) != pod {
		d.t.Fatalf("%s: marker %q, %v", when, got, err)
	}
}

// wantRetained is wantMarker for a volume whose unpublish began at the given time. On a machine
// that is so slow that it has expired since, there is nothing to be seen.
func (d *daemon) wantRetained(pod, id string, began time.Time, lifespan time.Duration) {
	d.t.Helper()
	got, err := os.ReadFile(filepath.Join(d.data(pod, id), "marker"))
	if (err != nil || string(got) != pod) && time.Since(began) < lifespan {
		d.t.Fatalf("retained: marker %q, %v", got, err)
	}
}

func (d *daemon) mounted(target string) bool {
	d.t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.Contains(string(table), " "+target+" ")
}

// eventually waits until the daemon has done something by itself. It fails after
// three minutes (see hangs), far longer than anything should take.
func (d *daemon) eventually(what string, is func() bool) {
	d.t.Helper()
	d.eventuallyWithin(3*hangs, what, is)
}

func (d *daemon) eventuallyWithin(limit time.Duration, what string, is func() bool) {
	d.t.Helper()
	deadline := time.Now().Add(limit)
	for !is() {
		if time.Now().After(deadline) {
			d.t.Fatalf("still not: %s\n%s", what, d.stdout)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// passDeadline waits until the deadline of all retained volumes is over: a volume that is
// retained later has been deleted.
func (d *daemon) passDeadline() {
	d.t.Helper()
	const pod = "later"
	d.makePod(pod)
	d.publishRepeated(pod, volumeID(2))
	d.unpublish(pod, volumeID(2))
	d.eventually("the volume that was retained later is deleted", d.gone(pod, volumeID(2)))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (d *daemon) gone(pod, id string) func() bool {
	return func() bool { return !exists(d.data(pod, id)) }
}

func volumeID(i int) string { return fmt.Sprintf("csi-%064x", i) }
