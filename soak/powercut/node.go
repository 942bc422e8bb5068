package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/daemon"
	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/testbed"
)

const (
	// callLimit is how long a call may take. The machine may be an emulated one.
	callLimit = 60 * time.Second
	// busyPause is before a call is repeated that met another one, or a deletion.
	busyPause = 50 * time.Millisecond
	// startLimit is how long a daemon may take until it is ready. The clock of an emulated machine that has other work
	// beside it was seen to run five times as fast as it should.
	startLimit = 5 * time.Minute
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
	layout testbed.Layout
	// metrics is where the daemon tells them.
	metrics string
	driver  *daemon.Binary
	conn    *grpc.ClientConn
	admin   *api.Client
	// pods says how pods end; nil after the boot, when they ended before it.
	pods *kubelet.PodsAPI
}

// newNode starts nothing. The directories are those of an earlier boot, if there
// was one; the log is not, as it would be full of holes.
func newNode(o options, name string, lifespan, grace time.Duration, l *locals) (*node, error) {
	n := &node{name: name, lifespan: lifespan, grace: grace, layout: testbed.At(filepath.Join(o.dir, name))}
	n.layout.Log = filepath.Join(o.logs, name+".log")
	if err := n.layout.Make(); err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	if err := os.Remove(n.layout.Log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("make a new log of node %s: %w", name, err)
	}
	args := daemon.Flags(n.layout, workload.Driver{
		Lifespan: workload.Duration(lifespan), PruneInterval: workload.Duration(time.Second), OrphanGrace: workload.Duration(grace),
		ReleaseGrace: workload.Duration(releaseGrace), MaxLifespan: workload.Duration(asked),
	})
	for i, d := range nodes {
		if d.name == name {
			n.metrics = fmt.Sprintf("127.0.0.1:%d", firstPort+i)
		}
	}
	args = append(args, "--http-endpoint", n.metrics)
	if l != nil && name == localNode {
		args = append(args, l.flags...)
	}
	n.driver = daemon.New(daemon.Config{Binary: o.daemon, Log: n.layout.Log, Socket: n.layout.Socket, Args: args, StartLimit: startLimit})
	n.admin = api.Dial(n.layout.Admin)
	var err error
	n.conn, err = testbed.Dial(n.layout.Socket)
	return n, err
}

// place is a volume of a pod: what it is called, and where it is.
type place struct {
	*node
	// volume is its name in the acks: node, pod and name in the pod.
	volume string
	testbed.Volume
	// attributes are what its pod says of it.
	attributes map[string]string
}

func (n *node) place(pod, name string) place {
	// As a kubelet makes it, by which the daemon knows whose volume it is.
	sum := sha256.Sum256([]byte(pod + name))
	p := place{node: n, volume: n.name + "/" + pod + "/" + name, Volume: testbed.Volume{
		Kubelet: n.layout.Kubelet, Work: n.layout.Work, Pod: pod, Name: name, ID: fmt.Sprintf("csi-%x", sum),
	}}
	if name == failing {
		p.attributes = map[string]string{api.KeyRetain: "OnFailure", "lifespan": asked.String()}
	}
	return p
}

// keeps is how long the volume is kept after its unpublish.
func (p place) keeps() time.Duration {
	if p.Name == failing {
		return asked
	}
	return p.lifespan
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

// publish publishes the volume.
func (p place) publish(ctx context.Context) error {
	return p.call(ctx, func(ctx context.Context, c csi.NodeClient) error {
		request := testbed.Publish(p.ID, p.Target(), p.Pod, map[string]string{
			"csi.storage.k8s.io/pod.name":      p.Name,
			"csi.storage.k8s.io/pod.namespace": "powercut",
		})
		maps.Copy(request.VolumeContext, p.attributes)
		request.Readonly = p.attributes[api.KeyAttach] != ""
		_, err := c.NodePublishVolume(ctx, request)
		return err
	})
}

// unpublish unpublishes the volume.
func (p place) unpublish(ctx context.Context) error {
	return p.call(ctx, func(ctx context.Context, c csi.NodeClient) error {
		_, err := c.NodeUnpublishVolume(ctx, testbed.Unpublish(p.ID, p.Target()))
		return err
	})
}

// call makes a call, and repeats it as long as the daemon says that it is busy
// with the volume, as with a deletion.
func (p place) call(ctx context.Context, do func(context.Context, csi.NodeClient) error) error {
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return pause.Until(limited, busyPause, func() (bool, error) {
		err := do(limited, csi.NewNodeClient(p.conn))
		return status.Code(err) != codes.Aborted, err
	})
}
