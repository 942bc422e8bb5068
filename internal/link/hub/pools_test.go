package hub_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	nodemetrics "github.com/katbox/katbox/internal/node/metrics"

	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/uplink"
	"github.com/katbox/katbox/internal/testing/fakepools"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

const uuid = "0f8a4a52-1111-4222-8333-444444444444"

// told is what a controller was told, in its order.
type told struct {
	mu   sync.Mutex
	on   local.Pools
	what []string
}

func (c *told) NodePools(node, version string, on local.Pools, all []local.Pool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := c.on == on
	c.on = on
	line := fmt.Sprintf("%s %s same=%v", node, version, same)
	for _, p := range all {
		line += " " + p.UUID + " " + p.Failed
	}
	c.what = append(c.what, line)
}

func (c *told) NodeAway(node string, on local.Pools) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.what = append(c.what, fmt.Sprintf("%s away same=%v", node, c.on == on))
}

func (c *told) has() (on local.Pools, what []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.on, slices.Clone(c.what)
}

// ends are both ends of connections as they are: a controller's hub, and a node's uplink.
type ends struct {
	t        *testing.T
	ca       *uplinktest.Authority
	dir      string
	port     string
	told     *told
	node     *fakepools.Node
	registry *hub.Registry
	server   *http.Server
	served   chan error
	uplink   *uplink.Uplink
}

func newEnds(t *testing.T) *ends {
	e := &ends{t: t, ca: uplinktest.NewAuthority(t), dir: t.TempDir(), told: &told{}, node: &fakepools.Node{}}
	e.node.Add(fakepools.NewDisk(local.Pool{UUID: uuid, Class: "fast", HardLimit: true}))
	e.must(os.WriteFile(filepath.Join(e.dir, "ca.crt"), e.ca.PEM, 0o600), os.WriteFile(filepath.Join(e.dir, "token"), []byte("token"), 0o600))
	e.listen("127.0.0.1:0")
	e.dial("v1")
	t.Cleanup(func() {
		_ = e.uplink.Stop(context.Background())
		e.close()
	})
	return e
}

func (e *ends) must(errs ...error) {
	e.t.Helper()
	if err := errors.Join(errs...); err != nil {
		e.t.Fatal(err)
	}
}

// listen starts the controller's end.
func (e *ends) listen(address string) {
	e.t.Helper()
	var err error
	e.registry, err = hub.New(hub.Config{
		Reviewer: cluster{}, Expected: cluster{}, Pools: e.told, Namespace: "katbox", ServiceAccount: "katbox",
	})
	e.must(err)
	l, err := net.Listen("tcp", address)
	e.must(err)
	_, e.port, _ = net.SplitHostPort(l.Addr().String())
	e.server, e.served = e.registry.Server(&tls.Config{Certificates: []tls.Certificate{e.ca.Leaf(e.t, "localhost")}}), make(chan error, 1)
	go func() { e.served <- e.server.ServeTLS(l, "", "") }()
}

// close ends it.
func (e *ends) close() {
	e.registry.Close()
	e.server.Close()
	if err := <-e.served; !errors.Is(err, http.ErrServerClosed) {
		e.t.Error(err)
	}
}

// dial starts the node's end.
func (e *ends) dial(version string) {
	e.t.Helper()
	var err error
	e.uplink, err = uplink.Start(uplink.Config{
		Controller: "localhost:" + e.port, CAFile: filepath.Join(e.dir, "ca.crt"), TokenFile: filepath.Join(e.dir, "token"), Node: "n1",
		Version: version, Pools: e.node, Metrics: nodemetrics.New("v1", ""),
	})
	e.must(err)
}

// until waits for what the controller was told last, and returns what asks the node then.
func (e *ends) until(want ...string) local.Pools {
	e.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		on, what := e.told.has()
		if slices.Equal(what, want) {
			return on
		}
		if len(what) > len(want) || time.Now().After(deadline) {
			e.t.Fatalf("the controller was told %q, want %q; the node says %+v", what, want, e.uplink.States())
		}
	}
}

// TestPoolsOfANode: from the node's disk to the controller and back, over a connection as it is, through restarts of
// either end.
func TestPoolsOfANode(t *testing.T) {
	e := newEnds(t)
	want := []string{"n1 v1 same=false " + uuid + " "}
	on := e.until(want...)
	ctx := t.Context()
	made, err := on.CreateVolume(ctx, uuid, local.NewVolume{Name: "pvc-1", Size: 1 << 20, FSType: "xfs"})
	if err != nil || !made.Ready || made.Pool != uuid {
		t.Errorf("%+v, %v", made, err)
	}
	if all, err := on.Volumes(ctx, uuid, "", 10); err != nil || !slices.Equal(all, []local.Volume{made}) {
		t.Errorf("%+v, %v", all, err)
	}

	e.node.Change(uuid, func(p *local.Pool) { p.Failed = "the disk is gone" })
	want = append(want, "n1 v1 same=true "+uuid+" the disk is gone")
	e.until(want...)

	// The node works on a change when the daemon ends: it may have been made.
	begun := make(chan struct{})
	var once sync.Once
	e.node.Hold(func(ctx context.Context, c fakepools.Call) {
		if c.Method == "GrowVolume" {
			once.Do(func() { close(begun) })
			<-ctx.Done()
		}
	})
	asked := make(chan error, 1)
	go func() {
		_, err := on.GrowVolume(ctx, uuid, "pvc-1", 2<<20)
		asked <- err
	}()
	<-begun
	stopping, cancel := context.WithCancel(ctx)
	cancel()
	_ = e.uplink.Stop(stopping)
	if err := <-asked; !errors.Is(err, volume.ErrUncertain) {
		t.Errorf("a change while the daemon ends: %v", err)
	}
	want = append(want, "n1 away same=true")
	e.until(want...)
	if _, err := on.Pools(ctx); !errors.Is(err, volume.ErrUnavailable) {
		t.Errorf("asked a node that is away: %v", err)
	}
	if err := on.DeleteVolume(ctx, uuid, "pvc-1"); !errors.Is(err, volume.ErrUnavailable) || errors.Is(err, volume.ErrUncertain) {
		t.Errorf("a change on a node that is away: %v, want that nothing was sent", err)
	}

	e.node.Hold(nil)
	e.node.Change(uuid, func(p *local.Pool) { p.Failed = "" })
	e.dial("v2")
	want = append(want, "n1 v2 same=false "+uuid+" ")
	on = e.until(want...)

	// The controller's end is restarted: it tells nobody that nodes are away, and learns of them anew.
	e.close()
	e.listen("localhost:" + e.port)
	want = append(want, "n1 v2 same=false "+uuid+" ")
	now := e.until(want...)
	if now == on {
		t.Error("what asks the node is that of the run before")
	}
	if _, err := now.Volume(ctx, uuid, "pvc-1"); err != nil {
		t.Error(err)
	}
}
