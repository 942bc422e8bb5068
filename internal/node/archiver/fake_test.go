package archiver

import (
	"context"
	"fmt"
	"io"
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

	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

const (
	cluster      = "6d1f7f5e-0f6e-4f6e-9b0a-2f1c3d4e5f60"
	namespaceUID = "0f6e4f6e-9b0a-4d1f-8f5e-3d4e5f602f1c"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// node has volumes, a gateway that signs nothing, and a bucket that takes whatever comes. The archiver is the real one.
type node struct {
	t       *testing.T
	metrics *metrics.Metrics
	server  *httptest.Server
	config  Config
	pace    pace
	// lines are those of the log.
	lines []string

	mu sync.Mutex
	// volumes of one rank are in the order in which they are archived; those in noted were.
	volumes []*fakeVolume
	noted   map[volume.ID]time.Time
	objects map[string][]byte
	// asked and puts count what the gateway and the bucket were asked for, running what the bucket is asked for now.
	asked, puts, running int
	// answer changes what the gateway answers; it returns false for no answer at all.
	answer func(api.UploadAsk, *api.UploadAnswer) bool
	// fault fails an upload, if it returns true. It is called without mu.
	fault func(w http.ResponseWriter, r *http.Request) bool
	// begun is called when a volume is read.
	begun func(*fakeVolume)
}

type fakeVolume struct {
	description volume.Description
	dir         string
	lost        context.Context
	lose        context.CancelCauseFunc
}

func newNode(t *testing.T) *node {
	n := &node{t: t, metrics: metrics.New("test", ""), noted: map[volume.ID]time.Time{}, objects: map[string][]byte{}}
	n.server = httptest.NewTLSServer(n)
	t.Cleanup(n.server.Close)
	client, err := NewClient("")
	must(t, err)
	client.Transport.(*http.Transport).TLSClientConfig = n.server.Client().Transport.(*http.Transport).TLSClientConfig
	t.Cleanup(client.CloseIdleConnections)
	n.config = Config{
		Volumes: n, Gateway: n, Client: client, LowPriority: func() func() { return func() {} }, Metrics: n.metrics,
		Log: funcr.New(func(_, args string) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.lines = append(n.lines, args)
		}, funcr.Options{}),
		Describe: func(d volume.Description) api.Volume {
			return api.Volume{
				ID: string(d.Record.ID), Namespace: d.Record.Namespace, Pod: d.Record.PodName, PodUID: string(d.Record.Pod), Node: "n",
				Owner: &api.Owner{Verdict: "Confirmed", NamespaceUID: d.Record.Owner.NamespaceUID},
			}
		},
	}
	short := retry.Backoff{First: time.Millisecond, Longest: 5 * time.Millisecond}
	n.pace = pace{look: 20 * time.Millisecond, gather: time.Millisecond,
		ask: 10 * time.Second, again: time.Second, upload: 10 * time.Second, least: 1 << 40,
		tries: 2, try: short, volume: short, all: short, note: 10 * time.Second}
	return n
}

// add adds the volume of a pod that ended in that way, with these files.
func (n *node) add(number int, o volume.Outcome, content map[string][]byte) *fakeVolume {
	n.t.Helper()
	pod := volume.PodUID(fmt.Sprintf("01234567-89ab-cdef-0123-%012d", number))
	v := &fakeVolume{dir: n.t.TempDir()}
	v.description.Record = volume.Record{
		ID: volume.KubeletID(pod, "scratch"), Pod: pod, PodName: fmt.Sprint("pod-", number), Namespace: "ci", Phase: volume.Retained,
		Outcome: o, Owner: volume.Owner{Verdict: volume.Confirmed, NamespaceUID: namespaceUID, Seal: "seal"},
	}
	for name, b := range content {
		path := filepath.Join(v.dir, name)
		must(n.t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(n.t, os.WriteFile(path, b, 0o644))
	}
	v.lost, v.lose = context.WithCancelCause(context.Background())
	n.mu.Lock()
	defer n.mu.Unlock()
	n.volumes = append(n.volumes, v)
	return v
}

// start starts an archiver, which ends with the test.
func (n *node) start() *Archiver {
	n.t.Helper()
	a, err := start(n.config, n.pace)
	must(n.t, err)
	n.t.Cleanup(func() { n.stop(a) })
	return a
}

// stop ends an archiver at once.
func (n *node) stop(a *Archiver) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a.Stop(ctx)
}

// until waits until something is true.
func (n *node) until(what string, is func() bool) {
	n.t.Helper()
	limit := time.AfterFunc(time.Minute, func() { panic("not within a minute: " + what) })
	defer limit.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		n.mu.Lock()
		ok := is()
		n.mu.Unlock()
		if ok {
			return
		}
		<-look.C
	}
}

func (n *node) isNoted(v *fakeVolume) func() bool {
	return func() bool { return !n.noted[v.description.Record.ID].IsZero() }
}

