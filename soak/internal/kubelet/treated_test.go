package kubelet

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// TestTreatedCalls is about whole lives of volumes whose calls are treated.
func TestTreatedCalls(t *testing.T) {
	const pub, unpub = "publish p-a", "unpublish p-a"
	// Far longer than the first of two calls takes to begin.
	const overtaken = time.Second
	for _, row := range []struct {
		name      string
		publish   workload.Call
		unpublish workload.Call
		faults    map[string][]fault
		want      []string
	}{
		{"as usual", workload.Call{}, workload.Call{}, nil, []string{pub, unpub}},
		{"doubled", workload.Call{Repeat: workload.TwiceTogether}, workload.Call{Repeat: workload.TwiceTogether}, nil,
			[]string{pub, pub, unpub, unpub}},
		{"in turn", workload.Call{Repeat: workload.TwiceInTurn}, workload.Call{Repeat: workload.TwiceInTurn}, nil,
			[]string{pub, pub, unpub, unpub}},
		{"doubled with an error", workload.Call{Repeat: workload.TwiceTogether}, workload.Call{},
			map[string][]fault{"publish": {{code: codes.Aborted}}},
			[]string{pub, pub, pub, unpub}},
		{"given up", workload.Call{CancelAfter: time.Millisecond}, workload.Call{CancelAfter: time.Millisecond},
			nil,
			[]string{pub, pub, unpub, unpub}},
		{"overtaken after", workload.Call{}, workload.Call{Reordered: true, Overtaken: overtaken}, nil,
			[]string{pub, unpub, pub, unpub}},
		{"overtaken before", workload.Call{}, workload.Call{Reordered: true, Overtaken: -overtaken}, nil,
			[]string{pub, pub, unpub, unpub}},
		{"overtaken, and the last one fails", workload.Call{}, workload.Call{Reordered: true, Overtaken: overtaken},
			map[string][]fault{"unpublish": {{}, {code: codes.Internal}}},
			[]string{pub, unpub, pub, unpub, unpub}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, nil)
			for what, faults := range row.faults {
				r.driver.next(what, "p-a", faults...)
			}
			if row.publish.CancelAfter > 0 {
				r.hangOnlyTheFirst(history.Publish, history.Unpublish)
			}
			r.start()
			v := inline("a")
			v.Publish, v.Unpublish = row.publish, row.unpublish
			p := r.create("p", v)
			r.await("pod p mounted", 1)
			r.api.Finish(p)
			r.await("pod p gone", 1)
			// Not all that was given up reached the driver.
			var got []string
			for _, line := range r.methods() {
				got = append(got, line+" p-a")
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("calls %q, want %q", got, row.want)
			}
			r.empty()
		})
	}
}

// methodNames is what the driver calls them.
var methodNames = map[history.Method]string{history.Publish: "publish", history.Unpublish: "unpublish"}

// hangOnlyTheFirst has calls for the volume p-a hang until their client gives
// one of them up: one that was given up early may not even reach the driver.
func (r *rig) hangOnlyTheFirst(methods ...history.Method) {
	over := make(map[history.Method]chan struct{})
	for _, m := range methods {
		over[m] = make(chan struct{})
		r.driver.next(methodNames[m], "p-a", fault{hangs: over[m]})
	}
	r.onCall = func(_ *Volume, c history.Call) {
		if c.Cancelled {
			close(over[c.Method])
		}
	}
}

// methods are the calls that were told, in the order in which they were sent.
func (r *rig) methods() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := slices.DeleteFunc(slices.Clone(r.calls), func(c history.Call) bool { return !c.Method.OfVolume() })
	slices.SortStableFunc(calls, func(a, b history.Call) int { return a.From.Compare(b.From) })
	var list []string
	for _, c := range calls {
		list = append(list, methodNames[c.Method])
	}
	return list
}

func TestGivenUpCallIsMarked(t *testing.T) {
	r := newRig(t, nil)
	r.hangOnlyTheFirst(history.Publish)
	r.start()
	v := inline("a")
	v.Publish.CancelAfter = time.Millisecond
	r.create("p", v)
	r.await("pod p mounted", 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	var got []bool
	for _, c := range r.calls {
		if c.Method == history.Publish {
			got = append(got, c.Cancelled)
			if c.Cancelled != (c.Code() == codes.Canceled) {
				t.Errorf("a call with the code %s is marked as cancelled: %t", c.Code(), c.Cancelled)
			}
		}
	}
	if !slices.Equal(got, []bool{true, false}) {
		t.Errorf("cancelled %v, want the first of two", got)
	}
}

func TestDoubledPublishOfAPodThatEnds(t *testing.T) {
	r := newRig(t, nil)
	// One of the two never succeeds; the pod's end is the end of it.
	bad := fault{code: codes.Internal}
	r.driver.next("publish", "p-a", append([]fault{{}}, slices.Repeat([]fault{bad}, 100_000)...)...)
	r.start()
	v := inline("a")
	v.Publish.Repeat = workload.TwiceTogether
	p := r.create("p", v)
	r.awaitCall("publish p-a", 4)
	r.api.Finish(p)
	r.await("pod p gone", 1)
	r.await("volume p-a unpublished", 1)
	if got := r.heard(); slices.Contains(got, "pod p mounted") {
		t.Errorf("it counted as mounted: %q", got)
	}
	r.empty()
}
