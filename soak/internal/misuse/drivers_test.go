package misuse

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// fake is a driver that looks at what it gets and does nothing. Its handling is
// spoilt by the functions that are not nil.
type fake struct {
	csi.UnimplementedNodeServer
	site *Site
	// before sees a request before it is looked at.
	before func(s *Site, method string, r *request)
	// answer makes the answer of the honest one.
	answer func(honest error) error
}

func (f *fake) handle(method string, r *request) error {
	if f.before != nil {
		f.before(f.site, method, r)
	}
	err := f.check(method, r)
	if f.answer != nil {
		return f.answer(err)
	}
	return err
}

// check is an honest driver's, in the fewest words.
func (f *fake) check(method string, r *request) error {
	invalid := func(field string) error {
		return status.Errorf(codes.InvalidArgument, "the %s is not acceptable", field)
	}
	if !plain(r.id) {
		return invalid("volume ID")
	}
	if method == "stats" {
		if r.path == "" {
			return invalid("VolumePath")
		}
		return status.Error(codes.NotFound, "no such volume")
	}
	if !filepath.IsAbs(r.path) || len(r.path) > 4095 || strings.Contains(r.path, "\x00") ||
		!strings.HasPrefix(filepath.Clean(r.path), f.site.pods()+"/") {
		return invalid("target path")
	}
	if method == "unpublish" {
		return nil
	}
	mount := r.capability.GetMount()
	switch mode := r.capability.GetAccessMode().GetMode(); {
	case r.context[keyEphemeral] != "true":
		return invalid(keyEphemeral)
	case !plain(r.context[keyPodUID]) || r.context[keyPodUID][0] == '.':
		return invalid(keyPodUID)
	case attribute(r.context) != "":
		return invalid(attribute(r.context))
	case mount == nil:
		return invalid("capability")
	case mount.GetVolumeMountGroup() != "":
		return invalid("volume_mount_group")
	case mode != csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:
		return invalid("access mode")
	}
	for _, flag := range mount.GetMountFlags() {
		if !slices.Contains([]string{"ro", "rw", "noexec"}, flag) {
			return invalid("mount flags")
		}
	}
	return nil
}

// attribute is one that the kubelet does not set; no good request has any.
func attribute(context map[string]string) string {
	for _, key := range sorted(context) {
		if !strings.HasPrefix(key, "csi.storage.k8s.io/") {
			return key
		}
	}
	return ""
}

func plain(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) < 256 && !strings.ContainsAny(name, "/\x00")
}

func (f *fake) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	return &csi.NodePublishVolumeResponse{}, f.handle("publish", &request{
		id: r.GetVolumeId(), path: r.GetTargetPath(), capability: r.GetVolumeCapability(), context: r.GetVolumeContext(),
	})
}

func (f *fake) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return &csi.NodeUnpublishVolumeResponse{}, f.handle("unpublish", &request{id: r.GetVolumeId(), path: r.GetTargetPath()})
}

func (f *fake) NodeGetVolumeStats(_ context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	return &csi.NodeGetVolumeStatsResponse{}, f.handle("stats", &request{id: r.GetVolumeId(), path: r.GetVolumePath()})
}

// serve serves the driver until the end of the test.
func (f *fake) serve(t *testing.T) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	csi.RegisterNodeServer(server, f)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:fake", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	return conn
}

// newSite is a site with directories of its own, some levels below that of the
// test, so that no way out of them leads further.
func newSite(t *testing.T) (*Site, string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(top, "one", "two")
	kubelet, work := filepath.Join(run, "kubelet"), filepath.Join(run, "work")
	if err := errors.Join(os.MkdirAll(filepath.Join(kubelet, "pods"), 0o755), os.Mkdir(work, 0o755)); err != nil {
		t.Fatal(err)
	}
	site, err := NewSite(kubelet, work)
	if err != nil {
		t.Fatal(err)
	}
	return site, top
}
