package ephemeral

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// fakeGateway answers the questions of the test node.
type fakeGateway struct {
	h *testNode
	// answer is what it says; nil: it does not. after is how long it takes.
	answer *volume.Owner
	after  time.Duration
	asked  atomic.Int64
	// seen is the last question.
	seen volume.Record
}

func (g *fakeGateway) ask(r volume.Record) bool {
	g.asked.Add(1)
	g.seen = r
	if g.answer != nil {
		owner := *g.answer
		go func() {
			time.Sleep(g.after)
			if err := g.h.node.Own(g.h.t.Context(), r.ID, r.Pod, owner); err != nil {
				g.h.t.Errorf("own: %v", err)
			}
		}()
	}
	return true
}

// withTenants runs a test with a retained volume that a gateway has confirmed to be of namespace ns-1.
func withTenants(t *testing.T, test func(t *testing.T, h *testNode, g *fakeGateway)) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		g := &fakeGateway{h: h, after: 100 * time.Millisecond}
		h.askOwner = g.ask
		h.start()
		h.leaveBehind()
		h.own(nightly)
		test(t, h, g)
		synctest.Wait()
		time.Sleep(time.Second)
		h.stop()
	})
}

var successor = volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ns-2"}

// TestAttachToASuccessor: a namespace was deleted, and another one has its name. What a gateway has confirmed
// to be of the earlier one is attached only to pods that are known to be of the same.
func TestAttachToASuccessor(t *testing.T) {
	for name, tt := range map[string]struct {
		answer *volume.Owner
		want   error
	}{
		"the same":    {&volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ns-1", Kind: "Job", Name: "look", UID: "job-2"}, nil},
		"a successor": {&successor, volume.ErrNotFound},
		"no such pod": {&volume.Owner{Verdict: volume.Denied}, volume.ErrNotFound},
		"no answer":   {nil, volume.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			withTenants(t, func(t *testing.T, h *testNode, g *fakeGateway) {
				g.answer = tt.answer
				err := h.node.Publish(t.Context(), h.attaching())
				wantAttach(t, h, err, tt.want)
				if g.seen.Pod != lookingPod || g.seen.ID != lookingID || g.seen.Namespace != "default" || g.seen.PodName != "look" {
					t.Errorf("asked about %+v", g.seen)
				}
				if n := g.asked.Load(); n < 1 || n > int64(tenantWait/tenantAgain)+1 {
					t.Errorf("asked %d times", n)
				}
			})
		})
	}
}

// wantAttach checks whether the test's volume is attached, as an error says.
func wantAttach(t *testing.T, h *testNode, err, want error) {
	t.Helper()
	mounts := len(h.mounter.mounts())
	if want == nil {
		if err != nil || mounts != 1 {
			t.Errorf("%v, %d mounts", err, mounts)
		}
		return
	}
	wantError(t, err, want)
	if mounts != 0 {
		t.Errorf("mounts: %+v", h.mounter.mounts())
	}
	if errors.Is(want, volume.ErrUnavailable) && !strings.Contains(err.Error(), "see that the gateway runs") {
		t.Errorf("it says not what to do: %v", err)
	}
	if d, err := h.node.Describe(t.Context(), testID); err != nil || d.Record.Owner != nightly {
		t.Errorf("the volume is described as %+v, %v", d.Record, err)
	}
}

// TestAttachWithoutAGateway: what was confirmed once is not attached while no gateway can say whose the pod is,
// after a restart neither, and is once one can.
func TestAttachWithoutAGateway(t *testing.T) {
	withTenants(t, func(t *testing.T, h *testNode, g *fakeGateway) {
		publish := func() error { return h.node.Publish(t.Context(), h.attaching()) }
		for _, without := range []func(volume.Record) bool{nil, func(volume.Record) bool { return false }} {
			h.askOwner = without
			h.restart()
			began := time.Now()
			wantAttach(t, h, publish(), volume.ErrUnavailable)
			if time.Since(began) > 0 {
				t.Errorf("it waited %s for nobody", time.Since(began))
			}
		}
		h.askOwner = g.ask
		h.restart()
		g.answer = &volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ns-1"}
		wantAttach(t, h, publish(), nil)

		// What is attached stays so, with no gateway either.
		h.askOwner = nil
		h.restart()
		wantAttach(t, h, publish(), nil)
		h.detach()
		wantAttach(t, h, publish(), volume.ErrUnavailable)
	})
}

// TestLateTenant: the answer comes when the publish waits no more, and the kubelet's next one finds it. A pod
// that was denied is asked about again.
func TestLateTenant(t *testing.T) {
	withTenants(t, func(t *testing.T, h *testNode, g *fakeGateway) {
		publish := func() error { return h.node.Publish(t.Context(), h.attaching()) }
		g.answer, g.after = &volume.Owner{Verdict: volume.Denied}, time.Minute
		wantAttach(t, h, publish(), volume.ErrUnavailable)
		time.Sleep(time.Minute)
		wantAttach(t, h, publish(), volume.ErrNotFound)
		g.answer, g.after = &volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ns-1"}, time.Millisecond
		wantAttach(t, h, publish(), nil)
	})
}

// TestManyTenants: what pods cost is bounded, and those that are gone make room.
func TestManyTenants(t *testing.T) {
	pods, now := newTenantPods(), time.Now()
	for i := range mostTenantPods {
		if _, ok := pods.seen(volume.PodUID(fmt.Sprint(i)), now); !ok {
			t.Fatalf("pod %d is one too many", i)
		}
	}
	if _, ok := pods.seen("one more", now); ok {
		t.Error("there is no bound")
	}
	if pods.told("one more", successor) {
		t.Error("a gateway tells of a pod that nobody has asked about")
	}
	if _, ok := pods.seen("0", now.Add(tenantKept+1)); !ok {
		t.Error("a pod that is known is one too many")
	}
	if _, ok := pods.seen("one more", now.Add(tenantKept+1)); !ok || len(pods.all) != 2 {
		t.Errorf("%d pods are known", len(pods.all))
	}
}
