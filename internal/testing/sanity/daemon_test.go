package sanity

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"

	"github.com/katbox/katbox/actors/ephemeral"
	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/csi/inline"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/policy"
	"github.com/katbox/katbox/internal/node/scratch"
	"github.com/katbox/katbox/internal/node/store"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// podUID is the pod that all volumes belong to. Its directory is there the
// whole time, so the driver does not take the pod for gone.
const podUID = "6d6a1b1e-9a55-4b38-8f0e-1c1f5d3c9a10"

// daemon is a whole Katbox daemon in this process.
type daemon struct {
	// socket is where it serves.
	socket string
	// targets is the parent of the target paths, for csi-sanity to make.
	targets string
	scratch *scratch.Dir
	records *store.Store
	node    *ephemeral.Node
	server  *edge.Server
	served  chan error
}

// startDaemon builds the daemon as its main program does, on directories of
// the test.
func startDaemon(t *testing.T) *daemon {
	t.Helper()
	workdir, kubeletDir := t.TempDir(), t.TempDir()
	volumes := filepath.Join(kubelet.PodsDir(kubeletDir), podUID, "volumes", "kubernetes.io~csi")
	must(t, os.MkdirAll(volumes, 0o750))
	roottest.UnmountBelowAtEnd(t, kubeletDir)

	roottest.UnmountAtEnd(t, workdir)
	_, err := mount.EnsureOwn(workdir)
	must(t, err)
	dir, err := scratch.Open(workdir)
	must(t, err)
	t.Cleanup(func() { must(t, dir.Close()) })
	records, err := store.Open(filepath.Join(workdir, ".katbox.db"))
	must(t, err)
	t.Cleanup(func() { must(t, records.Close()) })

	log := testr.New(t)
	podsDir := kubelet.PodsDir(kubeletDir)
	counted := metrics.New("sanity", "")
	node, err := ephemeral.Start(ephemeral.Config{
		Mounter:          mount.New(),
		Bindings:         func() ([]mount.Binding, error) { return dir.Bindings(podsDir) },
		Scratch:          dir,
		Space:            dir.Space,
		SpaceAfterErase:  dir.SpaceAfterErase,
		Records:          records,
		Known:            func(func(volume.Record)) error { return nil },
		PodsDir:          podsDir,
		Lifespan:         time.Hour,
		PressureInterval: time.Second,
		EraseParallel:    1,
		OrphanGrace:      10 * time.Minute,
		Log:              log,
		Metrics:          counted,
	})
	must(t, err)
	d := &daemon{
		socket: filepath.Join(t.TempDir(), "csi.sock"), targets: filepath.Join(volumes, "sanity"),
		scratch: dir, records: records, node: node, served: make(chan error, 1),
	}
	promises, err := policy.New(policy.Bounds{Lifespan: time.Hour, MaxLifespan: time.Hour})
	must(t, err)
	edge, err := inline.New(inline.Config{
		Name: "katbox.csi.paypal.com", Version: "sanity", NodeID: "node-1", KubeletDir: kubeletDir, Volumes: node, Terms: promises.Terms,
		Log: log, Metrics: counted,
	})
	must(t, err)
	listener, err := socket.Listen(d.socket)
	must(t, err)
	d.server = inline.NewServer(edge)
	go func() { d.served <- d.server.Serve(listener) }()
	return d
}

// stop ends the daemon; its records stay open.
func (d *daemon) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	must(t, d.server.Stop(ctx))
	must(t, <-d.served)
	must(t, d.node.Stop(ctx))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
