package ephemeral

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// noticed is how long it takes at most until a volume is retained that is mounted nowhere.
const noticed = 3 * testGrace

// atKubelets returns a publication whose target is where a kubelet has it.
func (h *testNode) atKubelets(pod volume.PodUID) volume.Publication {
	h.t.Helper()
	p := h.publication()
	p.Pod = pod
	p.Target.Path = h.target(pod, "kubernetes.io~csi/scratch/mount")
	if err := os.MkdirAll(filepath.Dir(p.Target.Path), 0o750); err != nil {
		h.t.Fatal(err)
	}
	return p
}

// removeTarget does what a kubelet does to a pod that was gone after a reboot: it removes the target, and fails at
// the file beside it.
func (h *testNode) removeTarget(p volume.Publication) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(p.Target.Path), "vol_data.json"), []byte("{}"), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Remove(p.Target.Path); err != nil {
		h.t.Fatal(err)
	}
}

// reboot takes all mounts away, and begins anew with what the records say.
func (h *testNode) reboot() {
	h.t.Helper()
	h.stop()
	h.mounter.forgetMounts()
	h.rebooted = true
	h.start()
}

// TestOneOfTwoTargetsWasLeaving: a reboot takes both mounts of a volume away while the unmount of one was ordered. Its pod still
// has the other one, so nothing is retained, and nothing goes, before the kubelet has come to it.
func TestOneOfTwoTargetsWasLeaving(t *testing.T) {
	for name, next := range map[string]func(h *testNode, first, second volume.Publication){
		"nothing comes": func(*testNode, volume.Publication, volume.Publication) {},
		"the unpublish is repeated": func(h *testNode, first, _ volume.Publication) {
			if err := h.node.Unpublish(h.t.Context(), testID, first.Target.Path); err != nil {
				h.t.Error(err)
			}
		},
		"it is published again": func(h *testNode, _, second volume.Publication) {
			if err := h.node.Publish(h.t.Context(), second); err != nil {
				h.t.Error(err)
			}
		},
		"it is published elsewhere": func(h *testNode, _, second volume.Publication) {
			second.Target.Path = h.target(testPod, "third")
			second.Target.MultiWriter = false
			if err := h.node.Publish(h.t.Context(), second); err != nil {
				h.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				first, second := h.publication(), h.publication()
				second.Target.Path = h.target(testPod, "second")
				for _, p := range []*volume.Publication{&first, &second} {
					p.Target.MultiWriter = true
					if err := h.node.Publish(t.Context(), *p); err != nil {
						t.Fatal(err)
					}
				}
				h.mounter.fail(nil, always(unix.EBUSY))
				wantError(t, h.node.Unpublish(t.Context(), testID, first.Target.Path), volume.ErrBusy)
				h.mounter.fail(nil, nil)
				h.reboot()
				synctest.Wait()
				next(h, first, second)
				time.Sleep(time.Second)
				synctest.Wait()
				if r, ok := h.records.get(testID); !ok || !r.Phase.Live() {
					t.Errorf("the record is %+v (known: %t), want one in use", r, ok)
				}
			})
		})
	}
}

// TestDirectoryThatAKubeletLeavesBehind: after a reboot nothing unpublishes the volume of a pod that is gone. A
// directory of the pod that stays for ever does not keep it.
func TestDirectoryThatAKubeletLeavesBehind(t *testing.T) {
	for name, change := range map[string]func(h *testNode, p *volume.Publication){
		"rebooted":                   func(h *testNode, _ *volume.Publication) { h.reboot() },
		"unmounted under the daemon": func(h *testNode, _ *volume.Publication) { h.mounter.forgetMounts() },
		"unmounted without a daemon": func(h *testNode, _ *volume.Publication) { h.stop(); h.mounter.forgetMounts(); h.start() },
		"of an unknown name": func(h *testNode, p *volume.Publication) {
			r, _ := h.records.get(p.ID)
			r.VolumeName = ""
			h.records.put(r)
			h.reboot()
		},
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				p := h.atKubelets(testPod)
				if err := h.node.Publish(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				h.writeMarker(testPod, testID)
				change(h, &p)
				h.removeTarget(p)
				time.Sleep(testGrace / 2)
				if r, _ := h.records.get(testID); r.Phase == volume.Retained {
					t.Fatal("retained within the grace time")
				}
				time.Sleep(noticed)
				h.wantPhase(testID, volume.Retained)
				h.wantMarker("retained")
				h.wantValues("retained", metricstest.Values{`katbox_unmounted_volumes`: 0})
				time.Sleep(testLifespan)
				h.wantGone(testPod, testID)
			})
		})
	}
}

