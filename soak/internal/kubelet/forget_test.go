package kubelet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/soak/internal/workload"
)

func TestForgetWhileAPublishIsOnItsWay(t *testing.T) {
	for _, row := range []struct {
		name string
		call workload.Call
	}{{"once", workload.Call{}}, {"doubled", workload.Call{Repeat: workload.TwiceInTurn}}} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, nil)
			hang := make(chan struct{})
			r.driver.next("publish", "p-a", fault{hangs: hang})
			r.start()
			v := inline("a")
			v.Publish = row.call
			p := r.create("p", v)
			r.awaitCall("publish p-a", 1)
			// The driver has made the target already.
			if err := os.Mkdir(p.Volumes[0].Story.Target, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := r.kubelet.Forget(p); err != nil {
				t.Fatal(err)
			}
			r.empty()
			r.await("volume p-a forgotten", 1)
			// Another pod's mount takes the reconciler some passes.
			r.create("q", inline("b"))
			r.await("pod q mounted", 1)
			if slices.Contains(r.heard(), "pod p gone") {
				t.Error("the pod is gone while a call for it is on its way")
			}
			if err := r.kubelet.Forget(p); err == nil {
				t.Error("it was forgotten twice")
			}
			close(hang)
			r.await("pod p gone", 1)
			if slices.Contains(r.heard(), "pod p mounted") || slices.Contains(r.driver.seen(), "unpublish p-a") {
				t.Errorf("told %q, called %q", r.heard(), r.driver.seen())
			}
			story := strings.Join(p.Volumes[0].Story.Story(), "\n")
			if !strings.Contains(story, "kubelet forgot it: ") {
				t.Errorf("story\n%s", story)
			}
			// The driver answered with an error because the directory was gone.
			r.driver.wrong = nil
		})
	}
}

func TestForgetLeavesMounts(t *testing.T) {
	r := newRig(t, nil)
	r.start()
	p := r.create("p", inline("a"))
	r.await("pod p mounted", 1)
	if err := r.kubelet.Forget(p); err != nil {
		t.Fatal(err)
	}
	r.await("pod p gone", 1)
	if _, err := os.Lstat(p.Volumes[0].Story.Target); err != nil {
		t.Errorf("a mounted target was removed: %v", err)
	}
	r.kubelet.Crash()
	r.start()
	q := r.create("q", inline("a"))
	r.await("pod q mounted", 1)
	r.equal("publish p-a", "publish q-a")
	if err := r.kubelet.Forget(newPod(workload.Pod{})); err == nil {
		t.Error("a pod that is not on the node was forgotten")
	}
	r.kubelet.Crash()
	if err := r.kubelet.Forget(q); err == nil {
		t.Error("a dead kubelet forgot a pod")
	}
}

func TestForgottenPodAfterACrash(t *testing.T) {
	r := newRig(t, nil)
	r.driver.next("publish", "p-a", fault{hangs: make(chan struct{})})
	r.start()
	p := r.create("p", inline("a"))
	r.awaitCall("publish p-a", 1)
	if err := r.kubelet.Forget(p); err != nil {
		t.Fatal(err)
	}
	r.kubelet.Crash()
	r.start()
	r.await("pod p gone", 1)
	r.equal("publish p-a")
	r.heardAll("volume p-a forgotten", "pod p gone")
}

// TestLeaveBehind: the target goes, the file beside it stays, and no later kubelet unpublishes the volume. The pod may
// come again.
func TestLeaveBehind(t *testing.T) {
	r := newRig(t, nil)
	r.start()
	p := r.create("p", inline("a"))
	r.await("pod p mounted", 1)
	target := p.Volumes[0].Story.Target
	if err := r.kubelet.LeaveBehind(p); err != nil {
		t.Fatal(err)
	}
	r.await("pod p gone", 1)
	if _, err := os.Lstat(target); err == nil {
		t.Error("the target is there")
	}
	if _, err := readVolumeData(filepath.Dir(target)); err != nil {
		t.Error(err)
	}
	r.kubelet.Crash()
	r.start()
	r.create("q", inline("a"))
	r.await("pod q mounted", 1)
	r.equal("publish p-a", "publish q-a")
}
