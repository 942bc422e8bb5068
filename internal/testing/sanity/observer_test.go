package sanity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/moby/sys/mountinfo"
	"google.golang.org/grpc"

	"github.com/katbox/katbox/internal/model/volume"
)

// observer sits on csi-sanity's connection and looks behind the driver's
// answers: csi-sanity itself does not notice whether anything was mounted.
type observer struct {
	daemon    *daemon
	published []volume.ID
}

// call is a grpc.UnaryClientInterceptor. csi-sanity makes one call at a time.
func (o *observer) call(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	if err := invoke(ctx, method, req, reply, conn, opts...); err != nil {
		return err
	}
	switch r := req.(type) {
	case *csi.NodePublishVolumeRequest:
		o.published = append(o.published, volume.ID(r.GetVolumeId()))
		if mounted, err := mountinfo.Mounted(r.GetTargetPath()); err != nil {
			return err
		} else if !mounted {
			return fmt.Errorf("published, but nothing is mounted at %s", r.GetTargetPath())
		}
	case *csi.NodeUnpublishVolumeRequest:
		if _, err := os.Lstat(r.GetTargetPath()); err == nil {
			return fmt.Errorf("unpublished, but %s is still there", r.GetTargetPath())
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// checkRetained checks that every volume that was published has been retained,
// with its data. The daemon has to be stopped.
func (o *observer) checkRetained(t *testing.T) {
	t.Helper()
	if len(o.published) == 0 {
		t.Error("no volume was published")
	}
	phases := map[volume.ID]volume.Phase{}
	damaged, err := o.daemon.records.Load(time.Now(), func(r volume.Record) { phases[r.ID] = r.Phase })
	if err != nil || len(damaged) > 0 {
		t.Fatalf("read the records: %v; damaged: %v", err, damaged)
	}
	for _, id := range o.published {
		if phases[id] != volume.Retained {
			t.Errorf("volume %s is %s, expected %s", id, phases[id], volume.Retained)
		}
		if exists, err := o.daemon.scratch.Exists(volume.Place{Pod: podUID, ID: id}); err != nil || !exists {
			t.Errorf("the data directory of volume %s is gone: %v", id, err)
		}
	}
}
