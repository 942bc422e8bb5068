package dataloss

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/daemon"
	"github.com/katbox/katbox/soak/internal/fakedriver"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/mounttest"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/testbed"
)

// errLost says that something is gone, or changed, that had to stay.
var errLost = errors.New("lost")

// node is a driver with all that it can reach, on a tmpfs of its own.
type node struct {
	t *testing.T
	// ground is where the tmpfs is. What is directly in there is outside of
	// everything that the driver was told of.
	ground   string
	layout   testbed.Layout
	lifespan time.Duration
	settings workload.Driver
	// daemon is the real one; it is nil where the driver is a fake one.
	daemon *daemon.Binary
	conn   *grpc.ClientConn
	client csi.NodeClient

	volumes int
	// foreign are directories that are nobody's to change.
	foreign *host.Canaries
	// precious are the files that have to be there, with what is in them.
	precious map[string]string
}

// newNode prepares a node without a driver.
func newNode(t *testing.T) *node {
	t.Helper()
	mounttest.Need(t)
	// The path of t.TempDir is too long for a socket.
	dir, err := os.MkdirTemp("", "loss-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mounttest.ClearAway(t, dir) })
	n := &node{t: t, ground: dir, precious: make(map[string]string)}
	n.try(unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=755"))
	// The working directory is two levels down: that far up two dots lead.
	n.layout, err = testbed.MakeLayout(filepath.Join(dir, "run"), "daemon.log")
	n.try(err)
	n.foreign, err = host.MakeCanaries(n.layout.Canaries, 2)
	n.try(err)
	return n
}

// startDaemon has the real daemon on the node.
func (n *node) startDaemon() {
	n.t.Helper()
	n.lifespan = time.Second
	n.settings = workload.Driver{
		Lifespan: workload.Duration(n.lifespan), OrphanGrace: workload.Duration(time.Hour), PruneInterval: workload.Duration(time.Second),
	}
	n.daemon = n.newDaemon(n.layout)
	n.t.Cleanup(func() {
		n.daemon.Kill()
		if log, err := os.ReadFile(n.layout.Log); n.t.Failed() {
			n.t.Logf("the daemon's log (%v):\n%s", err, log)
		}
	})
	n.t.Cleanup(func() { n.conn.Close() })
	n.start()
}

// newDaemon is a daemon on the node that is not started yet.
func (n *node) newDaemon(l testbed.Layout) *daemon.Binary {
	n.t.Helper()
	binary, err := katbox()
	n.try(err)
	return daemon.New(daemon.Config{Binary: binary, Args: daemon.Flags(l, n.settings), Log: l.Log, Socket: l.Socket})
}

// startFake has a fake driver on the node, which may harm all that is on the tmpfs.
func (n *node) startFake(bug fakedriver.Bug) {
	n.t.Helper()
	n.lifespan = 300 * time.Millisecond
	d, err := fakedriver.New(fakedriver.Config{
		Socket: n.layout.Socket, Work: n.layout.Work, Kubelet: n.layout.Kubelet, Outside: n.ground,
		Lifespan: n.lifespan, OrphanGrace: time.Hour, PruneInterval: 20 * time.Millisecond, Bug: bug,
	})
	n.try(err)
	n.try(d.Start(n.t.Context()))
	n.t.Cleanup(func() { n.try(d.Stop()) })
	n.connect()
	n.t.Cleanup(func() { n.conn.Close() })
}

func (n *node) start() {
	n.t.Helper()
	n.try(n.daemon.Start(n.t.Context()))
	n.connect()
}

func (n *node) connect() {
	n.t.Helper()
	var err error
	n.conn, err = testbed.Dial(n.layout.Socket)
	n.try(err)
	n.client = csi.NewNodeClient(n.conn)
}

// kill ends the daemon as a crash would.
func (n *node) kill() {
	n.t.Helper()
	n.daemon.Kill()
	// A call on an old connection would be lost.
	n.try(n.conn.Close())
}

func (n *node) try(errs ...error) {
	n.t.Helper()
	for _, err := range errs {
		if err != nil {
			n.t.Fatal(err)
		}
	}
}

// answers checks the daemon's answer. Those of a fake driver do not matter.
func (n *node) answers(want codes.Code, err error) {
	n.t.Helper()
	if got := status.Code(err); n.daemon != nil && got != want {
		n.t.Errorf("answered %s (%v), want %s", got, err, want)
	}
}

// is checks something else that is expected of the daemon alone.
func (n *node) is(ok bool, format string, args ...any) {
	n.t.Helper()
	if n.daemon != nil && !ok {
		n.t.Errorf(format, args...)
	}
}

// file makes a file that has to stay.
func (n *node) file(path string) {
	n.t.Helper()
	n.try(os.MkdirAll(filepath.Dir(path), 0o755))
	n.try(testbed.WriteUnforked(path, []byte(path)))
	n.precious[path] = path
}

// lost looks for what had to stay and did not.
func (n *node) lost() error {
	var errs []error
	for path, want := range n.precious {
		got, err := testbed.ReadUnforked(path)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%w: %w", errLost, err))
		case string(got) != want:
			errs = append(errs, fmt.Errorf("%w: %s is changed", errLost, path))
		}
	}
	if err := n.foreign.Check(); err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", errLost, err))
	}
	return errors.Join(errs...)
}

// lostSince looks for what a volume has lost that is retained since the given
// time. On a machine that is so slow that it has expired since, there is nothing
// to be seen.
func (n *node) lostSince(t time.Time) error {
	err := n.lost()
	if time.Since(t) >= n.lifespan {
		return nil
	}
	return err
}

// eventually waits for what the driver does by itself. It fails after a minute,
// which is far longer than anything should take.
func (n *node) eventually(what string, is func() bool) {
	n.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			n.t.Fatalf("still not: %s", what)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (n *node) mounted(path string) bool {
	n.t.Helper()
	mounted, err := host.MountedAt(path)
	n.try(err)
	return mounted
}
