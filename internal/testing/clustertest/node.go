package clustertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/handlers"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/scratch"
)

// Node is a node with a daemon.
type Node struct {
	c      *Cluster
	name   string
	client *api.Client
	dir    *scratch.Dir

	mu   sync.Mutex
	all  map[volume.ID]volume.Description
	gone []volume.Tombstone
}

// Node adds a node to the cluster.
func (c *Cluster) Node(name string) *Node {
	c.t.Helper()
	dir, err := scratch.Open(filepath.Join(c.t.TempDir(), "work"))
	if err != nil {
		c.t.Fatal(err)
	}
	n := &Node{c: c, name: name, dir: dir, all: map[volume.ID]volume.Description{}}
	handler, err := handlers.NewHandler(handlers.Config{
		Volumes: volumes{n}, Node: name, Gateway: true, Space: func() (volume.Space, error) { return volume.Space{}, nil },
		LowPriority: func() func() { return func() {} }, Log: logr.Discard(), Metrics: metrics.New("v1", ""),
		Report: func(context.Context, io.Writer) error { return nil },
	})
	if err != nil {
		c.t.Fatal(err)
	}
	daemon := httptest.NewServer(handler)
	n.client = api.NewClient("node "+name, &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", daemon.Listener.Addr().String())
		},
	})
	c.t.Cleanup(func() {
		n.client.Close()
		daemon.CloseClientConnections()
		daemon.Close()
		if err := dir.Close(); err != nil {
			c.t.Error(err)
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name] = n
	return n
}

// Put makes a retained volume of a pod in a namespace, and returns its name and its directory. Without
// change it is that of the Job "job" in which the pod is called "pod", it was retained number minutes ago
// and expires in some 50 hours.
func (n *Node) Put(number int, namespace, job, pod string, change ...func(*volume.Description)) (name, path string) {
	n.c.t.Helper()
	now := time.Now()
	d := volume.Description{Deadline: now.Add(50*time.Hour + 30*time.Minute), Record: volume.Record{
		ID: id(number), Pod: volume.PodUID(fmt.Sprintf("pod-%s-%d", n.name, number)),
		Namespace: namespace, PodName: pod, VolumeName: "scratch", Phase: volume.Retained,
		Published: now.Add(-10 * time.Hour), Unpublished: now.Add(-time.Duration(number) * time.Minute),
		Owner: volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "uid-" + namespace, Kind: "Job", Name: job, Job: job},
	}}
	for _, f := range change {
		f(&d)
	}
	path = n.dir.Path(placeOf(d))
	if err := os.MkdirAll(path, 0o755); err != nil {
		n.c.t.Fatal(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all[d.Record.ID] = d
	return Name(cmp.Or(d.Record.PodName, d.Claim), n.name, number), path
}

// PutClaim is Put for the volume of a claim that was deleted.
func (n *Node) PutClaim(number int, namespace, claim string) (name, path string) {
	n.c.t.Helper()
	return n.Put(number, namespace, "", "", func(d *volume.Description) {
		d.Claim, d.Size = claim, volume.Size{Bytes: 1 << 30}
		d.Record.Pod, d.Record.VolumeName = "", ""
		d.Record.Owner = volume.Owner{
			Verdict: volume.Confirmed, NamespaceUID: "uid-" + namespace, Kind: "PersistentVolumeClaim", Name: claim, UID: "uid-" + claim,
		}
	})
}

// placeOf is where a node has a volume. A claim's volume has no pod.
func placeOf(d volume.Description) volume.Place {
	place := d.Record.Place()
	if place.Pod == "" {
		place.Pod = "pool"
	}
	return place
}

// Volumes returns how many volumes the node has.
func (n *Node) Volumes() int { n.mu.Lock(); defer n.mu.Unlock(); return len(n.all) }

// fleetNode is a node as the fleet asks it.
type fleetNode struct{ n *Node }

// Node returns the node's name.
func (f fleetNode) Node() string { return f.n.name }

// patiently gives a node as much time for an answer as a busy machine needs: whether it gives one within the gateway's
// two seconds is not up to the machine's load.
func patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
}

// List asks the node.
func (f fleetNode) List(ctx context.Context, by fleet.Reader, q api.Query) (api.VolumeList, error) {
	ctx, cancel := patiently(ctx)
	defer cancel()
	return f.n.client.OnBehalf(by.User, by.AuditID).List(ctx, q)
}

// volumes are a node's volumes as its daemon has them.
type volumes struct{ n *Node }

func (v volumes) List(_ context.Context, s volume.Selection) (volume.Page, error) {
	v.n.mu.Lock()
	defer v.n.mu.Unlock()
	var page volume.Page
	for _, d := range v.n.all {
		if s.SelectsDescribed(d) {
			page.Volumes = append(page.Volumes, d)
		}
	}
	slices.SortFunc(page.Volumes, func(a, b volume.Description) int { return b.Record.Key().Compare(a.Record.Key()) })
	if len(page.Volumes) > s.Limit {
		page.Volumes = page.Volumes[:s.Limit]
		page.Next = page.Volumes[s.Limit-1].Record.Key()
	}
	return page, nil
}

func (v volumes) Describe(_ context.Context, id volume.ID) (volume.Description, error) {
	v.n.mu.Lock()
	defer v.n.mu.Unlock()
	d, ok := v.n.all[id]
	if !ok {
		return d, fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
	}
	return d, nil
}

func (v volumes) Awake(context.Context) ([]volume.Description, error) { return nil, nil }

func (v volumes) Read(ctx context.Context, id volume.ID) (*files.Reading, error) {
	d, err := v.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	tree, err := v.n.dir.Tree(placeOf(d))
	if err != nil {
		return nil, err
	}
	lost, lose := context.WithCancelCause(context.Background())
	return &files.Reading{Volume: d, Tree: tree, Lost: lost, Close: sync.OnceFunc(func() { lose(errors.New("closed")); tree.Close() })}, nil
}

func (v volumes) Usage(context.Context, volume.Record, func(context.Context) error) (volume.Size, error) {
	return volume.Size{}, nil
}

// Name returns the name that Put gives the volume of a pod on a node.
func Name(pod, node string, number int) string {
	return resource.Name(api.Volume{Pod: pod, Node: node, ID: string(id(number))})
}

func id(number int) volume.ID { return volume.ID(fmt.Sprintf("csi-%064x", number)) }

// Measure says what a volume takes on the disk; it was not known before.
func (n *Node) Measure(number int, bytes int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.all[id(number)]
	d.Size = volume.Size{Bytes: bytes, Inodes: 1}
	n.all[id(number)] = d
}

// Forget lets a volume expire.
func (n *Node) Forget(number int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.all, id(number))
}
