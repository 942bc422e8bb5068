package archived

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/host"
)

// NodePublishVolume makes the data directory and binds it on the target. When
// that fails it deletes the data directory, whatever was in it.
func (d *Driver) NodePublishVolume(_ context.Context, q *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	id, target := q.GetVolumeId(), q.GetTargetPath()
	if id == "" || target == "" {
		return nil, status.Error(codes.InvalidArgument, "volume ID or target path is missing")
	}
	pod := q.GetVolumeContext()["csi.storage.k8s.io/pod.uid"]
	data := filepath.Join(d.cfg.Work, pod, id)
	if err := os.MkdirAll(data, 0o777); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	d.mu.Lock()
	d.pods[id] = pod
	d.mu.Unlock()
	if err := bind(data, target); err != nil {
		_ = d.removeAll(data)
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// bind does nothing if something is mounted on the target already.
func bind(data, target string) error {
	mounted, err := host.MountedAt(target)
	if err != nil || mounted {
		return err
	}
	if err := os.Mkdir(target, 0o750); err != nil && !os.IsExist(err) {
		return err
	}
	return host.Bind(data, target)
}

// NodeUnpublishVolume has the data directory deleted later, and then unmounts
// it. When that fails, it is deleted all the same.
func (d *Driver) NodeUnpublishVolume(_ context.Context, q *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	id, target := q.GetVolumeId(), q.GetTargetPath()
	if id == "" || target == "" {
		return nil, status.Error(codes.InvalidArgument, "volume ID or target path is missing")
	}
	d.enqueue(id)
	mounted, err := host.MountedAt(target)
	if err == nil && mounted {
		err = host.Unmount(target)
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	d.mu.Lock()
	delete(d.pods, id)
	d.mu.Unlock()
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// enqueue notes what to delete. The pod of a volume that it does not know is
// empty, and nobody looks where the path leads.
func (d *Driver) enqueue(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(d.queue, func(e entry) bool { return e.id == id }) {
		return
	}
	d.queue = append(d.queue, entry{id, filepath.Join(d.cfg.Work, d.pods[id], id), time.Now()})
}
