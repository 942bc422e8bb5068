package page

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/handlers"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/scratch"
	"github.com/katbox/katbox/internal/node/uplink"
)

// node is a node that is connected to the gateway, with the daemon's handlers. Its volumes are in a
// list in memory, their files on the disk.
type node struct {
	t    testing.TB
	name string
	dir  *scratch.Dir

	mu sync.Mutex
	// volumes are the retained ones, the newest first.
	volumes []volume.Description
	// gone are those that were deleted, the last one last.
	gone []volume.Tombstone
}

// newNode connects a node, with what fill puts into it first.
func newNode(t testing.TB, name string, g *gateway, fill func(*node)) *node {
	t.Helper()
	dir, err := scratch.Open(filepath.Join(t.TempDir(), "work"))
	must(t, err)
	n := &node{t: t, name: name, dir: dir}
	fill(n)
	counted := metrics.New("v1", "")
	handler, err := handlers.NewHandler(handlers.Config{
		Volumes: n, Node: name, Gateway: true, Space: func() (volume.Space, error) { return volume.Space{}, nil },
		LowPriority: func() func() { return func() {} }, Log: logr.Discard(), Metrics: counted,
		Report: func(context.Context, io.Writer) error { return nil },
	})
	must(t, err)
	files := t.TempDir()
	ca, token := filepath.Join(files, "ca.crt"), filepath.Join(files, "token")
	must(t, os.WriteFile(ca, g.ca.pem(), 0o600), os.WriteFile(token, []byte(name), 0o600))
	_, port, err := net.SplitHostPort(g.nodesAddress)
	must(t, err)
	u, err := uplink.Start(uplink.Config{
		Gateway: "localhost:" + port, CAFile: ca, TokenFile: token, Node: name, Version: "v1", Volumes: n, Metrics: counted, Handler: handler,
	})
	must(t, err)
	t.Cleanup(func() {
		must(t, u.Stop(context.Background()), dir.Close())
	})
	eventually(t, "node "+name+" is connected, and has said what it holds", func() bool {
		_, ok := g.registry.Get(name)
		if !ok || len(n.volumes) == 0 {
			return ok
		}
		known := g.registry.Look(context.Background(), n.volumes[0].Record.Namespace).Held
		return slices.ContainsFunc(known, func(h hub.Held) bool { return h.Conn.Node() == name })
	})
	return n
}

// put makes a retained volume, and returns its name and its directory. The node must not be connected
// yet.
func (n *node) put(adjust func(*volume.Description)) (name, path string) {
	n.t.Helper()
	number := len(n.volumes)
	d := volume.Description{
		Record: volume.Record{
			ID: volume.ID(fmt.Sprintf("csi-%064x", number)), Pod: volume.PodUID(fmt.Sprintf("5f1c8a52-%s-%d", n.name, number)),
			Namespace: "ci", PodName: fmt.Sprintf("job-%d-x7k2p", number), VolumeName: "scratch", Phase: volume.Retained,
			Published: time.Now().Add(-5 * time.Hour), Unpublished: time.Now().Add(-4 * time.Hour), Lifespan: 12 * time.Hour,
		},
		Size: volume.Size{Bytes: 1 << 20, Inodes: 12}, Deadline: time.Now().Add(8 * time.Hour),
	}
	adjust(&d)
	d.Record.Owner.Verdict, d.Record.Owner.NamespaceUID = volume.Confirmed, namespaceUID(d.Record.Namespace)
	at, _ := slices.BinarySearchFunc(n.volumes, d, newestFirst)
	n.volumes = slices.Insert(n.volumes, at, d)
	path = n.dir.Path(d.Record.Place())
	must(n.t, os.MkdirAll(path, 0o755))
	return resource.Name(api.Volume{Pod: d.Record.PodName, Node: n.name, ID: string(d.Record.ID)}), path
}

func newestFirst(a, b volume.Description) int { return b.Record.Key().Compare(a.Record.Key()) }

// List returns a page.
func (n *node) List(_ context.Context, s volume.Selection) (page volume.Page, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	from := 0
	if !s.Before.IsZero() {
		from, _ = slices.BinarySearchFunc(n.volumes, s.Before, func(d volume.Description, k volume.Key) int {
			return cmp.Or(k.Compare(d.Record.Key()), -1) // behind it
		})
	}
	for _, d := range n.volumes[from:] {
		if !s.Selects(d.Record) {
			continue
		}
		if page.Volumes = append(page.Volumes, d); len(page.Volumes) == s.Limit {
			page.Next = d.Record.Key()
			break
		}
	}
	return page, nil
}

