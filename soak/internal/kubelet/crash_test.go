package kubelet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestCrashAmongReorderedCalls: the kubelet crashes when an unpublish and a late repetition of the publish are answered, or one of
// them. Whichever of the two the driver did last, the next kubelet unpublishes the volume.
func TestCrashAmongReorderedCalls(t *testing.T) {
	// Either is over as soon as the other is answered, or the kubelet dead.
	const together, never = 0, time.Hour
	for _, row := range []struct {
		name      string
		overtaken time.Duration
		last      history.Method
		want      []string
	}{
		{"the publish came last", together, history.Publish, []string{"publish", "publish", "unpublish", "unpublish"}},
		{"the unpublish came last", together, history.Unpublish, []string{"publish", "publish", "unpublish", "unpublish"}},
		{"the publish was not sent", never, history.Unpublish, []string{"publish", "unpublish", "unpublish"}},
		{"the unpublish was not sent", -never, history.Publish, []string{"publish", "publish", "unpublish"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, nil)
			v := inline("a")
			v.Unpublish = workload.Call{Reordered: true, Overtaken: row.overtaken}
			p := r.create("p", v)
			r.start()
			r.await("pod p mounted", 1)
			k, crashed, other := r.kubelet, make(chan struct{}), make(chan struct{})
			if row.overtaken == together {
				r.driver.next(methodNames[row.last], "p-a", fault{hangs: other})
			}
			r.mu.Lock()
			r.onCall = func(_ *Volume, c history.Call) {
				switch c.Method {
				case row.last:
					go func() {
						defer close(crashed)
						k.Crash()
					}()
					<-k.dead
				case history.Publish, history.Unpublish:
					close(other)
				}
			}
			r.mu.Unlock()
			r.api.Finish(p)
			<-crashed
			r.mu.Lock()
			r.onCall = nil
			r.mu.Unlock()
			mounted, _ := r.driver.isMounted(p.Volumes[0].Story.Target)
			if want := row.last == history.Publish; mounted != want {
				t.Fatalf("after the crash it is mounted: %t, want %t", mounted, want)
			}
			r.start()
			r.await("pod p gone", 1)
			r.await("volume p-a unpublished", 1)
			got := r.methods()
			if end := got[len(got)-1]; end != "unpublish" {
				t.Errorf("the last call was %q, want unpublish", end)
			}
			slices.Sort(got)
			if !slices.Equal(got, row.want) {
				t.Errorf("calls %q, want %q", got, row.want)
			}
			if mounted, _ := r.driver.isMounted(p.Volumes[0].Story.Target); mounted {
				t.Error("it is still mounted")
			}
			r.empty()
		})
	}
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