func (n *node) ToArchive(_ context.Context, not, later map[volume.ID]struct{}) (w volume.Waiting, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w.Unanswered, w.Denied = 3, 4
	for _, v := range n.volumes {
		id := v.description.Record.ID
		if _, left := not[id]; left || !n.noted[id].IsZero() || v.lost.Err() != nil {
			continue
		}
		w.Volumes++
		rank := v.description.Record.ArchiveRank()
		if _, waits := later[id]; !waits && (w.Next == "" || rank < w.Rank) {
			w.Next, w.Rank = id, rank
		}
	}
	return w, nil
}

func (n *node) ReadToArchive(_ context.Context, id volume.ID) (*files.Reading, func(context.Context, time.Time) error, error) {
	n.mu.Lock()
	i := slices.IndexFunc(n.volumes, func(v *fakeVolume) bool { return v.description.Record.ID == id })
	v, begun := n.volumes[i], n.begun
	n.mu.Unlock()
	if begun != nil {
		begun(v)
	}
	if v.lost.Err() != nil {
		return nil, nil, context.Cause(v.lost)
	}
	tree, err := open(v.dir)
	if err != nil {
		return nil, nil, err
	}
	reading := &files.Reading{Volume: v.description, Tree: tree, Lost: v.lost, Close: func() { tree.Close() }}
	return reading, func(_ context.Context, until time.Time) error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if v.lost.Err() != nil {
			return context.Cause(v.lost)
		}
		n.noted[id] = until
		return nil
	}, nil
}

func open(dir string) (*files.Tree, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	opener, err := beneath.New(fd)
	if err != nil {
		return nil, err
	}
	return files.New(fd, opener), nil
}

// place is where the fake gateway lets a volume be.
func place(id, pod string) archived.Place {
	return archived.Place{Cluster: cluster, NamespaceUID: namespaceUID, Place: volume.Place{Pod: volume.PodUID(pod), ID: volume.ID(id)}}
}

var until = time.Date(2026, 12, 30, 16, 0, 0, 0, time.UTC)

// Ask answers as a gateway does.
func (n *node) Ask(ctx context.Context, word api.UploadAsk, _ time.Duration) (api.UploadAnswer, error) {
	n.mu.Lock()
	n.asked++
	change := n.answer
	key := place(word.ID, word.PodUID).Prefix() + "index"
	answer := api.UploadAnswer{ID: word.ID, Number: word.Number(), Header: map[string]string{"X-Signed": "yes"}}
	if p := word.Piece; p != nil {
		sum, err := archived.ParseSum(p.SHA256)
		if err != nil || word.Seal != "seal" || word.Owner.NamespaceUID != namespaceUID {
			n.t.Errorf("asked for %+v: %v", word, err)
		}
		key = place(word.ID, word.PodUID).PieceKey(p.Number, sum)
	} else {
		answer.Until = until
	}
	_, answer.There = n.objects[key]
	answer.URL = n.server.URL + "/" + key
	n.mu.Unlock()
	if change != nil && !change(word, &answer) {
		<-ctx.Done()
		return api.UploadAnswer{}, ctx.Err()
	}
	return answer, nil
}

// ServeHTTP is the bucket.
func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	n.puts++
	n.running++
	fault := n.fault
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.running--
	}()
	if fault != nil && fault(w, r) {
		return
	}
	object, err := io.ReadAll(r.Body)
	if err != nil {
		return // the archiver has given up
	}
	if r.Method != http.MethodPut || r.ContentLength != int64(len(object)) || r.Header.Get("X-Signed") != "yes" {
		n.t.Errorf("%s with %d bytes of %d", r.Method, len(object), r.ContentLength)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.objects[strings.TrimPrefix(r.URL.Path, "/")] = object
}

// keys are those of the objects of a volume: pieces in their order, and "index".
func (n *node) keys(v *fakeVolume) (keys []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	prefix := place(string(v.description.Record.ID), string(v.description.Record.Pod)).Prefix()
	for _, key := range slices.Sorted(maps.Keys(n.objects)) {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			keys = append(keys, name)
		}
	}
	return keys
}

// wantNotArchived: there is no index, and nothing is noted.
func (n *node) wantNotArchived(v *fakeVolume) {
	n.t.Helper()
	if keys := n.keys(v); slices.Contains(keys, "index") {
		n.t.Errorf("there is an index: %q", keys)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isNoted(v)() {
		n.t.Error("it is noted as archived")
	}
}

// failures is how many are counted for a reason.
func (n *node) failures(reason string) float64 {
	n.t.Helper()
	return metricstest.Of(n.t, n.metrics)[fmt.Sprintf("katbox_archive_failures_total{reason=%q}", reason)]
}

var errPublished = fmt.Errorf("%w: by a test", volume.ErrNotRetained)
