package handlers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/scratch"
)

const testPod volume.PodUID = "5f1c8a52-1f4e-4f0e-9d43-6a1b2c3d4e5f"

// node is a handler that serves on a Unix socket, over real directories and a fake owner.
type node struct {
	t       *testing.T
	h       *handler
	metrics *metrics.Metrics
	volumes *fakeVolumes
	client  *api.Client
	// wire sends requests as they are.
	wire   *http.Transport
	socket string
}

// streamsThatMayStandStill: a test that opens as many streams as there may be takes its time on a busy machine, and none of
// them is cut meanwhile because it is not read.
func streamsThatMayStandStill(h *handler) { h.stall = 24 * time.Hour }

func newNode(t *testing.T, adjust ...func(*handler)) *node {
	t.Helper()
	dir, err := scratch.Open(filepath.Join(t.TempDir(), "work"))
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, metrics: metrics.New("v1", ""), volumes: &fakeVolumes{dir: dir, all: map[volume.ID]*fakeVolume{}}}
	n.h = newHandler(Config{
		Volumes: n.volumes, Node: "node-1", Space: func() (volume.Space, error) {
			return volume.Space{Total: volume.Size{Bytes: 1000, Inodes: 100}, Free: volume.Size{Bytes: 400, Inodes: 90}}, nil
		},
		LowPriority: func() func() { return func() {} }, Log: logr.Discard(), Metrics: n.metrics,
		Report: func(_ context.Context, w io.Writer) error { _, err := io.WriteString(w, "all is well\n"); return err },
	})
	for _, change := range adjust {
		change(n.h)
	}
	// The path of a socket is short.
	short, err := os.MkdirTemp("", "api")
	if err != nil {
		t.Fatal(err)
	}
	n.socket = filepath.Join(short, "admin.sock")
	l, err := net.Listen("unix", n.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(n.h, logr.Discard())
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	n.client = api.Dial(n.socket)
	n.wire = &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", n.socket)
	}}
	t.Cleanup(func() {
		n.client.Close()
		n.wire.CloseIdleConnections()
		if err := errors.Join(server.Close(), os.RemoveAll(short)); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		n.volumes.wantAllClosed(t)
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// add makes a retained volume, and returns its ID and data directory.
func (n *node) add(number int) (id, path string) {
	n.t.Helper()
	id = fmt.Sprintf("csi-%064x", number)
	r := volume.Record{
		ID: volume.ID(id), Pod: testPod, Namespace: "etl", PodName: "job", VolumeName: "scratch", Phase: volume.Retained,
		Published: time.Unix(1000, 0), Unpublished: time.Unix(int64(2000+number), 7),
	}
	lost, lose := context.WithCancelCause(context.Background())
	n.volumes.mu.Lock()
	n.volumes.all[r.ID] = &fakeVolume{Description: volume.Description{Record: r, Deadline: time.Unix(9000, 0)}, lost: lost, lose: lose}
	n.volumes.mu.Unlock()
	path = n.volumes.dir.Path(r.Place())
	if err := os.MkdirAll(path, 0o755); err != nil {
		n.t.Fatal(err)
	}
	return id, path
}

// fakeVolumes are the volumes of a node in a map. Their files are real.
type fakeVolumes struct {
	dir  *scratch.Dir
	pace files.Pace
	// onList, onGone and onUsage replace what List, Gone and Usage do.
	onList  func(context.Context, volume.Selection) (volume.Page, error)
	onGone  func(volume.GoneSelection) (volume.GonePage, error)
	onUsage func(volume.Record) (volume.Size, error)

	mu  sync.Mutex
	all map[volume.ID]*fakeVolume
	// purgedBy and purgedWhy are those of the last purge.
	purgedBy, purgedWhy string
	open                int
}

type fakeVolume struct {
	volume.Description
	lost context.Context
	lose context.CancelCauseFunc
}

func (f *fakeVolumes) get(id volume.ID) (*fakeVolume, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.all[id]
	if !ok {
		return nil, fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
	}
	return v, nil
}

func (f *fakeVolumes) lose(id string, why error) {
	v, err := f.get(volume.ID(id))
	if err != nil {
		panic(err)
	}
	v.lose(why)
}

func (f *fakeVolumes) List(ctx context.Context, s volume.Selection) (volume.Page, error) {
	if f.onList != nil {
		return f.onList(ctx, s)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var page volume.Page
	for _, v := range f.all {
		if (s.Before.IsZero() || v.Record.Key().Compare(s.Before) < 0) && (s.Namespace == "" || s.Namespace == v.Record.Namespace) {
			page.Volumes = append(page.Volumes, v.Description)
		}
	}
	slices.SortFunc(page.Volumes, func(a, b volume.Description) int { return b.Record.Key().Compare(a.Record.Key()) })
	if len(page.Volumes) > s.Limit {
		page.Volumes = page.Volumes[:s.Limit]
		page.Next = page.Volumes[s.Limit-1].Record.Key()
	}
	return page, ctx.Err()
}

func (f *fakeVolumes) Describe(_ context.Context, id volume.ID) (volume.Description, error) {
	v, err := f.get(id)
	if err != nil {
		return volume.Description{}, err
	}
	return v.Description, nil
}

func (f *fakeVolumes) Awake(context.Context) ([]volume.Description, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var awake []volume.Description
	for _, v := range f.all {
		if v.Record.Phase != volume.Retained {
			awake = append(awake, v.Description)
		}
	}
	return awake, nil
}

func (f *fakeVolumes) Read(_ context.Context, id volume.ID) (*files.Reading, error) {
	v, err := f.get(id)
	if err != nil {
		return nil, err
	}
	if v.Record.Phase != volume.Retained {
		return nil, fmt.Errorf("volume %s: %w", id, volume.ErrNotRetained)
	}
	tree, err := f.dir.Tree(v.Record.Place())
	if err != nil {
		return nil, err
	}
	f.count(1)
	return &files.Reading{Volume: v.Description, Tree: tree, Lost: v.lost, Pace: f.pace, Close: sync.OnceFunc(func() {
		tree.Close()
		f.count(-1)
	})}, nil
}

func (f *fakeVolumes) count(more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open += more
}

func (f *fakeVolumes) readings() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

func (f *fakeVolumes) Usage(ctx context.Context, r volume.Record, pace func(context.Context) error) (volume.Size, error) {
	if f.onUsage != nil {
		return f.onUsage(r)
	}
	bytes, inodes, err := f.dir.Usage(ctx, r.Place(), func(ctx context.Context, _ int) error { return pace(ctx) })
	return volume.Size{Bytes: bytes, Inodes: inodes}, err
}

// wantAllClosed waits until no volume is read any more.
func (f *fakeVolumes) wantAllClosed(t *testing.T) {
	t.Helper()
	eventually(t, "all readings closed", func() bool { return f.readings() == 0 })
}

// eventually waits for something that has to come. It fails after a minute.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// opens counts the handles of this process on a file.
func opens(t *testing.T, path string) (count int) {
	t.Helper()
	handles, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, handle := range handles {
		if target, err := os.Readlink(handle); err == nil && strings.TrimSuffix(target, " (deleted)") == path {
			count++
		}
	}
	return count
}

// raw sends a request as it is, and returns the answer with its whole body.
func (n *node) raw(method, path string, query url.Values, header http.Header) (*http.Response, string) {
	n.t.Helper()
	request, err := http.NewRequestWithContext(n.t.Context(), method, "http://katbox"+path+"?"+query.Encode(), nil)
	if err != nil {
		n.t.Fatal(err)
	}
	maps.Copy(request.Header, header)
	answer, err := n.wire.RoundTrip(request)
	if err != nil {
		n.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return answer, string(body)
}

// read returns the whole of a stream.
func (n *node) read(id string, q api.BytesQuery) (string, error) {
	n.t.Helper()
	s, err := n.client.Bytes(n.t.Context(), id, q)
	if err != nil {
		return "", err
	}
	defer s.Close()
	content, err := io.ReadAll(s)
	return string(content), err
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o640))
}

func wantCode(t *testing.T, what string, err error, code int, causes ...api.CauseReason) {
	t.Helper()
	e := (*api.Error)(nil)
	if !errors.As(err, &e) || e.Code != code || len(causes) > 0 && !slices.Contains(causes, e.Cause()) {
		t.Errorf("%s: %v (%+v), want code %d %v", what, err, e, code, causes)
	}
}
