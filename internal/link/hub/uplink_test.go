package hub_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	nodemetrics "github.com/katbox/katbox/internal/node/metrics"

	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/uplink"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// cluster is what the API server knows: one node, n1, with a daemon.
type cluster struct{}

var daemonPod = hub.Pod{Name: "katbox-1", UID: "uid-1", Node: "n1"}

func (cluster) Review(_ context.Context, token string) (hub.Identity, error) {
	if token != "token" {
		return hub.Identity{}, hub.ErrToken
	}
	return hub.Identity{Namespace: "katbox", ServiceAccount: "katbox", Pod: daemonPod.Name, PodUID: daemonPod.UID, Node: daemonPod.Node}, nil
}
func (cluster) Pod(uid string) (hub.Pod, bool)                { return daemonPod, uid == daemonPod.UID }
func (cluster) Read(context.Context, string) (hub.Pod, error) { return daemonPod, nil }
func (cluster) Expects(node string) bool                      { return node == daemonPod.Node }
func (cluster) Nodes() (map[string]time.Time, bool) {
	return map[string]time.Time{daemonPod.Node: time.Now()}, true
}
func (cluster) Ask(_ context.Context, _ string, asks []api.OwnerAsk) (answers []api.OwnerAnswer) {
	for _, a := range asks {
		owner := api.Owner{Verdict: "Confirmed", NamespaceUID: "ns-" + a.Namespace}
		answers = append(answers, api.OwnerAnswer{ID: a.ID, PodUID: a.PodUID, Owner: owner})
	}
	return answers
}

// nodeVolumes are those of a node: one that is published, and two that are retained.
type nodeVolumes struct {
	mu    sync.Mutex
	owner volume.Owner
}

func (v *nodeVolumes) Awake(context.Context) ([]volume.Description, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return []volume.Description{{Record: volume.Record{
		ID: "csi-1", Pod: "uid-a", Namespace: "ci", PodName: "a", Phase: volume.Published, Owner: v.owner,
	}}}, nil
}

func (v *nodeVolumes) Holdings(context.Context) ([]volume.Holding, error) {
	return []volume.Holding{{Namespace: "ci", Volumes: 2}}, nil
}

func (v *nodeVolumes) Own(_ context.Context, id volume.ID, pod volume.PodUID, owner volume.Owner) error {
	if id != "csi-1" || pod != "uid-a" {
		return volume.ErrNotFound
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.owner = owner
	return nil
}

func (v *nodeVolumes) has() volume.Owner {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.owner
}

// TestDaemonsUplink: both ends of a connection as they are.
func TestDaemonsUplink(t *testing.T) {
	fail := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	ca := uplinktest.NewAuthority(t)
	r, err := hub.New(hub.Config{
		Reviewer: cluster{}, Expected: cluster{}, Owners: cluster{}, Namespace: "katbox", ServiceAccount: "katbox",
		Hash: func(string) uint32 { return 1 },
	})
	fail(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fail(err)
	server := r.Server(&tls.Config{Certificates: []tls.Certificate{ca.Leaf(t, "localhost")}})
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(l, "", "") }()
	defer func() {
		r.Close()
		server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()

	dir, volumes := t.TempDir(), &nodeVolumes{}
	caFile, token := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	fail(os.WriteFile(caFile, ca.PEM, 0o600), os.WriteFile(token, []byte("token"), 0o600))
	_, port, err := net.SplitHostPort(l.Addr().String())
	fail(err)
	u, err := uplink.Start(uplink.Config{
		Gateway: "localhost:" + port, CAFile: caFile, TokenFile: token, Node: "n1", Version: "v1",
		Volumes: volumes, Metrics: nodemetrics.New("v1", ""),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, `{"id":"csi-2"}`) }),
	})
	fail(err)
	eventually := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("still not: %s; the node says %+v", what, u.States())
			}
		}
	}
	eventually("the gateway knows what the node holds", func() bool { return len(r.With("ci")) == 1 })
	eventually("the node knows whose its volume is", func() bool {
		return volumes.has() == volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ns-ci"}
	})
	c, ok := r.Get("n1")
	if !ok {
		t.Fatal("the node is not connected")
	}
	if got, err := c.Client().Volume(t.Context(), "csi-2"); err != nil || got.ID != "csi-2" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.Client().Pin(t.Context(), "csi-2", time.Now(), "a reason"); err != nil || got.ID != "csi-2" {
		t.Errorf("pinned: %+v, %v", got, err)
	}
	if _, err := c.Client().Gone(t.Context(), api.GoneQuery{}); err != nil {
		t.Errorf("what is gone: %v", err)
	}
	fail(u.Stop(t.Context()))
	eventually("the node is missing", func() bool { return len(r.Missing()) == 1 })
}
