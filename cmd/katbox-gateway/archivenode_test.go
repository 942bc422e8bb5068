package main

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/archiver"
	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/uplink"
	"github.com/katbox/katbox/internal/testing/fakebucket"
)

// deadlyStore is a store that kills the gateway at a step of what concerns the namespace. Each request is two steps: at the first
// the store has not done what is asked, at the second it has. Neither is answered.
type deadlyStore struct {
	*fakebucket.Store
	URL string
	// kill ends the gateway.
	kill func()

	mu sync.Mutex
	// left are the steps until that; negative for never.
	left int
	// killed is closed when it has happened.
	killed chan struct{}
}

func newDeadlyStore(t *testing.T) *deadlyStore {
	d := &deadlyStore{Store: fakebucket.New(t), left: -1}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	d.URL = server.URL
	return d
}

// arm lets the gateway die at a step from now on.
func (d *deadlyStore) arm(step int) (killed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.killed = step, make(chan struct{})
	return d.killed
}

// disarm lets it live from now on. It returns whether it has been killed: its end may be seen before killed is closed.
func (d *deadlyStore) disarm() (killed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = -1
	select {
	case <-d.killed:
		return true
	default:
		return false
	}
}

// step ends the request with the gateway if that is to die now.
func (d *deadlyStore) step() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left >= 0 {
		d.left--
		if d.left < 0 {
			d.kill()
			close(d.killed)
			panic(http.ErrAbortHandler)
		}
	}
}

// ServeHTTP answers a request.
func (d *deadlyStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.URL.Path+r.URL.Query().Get("prefix"), ciUID) {
		d.Store.ServeHTTP(w, r)
		return
	}
	d.step()
	answer := httptest.NewRecorder()
	d.Store.ServeHTTP(answer, r)
	d.step()
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // who has asked may be gone
}

// age makes all objects older, as if that time had passed.
func (d *deadlyStore) age(by time.Duration) {
	d.Written(func() time.Time { return time.Now().Add(-by) })
	for _, key := range d.Keys("") {
		d.Put(key, d.Get(key))
	}
	d.Written(time.Now)
}

// evidenceNode is a node with the archiver and the uplink of a daemon. Its volumes are directories of the test.
type evidenceNode struct {
	p      *process
	asks   *uplink.Uploads
	copies *archiver.Archiver
	link   *uplink.Uplink
	// metrics are those of the archiver.
	metrics *metrics.Metrics

	mu      sync.Mutex
	volumes []volume.Description
	dirs    map[volume.ID]string
	// noted are the volumes that are archived, in that order.
	noted []volume.ID
}

func newEvidenceNode(p *process) *evidenceNode {
	n := &evidenceNode{p: p, asks: uplink.NewUploads(), dirs: map[volume.ID]string{}, metrics: metrics.New("test", "")}
	client, err := archiver.NewClient("")
	must(p, err)
	n.copies, err = archiver.Start(archiver.Config{
		Volumes: n, Gateway: n.asks, Client: client, Insecure: true, LowPriority: func() func() { return func() {} },
		Metrics: n.metrics, Describe: func(d volume.Description) api.Volume { return shownOf(d.Record) },
	})
	must(p, err)
	p.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		n.copies.Stop(over)
		n.leave()
	})
	return n
}

func shownOf(r volume.Record) api.Volume {
	return api.Volume{
		ID: string(r.ID), Volume: "scratch", Namespace: r.Namespace, Pod: r.PodName, PodUID: string(r.Pod), Node: nodeName, Outcome: "Failed",
		PublishedAt: &r.Published, RetainedAt: &r.Unpublished, Owner: &api.Owner{Verdict: "Confirmed", NamespaceUID: ciUID},
	}
}

// connect connects to the gateway anew: an uplink would wait for up to half a minute.
func (n *evidenceNode) connect() {
	n.leave()
	u, err := uplink.Start(uplink.Config{
		Gateway: n.p.nodes, CAFile: filepath.Join(n.p.dir, "ca.crt"), TokenFile: filepath.Join(n.p.dir, "token"), Node: nodeName, Version: "v1",
		Volumes: n, Uploads: n.asks, Archive: n.copies.Waiting, Metrics: metrics.New("test", ""), Handler: http.HandlerFunc(n.answer),
	})
	must(n.p, err)
	n.link = u
}

