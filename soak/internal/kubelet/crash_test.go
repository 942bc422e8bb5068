package kubelet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

func TestCrashAndReconstruct(t *testing.T) {
	t.Run("desired volumes are published again", func(t *testing.T) {
		r := newRig(t, nil)
		r.start()
		p := r.create("p", inline("a"))
		r.await("pod p mounted", 1)
		r.kubelet.Crash()
		r.start()
		r.await("pod p mounted", 2)
		r.equal("publish p-a", "publish p-a")
		r.api.Finish(p)
		r.await("pod p gone", 1)
		r.empty()
	})
	t.Run("a pod ends meanwhile", func(t *testing.T) {
		r := newRig(t, nil)
		r.start()
		p := r.create("p", inline("a"))
		r.await("pod p mounted", 1)
		r.kubelet.Crash()
		r.api.Finish(p)
		r.start()
		r.await("pod p gone", 1)
		r.equal("publish p-a", "unpublish p-a")
		r.await("volume p-a unpublished", 1)
		r.empty()
	})
	t.Run("a pod ends meanwhile whose volume was half mounted", func(t *testing.T) {
		r := newRig(t, nil)
		r.driver.next("publish", "p-a", fault{hangs: make(chan struct{})})
		r.start()
		p := r.create("p", inline("a"))
		r.awaitCall("publish p-a", 1)
		r.kubelet.Crash()
		r.api.Finish(p)
		r.start()
		r.await("pod p gone", 1)
		r.equal("publish p-a", "unpublish p-a")
		// The call that the crash ended was told to nobody, but stands in the story.
		r.heardAll("NodeUnpublishVolume p-a: OK", "volume p-a unpublished", "pod p gone")
		story := strings.Join(p.Volumes[0].Story.Story(), "\n")
		if !strings.Contains(story, "the kubelet crashed") || strings.Contains(story, "without an answer") {
			t.Errorf("story\n%s", story)
		}
		r.empty()
	})
	t.Run("an unpublish was on its way", func(t *testing.T) {
		r := newRig(t, nil)
		r.driver.next("unpublish", "p-a", fault{hangs: make(chan struct{})})
		r.start()
		p := r.create("p", inline("a"))
		r.await("pod p mounted", 1)
		r.api.Finish(p)
		r.awaitCall("unpublish p-a", 1)
		r.kubelet.Crash()
		r.start()
		r.await("pod p gone", 1)
		r.equal("publish p-a", "unpublish p-a", "unpublish p-a")
		r.empty()
	})
	t.Run("a final error after a restart is not the last word", func(t *testing.T) {
		r := newRig(t, nil)
		r.driver.next("publish", "p-a", fault{}, fault{code: codes.Internal})
		r.onCall = func(v *Volume, c history.Call) {
			if c.Method == history.Publish && c.Err != nil {
				r.api.Finish(v.Pod)
			}
		}
		r.start()
		r.create("p", inline("a"))
		r.await("pod p mounted", 1)
		r.kubelet.Crash()
		r.start()
		r.await("pod p gone", 1)
		r.equal("publish p-a", "publish p-a", "unpublish p-a")
		r.await("volume p-a unpublished", 1)
		r.empty()
	})
	t.Run("a pod that nobody knows", func(t *testing.T) {
		r := newRig(t, nil)
		r.start()
		r.create("p", inline("a"))
		r.await("pod p mounted", 1)
		r.kubelet.Crash()
		r.api = &API{}
		r.start()
		r.await("pod p gone", 1)
		r.equal("publish p-a", "unpublish p-a")
		r.empty()
	})
	t.Run("a directory without a note", func(t *testing.T) {
		r := newRig(t, nil)
		r.start()
		p := r.create("p", inline("a"))
		r.await("pod p mounted", 1)
		r.kubelet.Crash()
		if err := os.Remove(filepath.Join(filepath.Dir(p.Volumes[0].Story.Target), "vol_data.json")); err != nil {
			t.Fatal(err)
		}
		r.api.Finish(p)
		r.start()
		r.await("volume p-a never mounted", 1)
		r.equal("publish p-a")
	})
}

// TestManyCrashes has a kubelet crash after each number of calls, in the first
// and the second half of a pod's life, and checks that the pod comes to its end
// all the same.
func TestManyCrashes(t *testing.T) {
	r := newRig(t, nil)
	v := inline("a")
	v.Publish = workload.Call{Repeat: workload.TwiceTogether}
	v.Unpublish = workload.Call{Reordered: true}
	p := r.create("p", v, inline("b"))
	live := func(calls int, enough string) {
		t.Helper()
		r.mu.Lock()
		before, told := len(r.calls), count(r.told, enough)
		r.mu.Unlock()
		r.start()
		if !r.until(func() bool { return len(r.calls)-before >= calls || count(r.told, enough) > told }) {
			t.Fatalf("there were no %d calls, but %q", calls, r.heard())
		}
		r.kubelet.Crash()
	}
	for calls := range 8 {
		live(calls, "pod p mounted")
	}
	r.api.Finish(p)
	for calls := range 4 {
		if !slices.Contains(r.heard(), "pod p gone") {
			live(calls, "pod p gone")
		}
	}
	r.start()
	r.await("pod p gone", 1)
	r.await("volume p-a unpublished", 1)
	r.await("volume p-b unpublished", 1)
	r.empty()
	if mounts := len(r.driver.mounts); mounts > 0 {
		t.Errorf("%d mounts are left", mounts)
	}
}
