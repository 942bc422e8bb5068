package kubelet

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
)

func whole(d *driver) { d.staging, d.controller = true, true }

func TestPersistentVolume(t *testing.T) {
	r := newRig(t, whole)
	r.start()
	r.startAttachments()
	p := r.create("p", persistent("pv-1"))
	r.await("pod p mounted", 1)

	staging := stagingPath(r.root, "soak.example.com", "pv-1")
	target := filepath.Join(r.root, "pods/p/volumes/kubernetes.io~csi/pv-1/mount")
	got := r.driver.publishes[target]
	wantContext := map[string]string{"device": "pv-1"}
	if got.GetStagingTargetPath() != staging || !maps.Equal(got.GetPublishContext(), wantContext) {
		t.Errorf("publish request %v", got)
	}
	if got.GetVolumeContext()["csi.storage.k8s.io/ephemeral"] != "false" {
		t.Errorf("volume context %v", got.GetVolumeContext())
	}
	if !maps.Equal(r.driver.stages["pv-1"].GetPublishContext(), wantContext) {
		t.Errorf("stage request %v", r.driver.stages["pv-1"])
	}
	// The directory is the SHA-256 of the handle.
	const sum = "57c401c9dec61f8dc6e838ec38e4c348187fb9841c42aee217a209274061f4b2"
	if want := filepath.Join(r.root, "plugins/kubernetes.io/csi/soak.example.com", sum, "globalmount"); staging != want {
		t.Errorf("staging path %s, want %s", staging, want)
	}
	wantData(t, filepath.Dir(staging), map[string]string{"volumeHandle": "pv-1", "driverName": "soak.example.com"})
	if p.Volumes[0].Story.Data != "" {
		t.Errorf("data directory %s of a persistent volume", p.Volumes[0].Story.Data)
	}

	// A second pod shares it.
	q := r.create("q", persistent("pv-1"))
	r.await("pod q mounted", 1)
	r.api.Finish(p)
	r.await("pod p gone", 1)
	r.api.Finish(q)
	r.await("ControllerUnpublishVolume pv-1: OK", 1)
	r.await("pod q gone", 1)
	r.equal("attach pv-1", "stage pv-1", "publish pv-1", "publish pv-1",
		"unpublish pv-1", "unpublish pv-1", "unstage pv-1", "detach pv-1")
	r.empty()
	all := append(p.Volumes[0].Story.Story(), q.Volumes[0].Story.Story()...)
	for _, phase := range []string{"VolumeAttachment created", "attached"} {
		if !slices.ContainsFunc(all, func(s string) bool { return strings.HasSuffix(s, "  "+phase) }) {
			t.Errorf("%q is not in the stories %q", phase, all)
		}
	}
	// It can come again.
	r.create("n", persistent("pv-1"))
	r.await("pod n mounted", 1)
}

func TestDriverWithoutSomeServices(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*driver)
		attach bool // somebody plays the attach-detach controller
		want   []string
	}{
		{"without both", nil, true, []string{"publish pv", "unpublish pv"}},
		{"without both, and nobody attaches", nil, false, []string{"publish pv", "unpublish pv"}},
		{"without a controller", func(d *driver) { d.staging = true }, true,
			[]string{"stage pv", "publish pv", "unpublish pv", "unstage pv"}},
		{"without staging", func(d *driver) { d.controller = true }, true,
			[]string{"attach pv", "publish pv", "unpublish pv", "detach pv"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, row.change)
			r.start()
			if row.attach {
				r.startAttachments()
			}
			p := r.create("p", persistent("pv"))
			r.await("pod p mounted", 1)
			r.api.Finish(p)
			r.awaitCall(row.want[len(row.want)-1], 1)
			r.await("pod p gone", 1)
			r.equal(row.want...)
		})
	}
}

func TestInlineVolumesNeverStage(t *testing.T) {
	r := newRig(t, whole)
	r.start()
	r.startAttachments()
	p := r.create("p", inline("a"))
	r.await("pod p mounted", 1)
	r.api.Finish(p)
	r.await("pod p gone", 1)
	r.equal("publish p-a", "unpublish p-a")
}