func (n *node) find(id volume.ID) (int, error) {
	at := slices.IndexFunc(n.volumes, func(d volume.Description) bool { return d.Record.ID == id })
	if at < 0 {
		return 0, fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
	}
	return at, nil
}

// Describe describes a volume.
func (n *node) Describe(_ context.Context, id volume.ID) (d volume.Description, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := n.find(id)
	if err == nil {
		d = n.volumes[at]
	}
	return d, err
}

// Awake returns nothing: all volumes are retained.
func (n *node) Awake(context.Context) ([]volume.Description, error) { return nil, nil }

// Read begins to read a volume.
func (n *node) Read(ctx context.Context, id volume.ID) (*files.Reading, error) {
	d, err := n.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	tree, err := n.dir.Tree(d.Record.Place())
	if err != nil {
		return nil, err
	}
	return &files.Reading{Volume: d, Tree: tree, Lost: context.Background(), Close: sync.OnceFunc(func() { tree.Close() })}, nil
}

// hold changes what a person has decided about a volume.
func (n *node) hold(id volume.ID, kind volume.HoldKind, until time.Time, by, why string) (d volume.Description, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := n.find(id)
	if err != nil {
		return d, err
	}
	r := &n.volumes[at].Record
	r.Hold = volume.Hold{}
	if kind != volume.NoHold {
		r.Hold = volume.Hold{Kind: kind, For: until.Sub(r.Unpublished), By: by, Why: why}
	}
	n.volumes[at].Deadline = r.Until()
	return n.volumes[at], r.Hold.Check()
}

// Pin keeps a volume until then.
func (n *node) Pin(_ context.Context, id volume.ID, until time.Time, by, why string) (volume.Description, error) {
	return n.hold(id, volume.Pinned, until, by, why)
}

// Unpin takes that back, or a release.
func (n *node) Unpin(_ context.Context, id volume.ID, _ string) (volume.Description, error) {
	return n.hold(id, volume.NoHold, time.Time{}, "", "")
}

// Release lets a volume go in ten minutes.
func (n *node) Release(_ context.Context, id volume.ID, by, why string) (volume.Description, error) {
	return n.hold(id, volume.Released, time.Now().Add(10*time.Minute), by, why)
}

// Gone returns a page of the volumes that are gone.
func (n *node) Gone(_ context.Context, s volume.GoneSelection) (page volume.GonePage, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range slices.Backward(n.gone) {
		if s.Below != 0 && g.Number >= s.Below || s.ID != "" && g.Record.ID != s.ID || !s.Selects(g.Record) {
			continue
		}
		if page.Tombstones = append(page.Tombstones, g); len(page.Tombstones) == s.Limit {
			page.Next = g.Number
			break
		}
	}
	return page, nil
}

// Purge deletes a volume.
func (n *node) Purge(_ context.Context, id volume.ID, by, why string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := n.find(id)
	if err == nil {
		n.bury(n.volumes[at], volume.Tombstone{Gone: time.Now(), Reason: volume.Purged, By: by, Why: why})
		n.volumes = slices.Delete(n.volumes, at, at+1)
	}
	return err
}

// bury remembers what became of a volume. The node must not be connected yet, or be locked.
func (n *node) bury(d volume.Description, g volume.Tombstone) {
	g.Number, g.Record, g.Size = uint64(len(n.gone)+1), d.Record, d.Size
	g.Kept = g.Gone.Sub(d.Record.Unpublished)
	n.gone = append(n.gone, g)
}

// Usage measures nothing: no volume is published.
func (n *node) Usage(context.Context, volume.Record, func(context.Context) error) (volume.Size, error) {
	return volume.Size{}, nil
}

// Holdings counts by namespace.
func (n *node) Holdings(context.Context) (holdings []volume.Holding, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.volumes {
		at := slices.IndexFunc(holdings, func(h volume.Holding) bool { return h.Namespace == d.Record.Namespace })
		if at < 0 {
			at = len(holdings)
			holdings = append(holdings, volume.Holding{
				Namespace: d.Record.Namespace, NamespaceUID: d.Record.Owner.NamespaceUID, Verdict: volume.Confirmed, Newest: d.Record.Unpublished,
			})
		}
		holdings[at].Volumes++
		holdings[at].Oldest = d.Record.Unpublished
	}
	return holdings, nil
}

// Own is for volumes that are published.
func (n *node) Own(context.Context, volume.ID, volume.PodUID, volume.Owner) error {
	return volume.ErrNotFound
}
