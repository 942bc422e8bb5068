package ephemeral

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/katbox/katbox/internal/model/volume"
)

// cover mounts a FUSE file system on the test's volume, as a sidecar with propagation Bidirectional does.
func (h *testNode) cover() {
	h.t.Helper()
	if err := h.mounter.FakeMounter.Mount("/bucket", h.target(testPod, "mount"), "fuse.s3", nil); err != nil {
		h.t.Fatal(err)
	}
}

// TestPublishBeneathAMountOfThePod: a kubelet that starts anew publishes all its volumes again.
func TestPublishBeneathAMountOfThePod(t *testing.T) {
	for name, change := range map[string]func(h *testNode, p *volume.Publication){
		"":                func(*testNode, *volume.Publication) {},
		"read-only":       func(_ *testNode, p *volume.Publication) { p.Target.ReadOnly = true },
		"by a new daemon": func(h *testNode, _ *volume.Publication) { h.restart() },
		"covered twice":   func(h *testNode, _ *volume.Publication) { h.cover() },
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				p := h.publication()
				p.Target.ReadOnly = name == "read-only"
				if err := h.node.Publish(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				h.cover()
				change(h, &p)
				before := len(h.mounter.mounts())
				if err := h.node.Publish(t.Context(), p); err != nil {
					t.Errorf("published again: %v", err)
				}
				if now := len(h.mounter.mounts()); now != before {
					t.Errorf("%d mounts, before %d", now, before)
				}
				other := p
				other.Target.ReadOnly = !p.Target.ReadOnly
				wantError(t, h.node.Publish(t.Context(), other), volume.ErrConflict)
			})
		})
	}
}

// TestUnpublishBeneathAMountOfThePod: the pod's own mount stays while the pod may run, and its error names it. Once the
// pod has ended, or the kubelet has asked for so long that it must have, all comes off.
func TestUnpublishBeneathAMountOfThePod(t *testing.T) {
	for name, end := range map[string]func(h *testNode){
		"ended":    func(h *testNode) { h.end(volume.Failed) },
		"insisted": func(*testNode) { time.Sleep(testGrace) },
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				log := &list[string]{}
				h.log = funcr.New(func(_, line string) { log.add(line) }, funcr.Options{})
				h.restart()
				h.publish()
				h.writeMarker(testPod, testID)
				h.cover()
				target := h.target(testPod, "mount")
				for range 3 {
					err := h.node.Unpublish(t.Context(), testID, target)
					wantError(t, err, volume.ErrForeignMount)
					if !strings.Contains(err.Error(), "fuse.s3 /bucket") {
						t.Errorf("%v does not say which mount it is", err)
					}
					time.Sleep(time.Minute)
				}
				if len(h.mounter.mounts()) != 2 {
					t.Fatalf("mounts of a pod that may run: %v", h.mounter.mounts())
				}
				end(h)
				if err := h.node.Unpublish(t.Context(), testID, target); err != nil {
					t.Errorf("of a pod that is gone: %v", err)
				}
				h.wantPhase(testID, volume.Retained)
				h.wantMarker("retained")
				if left := h.mounter.mounts(); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
				if said := mentioning(log, "taking away a mount", "fuse.s3 /bucket", string(testID)); said != 1 {
					t.Errorf("said %d times", said)
				}
			})
		})
	}
}

// TestInsistenceEndsWithAPublish: a kubelet that changes its mind, or a call that came late, has not insisted.
func TestInsistenceEndsWithAPublish(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.cover()
		target := h.target(testPod, "mount")
		for range 5 {
			wantError(t, h.node.Unpublish(t.Context(), testID, target), volume.ErrForeignMount)
			time.Sleep(testGrace)
			h.publish()
		}
		wantError(t, h.node.Unpublish(t.Context(), testID, target), volume.ErrForeignMount)
		time.Sleep(10 * testGrace) // what the daemon repeats by itself is no insistence
		if len(h.mounter.mounts()) != 2 {
			t.Errorf("mounts: %v", h.mounter.mounts())
		}
	})
}

// TestVolumeOfAnotherWorkingDirectory: the disk was replaced, and the mount of a pod shows the old one. It comes off; a
// publish does not hide it.
func TestVolumeOfAnotherWorkingDirectory(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		p := h.publication()
		if err := os.Mkdir(p.Target.Path, 0o750); err != nil {
			t.Fatal(err)
		}
		before := filepath.Join(h.root, "before", string(testPod), string(testID))
		if err := h.mounter.FakeMounter.Mount(before, p.Target.Path, "xfs", nil); err != nil {
			t.Fatal(err)
		}
		wantError(t, h.node.Publish(t.Context(), p), volume.ErrForeignMount)
		h.unpublish()
		if left := h.mounter.mounts(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		h.publish()
	})
}
