package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/testbed"
)

const (
	// poolKey is where the volume context has the UUID of a volume's pool.
	poolKey = "pools.katbox.io/pool"
	// driverName is the local driver's.
	driverName = "local.csi.katbox.io"
)

// staged is a volume as the kubelet sees it.
func (p *Player) staged(v *volume, pod string) testbed.Staged {
	return testbed.Staged{
		Node: p.calls, Kubelet: p.Kubelet, Driver: driverName, Pod: pod, ID: v.name,
		Context: map[string]string{poolKey: p.is[v.class].UUID},
	}
}

// give stages a volume and publishes it for a pod. It returns where the pod has it.
func (p *Player) give(ctx context.Context, v *volume, pod string) (target string, err error) {
	s := p.staged(v, pod)
	if err := call(ctx, "stage "+v.name, s.Stage); err != nil {
		return "", err
	}
	return s.Target(), call(ctx, "publish "+v.name, s.Publish)
}

// leave takes a volume from a pod and from the node, and removes the kubelet's directories for both.
func (p *Player) leave(ctx context.Context, v *volume, pod string) error {
	s := p.staged(v, pod)
	if err := call(ctx, "unpublish "+v.name, s.Unpublish); err != nil {
		return err
	}
	if err := call(ctx, "unstage "+v.name, s.Unstage); err != nil {
		return err
	}
	for _, path := range []string{s.Target(), filepath.Dir(s.Target()), s.Staging(), filepath.Dir(s.Staging())} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("after %s was taken away: %w", v.name, err)
		}
	}
	return nil
}

// expand completes the growth of a volume that a pod has. It returns the size.
func (p *Player) expand(ctx context.Context, v *volume, pod string, bytes int64) (size int64, err error) {
	err = call(ctx, "expand "+v.name, func(ctx context.Context) (err error) {
		size, err = p.staged(v, pod).Expand(ctx, bytes)
		return err
	})
	return size, err
}

// call makes a call, and repeats it as long as a kubelet would.
func call(ctx context.Context, what string, do func(context.Context) error) error {
	return repeat(ctx, what, func(err error) bool {
		return slices.Contains([]codes.Code{codes.Unavailable, codes.Aborted, codes.DeadlineExceeded}, status.Code(err))
	}, do)
}

// dial returns the calls of a driver that is there, or comes.
func dial(socket string) (csi.NodeClient, error) {
	conn, err := testbed.Dial(socket)
	return csi.NewNodeClient(conn), err
}
