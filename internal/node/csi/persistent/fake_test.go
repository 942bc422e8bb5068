package persistent

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
)

const (
	stagingPath = "/var/lib/kubelet/plugins/kubernetes.io/csi/array.csi.katbox.io/0f1e/globalmount"
	targetPath  = "/var/lib/kubelet/pods/uid/volumes/kubernetes.io~csi/pvc-1/mount"
	devicePath  = "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/uid"
)

// fakeVolumes remembers what it is asked, and answers what its fields say.
type fakeVolumes struct {
	mu       sync.Mutex
	asked    []any
	err      error
	notReady error
	bytes    int64
	stats    volume.Stats
	panics   bool
}

type (
	unstaged    struct{ volume, path string }
	unpublished struct{ volume, target string }
	measured    struct{ volume, path string }
)

func (f *fakeVolumes) ask(what any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics {
		panic("broken for the test")
	}
	f.asked = append(f.asked, what)
	return f.err
}

func (f *fakeVolumes) all() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *fakeVolumes) Stage(_ context.Context, s pools.Staging) error { return f.ask(s) }

func (f *fakeVolumes) Unstage(_ context.Context, volume, path string) error {
	return f.ask(unstaged{volume, path})
}

func (f *fakeVolumes) Publish(_ context.Context, p pools.NodePublication) error { return f.ask(p) }

func (f *fakeVolumes) Unpublish(_ context.Context, volume, target string) error {
	return f.ask(unpublished{volume, target})
}

func (f *fakeVolumes) Expand(_ context.Context, e pools.NodeExpansion) (int64, error) {
	return f.bytes, f.ask(e)
}

func (f *fakeVolumes) Stats(_ context.Context, id, path string) (volume.Stats, error) {
	return f.stats, f.ask(measured{id, path})
}

func (f *fakeVolumes) Ready(context.Context) error { return f.notReady }

func testDriver(t testing.TB, volumes Volumes, log logr.Logger) *Driver {
	t.Helper()
	counted := metrics.New("", "")
	d, err := New(Config{
		Kind: pools.KindArray, Name: "array.csi.katbox.io", Version: "1.2.3", NodeID: "node-1", KubeletDir: "/var/lib/kubelet/", MaxVolumes: 7,
		Volumes: volumes, Log: log, Count: func(method string) edge.Calls { return counted.Method(method) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// serve serves a driver on a real socket and returns a connection to it.
func serve(t *testing.T, volumes Volumes, log logr.Logger) *grpc.ClientConn {
	t.Helper()
	server := NewServer(testDriver(t, volumes, log))
	path := filepath.Join(t.TempDir(), "csi.sock")
	l, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
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

// nfs and iscsi are attachments.
func nfs() pools.Attachment {
	return pools.Attachment{Protocol: pools.NFS, Export: "10.0.0.1:/export/pvc-1"}
}

func iscsi() pools.Attachment {
	return pools.Attachment{
		Protocol: pools.ISCSI, Target: "iqn.2011-04.com.zadarastorage:vsa-1:1", Portal: "10.0.0.1:3260", LUN: 3,
		Serial: "volume-00000001", CHAPSecret: "chap-pool", FSType: "xfs",
	}
}

func mounted(mode csi.VolumeCapability_AccessMode_Mode, fsType string, options ...string) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType, MountFlags: options}},
	}
}

func block(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	}
}

// stageRequest is what a kubelet sends.
func stageRequest(a pools.Attachment, c *csi.VolumeCapability) *csi.NodeStageVolumeRequest {
	return &csi.NodeStageVolumeRequest{
		VolumeId: "pvc-1", PublishContext: a.PublishContext(c.GetBlock() != nil), StagingTargetPath: stagingPath, VolumeCapability: c,
		Secrets:       map[string]string{"password": "never-shown"},
		VolumeContext: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "never-shown"},
	}
}

func publishRequest(c *csi.VolumeCapability) *csi.NodePublishVolumeRequest {
	return &csi.NodePublishVolumeRequest{
		VolumeId: "pvc-1", StagingTargetPath: stagingPath, TargetPath: targetPath, VolumeCapability: c,
		PublishContext: nfs().PublishContext(false), Secrets: map[string]string{"password": "never-shown"},
	}
}