// TestVolumeInDoubtIsSaid: a target that stays may be that of a pod that its kubelet has not come to since the
// reboot. The volume stays published, and that is said once, until something tells.
func TestVolumeInDoubtIsSaid(t *testing.T) {
	for name, tt := range map[string]struct {
		tell  func(h *testNode, p volume.Publication)
		phase volume.Phase
		known volume.Outcome
	}{
		"published again": {func(h *testNode, p volume.Publication) {
			if err := h.node.Publish(h.t.Context(), p); err != nil {
				h.t.Fatal(err)
			}
		}, volume.Publishing, volume.OutcomeUnknown},
		"unpublished": {func(h *testNode, p volume.Publication) {
			if err := h.node.Unpublish(h.t.Context(), p.ID, p.Target.Path); err != nil {
				h.t.Fatal(err)
			}
		}, volume.Retained, volume.OutcomeUnknown},
		"ended":                 {func(h *testNode, _ volume.Publication) { h.end(volume.Failed) }, volume.Retained, volume.Failed},
		"its directory is gone": {func(h *testNode, _ volume.Publication) { h.removePod(testPod) }, volume.Retained, volume.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				log := &list[string]{}
				h.log = funcr.New(func(_, line string) { log.add(line) }, funcr.Options{})
				p := h.atKubelets(testPod)
				if err := h.node.Publish(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				h.writeMarker(testPod, testID)
				h.reboot()
				time.Sleep(2 * testLifespan)
				if r, _ := h.records.get(testID); !r.Phase.Live() {
					t.Fatalf("it is %s", r.Phase)
				}
				if said := mentioning(log, "mounted nowhere", string(testID), h.podsDir()); said != 1 {
					t.Errorf("said %d times", said)
				}
				h.wantValues("in doubt", metricstest.Values{`katbox_unmounted_volumes`: 1})
				tt.tell(h, p)
				time.Sleep(noticed)
				if r := h.wantPhase(testID, tt.phase); r.Outcome != tt.known {
					t.Errorf("outcome %s", r.Outcome)
				}
				h.wantMarker("told")
				h.wantValues("told", metricstest.Values{`katbox_unmounted_volumes`: 0})
			})
		})
	}
}

// TestPodThatIsPublishedInVainIsNotGone: its target is not there either, between two attempts.
func TestPodThatIsPublishedInVainIsNotGone(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		p := h.atKubelets(testPod)
		if err := h.node.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		h.reboot()
		h.removeTarget(p)
		h.mounter.fail(always(os.ErrPermission), nil)
		for range 100 {
			if err := h.node.Publish(t.Context(), p); err == nil {
				t.Fatal("published")
			}
			time.Sleep(2 * time.Minute)
		}
		if r, _ := h.records.get(testID); !r.Phase.Live() {
			t.Errorf("it is %s", r.Phase)
		}
		h.mounter.fail(nil, nil)
	})
}

// TestUnmountedVolumeWithoutAMountTable: nothing is concluded from what cannot be read.
func TestUnmountedVolumeWithoutAMountTable(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		p := h.atKubelets(testPod)
		if err := h.node.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		h.reboot()
		h.removeTarget(p)
		h.table.fail(os.ErrPermission)
		time.Sleep(10 * testGrace)
		if r, _ := h.records.get(testID); !r.Phase.Live() {
			t.Errorf("it is %s", r.Phase)
		}
		h.table.fail(nil)
		time.Sleep(noticed)
		h.wantPhase(testID, volume.Retained)
	})
}

// TestAttachThatAKubeletLeavesBehind: what the pod had attached does not stay for ever either.
func TestAttachThatAKubeletLeavesBehind(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.leaveBehind()
		p := h.attaching()
		p.VolumeName, p.Target = "scratch", h.atKubelets(lookingPod).Target
		p.Target.ReadOnly = true
		if err := h.node.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		h.reboot()
		h.removeTarget(p)
		time.Sleep(testLifespan + 4*testGrace)
		h.wantGone(testPod, testID)
		if _, ok := h.records.get(lookingID); ok {
			t.Error("a record is left")
		}
	})
}
