package ephemeral

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestVolumesOverlap: mounts and unmounts of different volumes hang all at once, and none of them
// waits for another one to begin.
func TestVolumesOverlap(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		const volumes = 16
		var hanging atomic.Int32
		release := make(chan struct{})
		hang := func(string) error {
			hanging.Add(1)
			<-release
			return nil
		}
		at := func(n int) volume.Publication {
			p := h.publication()
			p.Pod = volume.PodUID(fmt.Sprintf("pod-%d", n))
			p.ID, p.Target.Path = volume.ID(fmt.Sprintf("csi-%d", n)), h.target(p.Pod, "mount")
			return p
		}
		for _, of := range []struct {
			name    string
			mount   func(string) error
			unmount func(string) error
			call    func(context.Context, volume.Publication) error
		}{
			{"publish", hang, nil, h.node.Publish},
			{"unpublish", nil, hang, func(ctx context.Context, p volume.Publication) error {
				return h.node.Unpublish(ctx, p.ID, p.Target.Path)
			}},
		} {
			hanging.Store(0)
			release = make(chan struct{})
			h.mounter.fail(of.mount, of.unmount)
			answers := make(chan error, volumes)
			for n := range volumes {
				p := at(n)
				if of.mount != nil {
					h.makePod(p.Pod)
				}
				go func() { answers <- of.call(t.Context(), p) }()
			}
			synctest.Wait()
			if n := hanging.Load(); n != volumes {
				t.Errorf("%s: %d volumes are at it, want all %d", of.name, n, volumes)
			}
			h.mounter.fail(nil, nil)
			close(release)
			for range volumes {
				if err := <-answers; err != nil {
					t.Errorf("%s: %v", of.name, err)
				}
			}
		}
	})
}