func TestFailedStageOfAPodThatEnds(t *testing.T) {
	for _, row := range []struct {
		code codes.Code
		want []string
	}{
		{codes.Internal, []string{"attach pv", "stage pv", "detach pv"}},
		{codes.Aborted, []string{"attach pv", "stage pv", "unstage pv", "detach pv"}},
	} {
		r := newRig(t, whole)
		r.driver.next("stage", "pv", fault{code: row.code})
		r.onCall = func(v *Volume, c history.Call) {
			if c.Method == history.Stage {
				r.api.Finish(v.Pod)
			}
		}
		r.start()
		r.startAttachments()
		r.create("p", persistent("pv"))
		r.await("pod p gone", 1)
		r.await("ControllerUnpublishVolume pv: OK", 1)
		r.equal(row.want...)
		r.await("volume pv never mounted", 1)
		r.empty()
	}
}

// TestUnstageThatMaySucceedYet: a pod that comes after it has the volume staged again.
func TestUnstageThatMaySucceedYet(t *testing.T) {
	r := newRig(t, whole)
	r.driver.next("unstage", "pv", fault{code: codes.Unavailable, does: true})
	var next sync.Once
	r.onCall = func(_ *Volume, c history.Call) {
		if c.Method == history.Unstage {
			next.Do(func() { r.create("q", persistent("pv")) })
		}
	}
	r.start()
	r.startAttachments()
	p := r.create("p", persistent("pv"))
	r.await("pod p mounted", 1)
	r.api.Finish(p)
	r.await("pod q mounted", 1)
	r.equal("attach pv", "stage pv", "publish pv", "unpublish pv", "unstage pv", "stage pv", "publish pv")
}

func TestErrorsOnTheWayOfAPersistentVolume(t *testing.T) {
	r := newRig(t, whole)
	whats := []string{"attach", "stage", "publish", "unpublish", "unstage", "detach"}
	var want []string
	for _, what := range whats {
		r.driver.next(what, "pv", fault{code: codes.Internal}, fault{code: codes.Unavailable, does: true})
		want = append(want, what+" pv", what+" pv", what+" pv")
	}
	r.start()
	r.startAttachments()
	p := r.create("p", persistent("pv"))
	r.await("pod p mounted", 1)
	r.api.Finish(p)
	r.await("ControllerUnpublishVolume pv: OK", 1)
	r.await("pod p gone", 1)
	r.equal(want...)
	r.empty()
}

func TestPersistentVolumeOutlivesKubelets(t *testing.T) {
	r := newRig(t, whole)
	r.start()
	r.startAttachments()
	p := r.create("p", persistent("pv"))
	r.await("pod p mounted", 1)
	r.kubelet.Crash()
	r.start()
	r.await("pod p mounted", 2)
	// It is attached all the time, but staged again: nobody knows.
	r.equal("attach pv", "stage pv", "publish pv", "stage pv", "publish pv")

	hang := make(chan struct{})
	r.driver.next("unstage", "pv", fault{hangs: hang})
	r.api.Finish(p)
	r.awaitCall("unstage pv", 1)
	r.await("pod p gone", 1)
	// No pod's directory tells of it any more.
	r.kubelet.Crash()
	r.start()
	r.await("ControllerUnpublishVolume pv: OK", 1)
	if got := count(r.driver.seen(), "unstage pv"); got != 2 {
		t.Errorf("it was unstaged %d times, want 2", got)
	}
	r.empty()
	close(hang)
}

func TestVolumeInUseIsNotDetached(t *testing.T) {
	r := newRig(t, whole)
	r.start()
	r.startAttachments()
	p := r.create("p", persistent("pv"))
	r.await("pod p mounted", 1)
	r.kubelet.Crash()
	r.api.Finish(p)
	// While no kubelet lives, the last one's word stands.
	if list := r.api.toDetach(); len(list) > 0 {
		t.Error("a volume in use is to be detached")
	}
	r.start()
	r.await("ControllerUnpublishVolume pv: OK", 1)
	r.equal("attach pv", "stage pv", "publish pv", "unpublish pv", "unstage pv", "detach pv")
}

func TestStagingDirectoryOfNobody(t *testing.T) {
	r := newRig(t, whole)
	path := stagingPath(r.root, "soak.example.com", "old")
	if err := prepareStaging(path, volumeData{VolumeHandle: "old", DriverName: "soak.example.com"}); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.await("NodeUnstageVolume old: OK", 1)
	r.create("p", inline("a"))
	r.await("pod p mounted", 1)
	if _, err := os.Lstat(path); err == nil {
		t.Error("the staging path is left")
	}
}
