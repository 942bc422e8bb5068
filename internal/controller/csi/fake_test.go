package csi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// fakePools answers what it is told to, and remembers what it was asked.
type fakePools struct {
	mu       sync.Mutex
	err      error
	asked    []any
	volumes  []pools.Volume
	snaps    []pools.Snapshot
	more     bool
	attached pools.Attachment
	capacity pools.Capacity
	// protocol of volumes that grow.
	protocol pools.Protocol
}

func (f *fakePools) ask(what any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, what)
	return f.err
}

// only returns the one thing that was asked.
func (f *fakePools) only(t *testing.T) any {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) != 1 {
		t.Fatalf("asked %d times: %+v, want once", len(f.asked), f.asked)
	}
	return f.asked[0]
}

type (
	deleted  struct{ id string }
	grown    struct{ id string }
	detached struct{ volume, node string }
	taken    struct{ name, volume string }
	unsnap   struct{ id string }
	listed   struct{ page pools.Page }
	selected struct {
		selection pools.SnapshotSelection
		page      pools.Page
	}
)

func (f *fakePools) CreateVolume(_ context.Context, v pools.NewVolume) (pools.Volume, error) {
	return pools.Volume{ID: v.Name, Size: v.Required, Source: v.Source}, f.ask(v)
}
func (f *fakePools) DeleteVolume(_ context.Context, id string) error { return f.ask(deleted{id}) }
func (f *fakePools) GrowVolume(_ context.Context, id string, required, _ int64) (pools.Volume, error) {
	return pools.Volume{ID: id, Size: required, Protocol: cmp.Or(f.protocol, pools.ISCSI)}, f.ask(grown{id})
}
func (f *fakePools) Attach(_ context.Context, a pools.NewAttachment) (pools.Attachment, error) {
	return f.attached, f.ask(a)
}
func (f *fakePools) Detach(_ context.Context, volume, node string) error {
	return f.ask(detached{volume, node})
}
func (f *fakePools) CreateSnapshot(_ context.Context, name, volume string) (pools.Snapshot, error) {
	return pools.Snapshot{ID: name, Volume: volume, Size: 1 << 30, Created: time.Unix(1, 0), Ready: true}, f.ask(taken{name, volume})
}
func (f *fakePools) DeleteSnapshot(_ context.Context, id string) error { return f.ask(unsnap{id}) }

// Volume is not remembered: it changes nothing.
func (f *fakePools) Volume(_ context.Context, id string) (pools.Volume, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return pools.Volume{}, f.err
	}
	for _, v := range f.volumes {
		if v.ID == id {
			return v, nil
		}
	}
	return pools.Volume{}, volume.ErrNotFound
}
func (f *fakePools) Volumes(_ context.Context, p pools.Page) ([]pools.Volume, bool, error) {
	return f.volumes, f.more, f.ask(listed{p})
}
func (f *fakePools) Snapshots(_ context.Context, s pools.SnapshotSelection, p pools.Page) ([]pools.Snapshot, bool, error) {
	return f.snaps, f.more, f.ask(selected{s, p})
}
func (f *fakePools) Capacity(_ context.Context, want pools.Wanted) (pools.Capacity, error) {
	return f.capacity, f.ask(want)
}
func (f *fakePools) Ready(context.Context) error { return f.err }

// uncounted counts nothing.
type uncounted struct{}

func (uncounted) CallBegan()                      {}
func (uncounted) CallEnded(string, time.Duration) {}

// serve serves a driver on a real socket and returns a connection to it.
func serve(t *testing.T, f *fakePools) *grpc.ClientConn {
	t.Helper()
	return serveKind(t, f, pools.KindArray)
}

// driverOf is a driver of a kind.
func driverOf(t testing.TB, f *fakePools, kind pools.Kind) *Driver {
	t.Helper()
	d, err := New(Config{Kind: kind, Name: string(kind) + ".csi.katbox.io", Version: "1", Pools: f, Log: logr.Discard(),
		Count: func(string) edge.Calls { return uncounted{} }})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func serveKind(t *testing.T, f *fakePools, kind pools.Kind) *grpc.ClientConn {
	t.Helper()
	d := driverOf(t, f, kind)
	path := filepath.Join(t.TempDir(), "csi.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(d)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), server.Stop(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	})
	return conn
}

type mode = csi.VolumeCapability_AccessMode_Mode

const (
	single     = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	singleRead = csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY
	multiRead  = csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	multi      = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
)

func blockOf(m mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: m}}
}

func mountOf(m mode, fsType string) *csi.VolumeCapability {
	return &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: m}}
}

func text(fields []any) string { return fmt.Sprint(fields) }
