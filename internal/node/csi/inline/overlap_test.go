package inline

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
)

// meetingVolumes answers a call only when as many are under way as it waits for.
type meetingVolumes struct {
	*fakeVolumes
	mu      sync.Mutex
	missing int
	all     chan struct{}
}

func (m *meetingVolumes) meet(ctx context.Context) error {
	m.mu.Lock()
	m.missing--
	if m.missing == 0 {
		close(m.all)
	}
	m.mu.Unlock()
	select {
	case <-m.all:
		return nil
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		return fmt.Errorf("%d of the calls have not come, they wait for this one", m.missing)
	}
}

func (m *meetingVolumes) Publish(ctx context.Context, _ volume.Publication) error { return m.meet(ctx) }

func (m *meetingVolumes) Unpublish(ctx context.Context, _ volume.ID, _ string) error {
	return m.meet(ctx)
}

func (m *meetingVolumes) Stats(ctx context.Context, _ volume.ID, _ string) (volume.Stats, error) {
	return volume.Stats{}, m.meet(ctx)
}

// TestCallsForDifferentVolumesOverlap: no call waits for that of another volume, whatever the two are.
func TestCallsForDifferentVolumesOverlap(t *testing.T) {
	const each = 8
	for name, call := range map[string]func(context.Context, csi.NodeClient, int) error{
		"publish": func(ctx context.Context, c csi.NodeClient, n int) error {
			q := publishRequest()
			q.VolumeId += strconv.Itoa(n)
			_, err := c.NodePublishVolume(ctx, q)
			return err
		},
		"unpublish": func(ctx context.Context, c csi.NodeClient, n int) error {
			q := publishRequest()
			_, err := c.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: q.VolumeId + strconv.Itoa(n), TargetPath: q.TargetPath})
			return err
		},
		"stats": func(ctx context.Context, c csi.NodeClient, n int) error {
			q := publishRequest()
			_, err := c.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: q.VolumeId + strconv.Itoa(n), VolumePath: q.TargetPath})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn := serveDriver(t, &meetingVolumes{fakeVolumes: &fakeVolumes{}, missing: each, all: make(chan struct{})}, logr.Discard())
			// Only calls that wait for one another need so long.
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var calls sync.WaitGroup
			for n := range each {
				calls.Go(func() {
					if err := call(ctx, csi.NewNodeClient(conn), n); err != nil {
						t.Error(err)
					}
				})
			}
			calls.Wait()
		})
	}
}