// answer answers a gateway that asks for retained volumes: there are none.
func (n *evidenceNode) answer(w http.ResponseWriter, r *http.Request) {
	answer := api.NewAnswer(w, r, patience)
	if r.URL.Path == api.VolumesPath {
		_ = answer.JSON(http.StatusOK, api.VolumeList{Items: []api.Volume{}}) // the gateway was killed
		return
	}
	e := api.NewError(api.NotFound, "there is no such volume")
	answer.Refuse(e.Code, e.RetryAfter, e.Status)
}

func (n *evidenceNode) leave() {
	if n.link != nil {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = n.link.Stop(over) // it is cut
	}
}

// retain retains the volume of a pod that has failed.
func (n *evidenceNode) retain(pod int, content []byte) volume.Record {
	n.p.Helper()
	return n.retainSince(pod, 0, volume.Failed, content)
}

// retainSince is retain of a pod that ended some time ago, in that way.
func (n *evidenceNode) retainSince(pod int, ago time.Duration, outcome volume.Outcome, content []byte) volume.Record {
	n.p.Helper()
	uid := volume.PodUID(podUID(pod))
	r := volume.Record{
		ID: volume.KubeletID(uid, "scratch"), Pod: uid, PodName: podName(pod), Namespace: "ci", Phase: volume.Retained, Outcome: outcome,
		Published: time.Now().Add(-ago - time.Minute).Round(0), Unpublished: time.Now().Add(-ago).Round(0),
		Owner: volume.Owner{Verdict: volume.Confirmed, NamespaceUID: ciUID},
	}
	dir := n.p.TempDir()
	must(n.p, os.WriteFile(filepath.Join(dir, "content"), content, 0o600))
	n.mu.Lock()
	n.volumes, n.dirs[r.ID] = append(n.volumes, volume.Description{Record: r}), dir
	n.mu.Unlock()
	n.copies.Wake()
	return r
}

func (n *evidenceNode) archived(id volume.ID) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.noted, id) {
		return errors.New("it is not")
	}
	return nil
}

// order returns the volumes that are archived, in that order.
func (n *evidenceNode) order() []volume.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.noted)
}

func (n *evidenceNode) ToArchive(_ context.Context, not, later map[volume.ID]struct{}) (w volume.Waiting, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var next *volume.Record
	for i := range n.volumes {
		r := &n.volumes[i].Record
		if _, out := not[r.ID]; out || slices.Contains(n.noted, r.ID) {
			continue
		}
		if w.Volumes++; w.Oldest.IsZero() || r.Unpublished.Before(w.Oldest) {
			w.Oldest = r.Unpublished
		}
		if _, waits := later[r.ID]; waits {
			continue
		}
		if rank := r.ArchiveRank(); next == nil || rank < w.Rank || rank == w.Rank && r.Unpublished.After(next.Unpublished) {
			next, w.Next, w.Rank = r, r.ID, rank
		}
	}
	return w, nil
}

func (n *evidenceNode) ReadToArchive(
	_ context.Context, id volume.ID,
) (*files.Reading, func(context.Context, time.Time) error, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.volumes, func(d volume.Description) bool { return d.Record.ID == id })
	fd, err := unix.Open(n.dirs[id], unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	opener, err := beneath.New(fd)
	if err != nil {
		return nil, nil, err
	}
	tree := files.New(fd, opener)
	reading := &files.Reading{Volume: n.volumes[i], Tree: tree, Lost: context.Background(), Close: func() { tree.Close() }}
	return reading, func(context.Context, time.Time) error {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.noted = append(n.noted, id)
		return nil
	}, nil
}

// Awake, Holdings and Own: the node shows none of its volumes, so what the gateway shows is in the archive.
func (n *evidenceNode) Awake(context.Context) ([]volume.Description, error) { return nil, nil }

func (n *evidenceNode) Holdings(context.Context) ([]volume.Holding, error) { return nil, nil }

func (n *evidenceNode) Own(context.Context, volume.ID, volume.PodUID, volume.Owner) error {
	return volume.ErrNotFound
}
