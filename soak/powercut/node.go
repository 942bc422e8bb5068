package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/daemon"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
)

const (
	// callLimit is how long a call may take. The machine may be an emulated one.
	callLimit = 60 * time.Second
	// busyPause is before a call is repeated that met another one, or a deletion.
	busyPause = 50 * time.Millisecond
)

// nodes are the names of the daemons, with the lifespan that each has while the
// pods churn.
var nodes = []struct {
	name     string
	lifespan time.Duration
}{
	{"short", 2 * time.Second},
	{"long", 20 * time.Second},
}

// node is a daemon with its directories on the disk, and the kubelet's side of
// them.
type node struct {
	name     string
	lifespan time.Duration
	// former is the lifespan that the daemon had before the boot. A volume keeps what it
	// was promised when it was first published.
	former time.Duration
	grace  time.Duration
	layout host.Layout
	driver *daemon.Binary
	conn   *grpc.ClientConn
}

// newNode starts nothing. The directories are those of an earlier boot, if there
// was one; the log is not, as it would be full of holes.
func newNode(o options, name string, lifespan, grace time.Duration, l *locals) (*node, error) {
	dir := filepath.Join(o.dir, name)
	n := &node{name: name, lifespan: lifespan, grace: grace, layout: host.Layout{
		Dir: dir, Socket: filepath.Join(dir, "csi.sock"), Work: filepath.Join(dir, "work"),
		Kubelet: filepath.Join(dir, "kubelet"), Log: filepath.Join(o.logs, name+".log"),
	}}
	// The last pod is always there: without any the daemon doubts that it looks at
	// the right directory.
	for _, d := range []string{n.layout.Work, filepath.Join(n.pods(), "bystander")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, fmt.Errorf("make a directory of node %s: %w", name, err)
		}
	}
	if err := os.Remove(n.layout.Log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("make a new log of node %s: %w", name, err)
	}
	args := daemon.Flags(n.layout, workload.Driver{
		Lifespan: workload.Duration(lifespan), PruneInterval: workload.Duration(time.Second), OrphanGrace: workload.Duration(grace),
	})
	if l != nil && name == localNode {
		args = append(args, l.flags...)
	}
	n.driver = daemon.New(daemon.Config{Binary: o.daemon, Log: n.layout.Log, Socket: n.layout.Socket, Args: args})
	var err error
	// The first call on it connects.
	n.conn, err = grpc.NewClient("unix://"+n.layout.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", n.layout.Socket, err)
	}
	return n, nil
}

func (n *node) pods() string { return filepath.Join(n.layout.Kubelet, "pods") }

// place is a volume of a pod: what it is called, and where it is.
type place struct {
	*node
	// volume is its name in the acks: node, pod and name in the pod.
	volume string
	pod    string
	name   string
	id     string
}

func (n *node) place(pod, name string) place {
	sum := sha256.Sum256([]byte(pod + " " + name))
	return place{node: n, volume: n.name + "/" + pod + "/" + name, pod: pod, name: name, id: fmt.Sprintf("csi-%x", sum)}
}

// placeOf finds the volume of an ack again.
func placeOf(all []*node, volume string) (place, error) {
	parts := strings.Split(volume, "/")
	for _, n := range all {
		if len(parts) == 3 && parts[0] == n.name {
			return n.place(parts[1], parts[2]), nil
		}
	}
	return place{}, fmt.Errorf("no node has a volume %q", volume)
}

func (p place) data() string   { return filepath.Join(p.layout.Work, p.pod, p.id) }
func (p place) target() string { return filepath.Join(p.targetDir(), "mount") }
func (p place) targetDir() string {
	return filepath.Join(p.pods(), p.pod, "volumes", "kubernetes.io~csi", p.name)
}

// makeTargetDir makes the directories of the pod, as the kubelet does before a
// publish. It does not sync them, as the kubelet does not.
func (p place) makeTargetDir() error {
	for {
		err := os.MkdirAll(p.targetDir(), 0o750)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrNotExist): // not the pod's other volume, going
			return fmt.Errorf("make the directory of a target: %w", err)
		}
	}
}

// removeTargetDir removes what is empty of the pod's directories, with the target
// if it is still there.
func (p place) removeTargetDir() error {
	top := p.pods()
	for dir := p.target(); dir != top; dir = filepath.Dir(dir) {
		err := os.Remove(dir)
		switch {
		case err == nil, errors.Is(err, os.ErrNotExist):
		case errors.Is(err, os.ErrExist): // not empty: the pod has another volume
			return nil
		default:
			return fmt.Errorf("remove the directory of a target: %w", err)
		}
	}
	return nil
}

// publish publishes the volume.
func (p place) publish(ctx context.Context) error {
	return p.call(ctx, func(ctx context.Context, c csi.NodeClient) error {
		_, err := c.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId: p.id, TargetPath: p.target(),
			VolumeCapability: &csi.VolumeCapability{
				AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			},
			VolumeContext: map[string]string{
				"csi.storage.k8s.io/ephemeral":     "true",
				"csi.storage.k8s.io/pod.name":      p.name,
				"csi.storage.k8s.io/pod.namespace": "powercut",
				"csi.storage.k8s.io/pod.uid":       p.pod,
			},
		})
		return err
	})
}

// unpublish unpublishes the volume.
func (p place) unpublish(ctx context.Context) error {
	return p.call(ctx, func(ctx context.Context, c csi.NodeClient) error {
		_, err := c.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: p.id, TargetPath: p.target()})
		return err
	})
}

// call makes a call, and repeats it as long as the daemon says that it is busy
// with the volume, as with a deletion.
func (p place) call(ctx context.Context, do func(context.Context, csi.NodeClient) error) error {
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for {
		err := do(limited, csi.NewNodeClient(p.conn))
		if status.Code(err) != codes.Aborted {
			return err
		}
		if pause.For(limited, busyPause) != nil {
			return err
		}
	}
}
