package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// many returns nodes with a volume each.
func many(count int) *fakeNodes {
	nodes := &fakeNodes{}
	for i := range count {
		nodes.nodes = append(nodes.nodes, node(fmt.Sprintf("n%04d", i), record(fmt.Sprintf("v%d", i), i)))
	}
	return nodes
}

// after returns what a node does that takes this long to answer.
func after(d time.Duration) func(context.Context, api.Query) error {
	return func(ctx context.Context, _ api.Query) error {
		timer, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		<-timer.Done()
		return ctx.Err()
	}
}

// TestSilentNodes is T38: three of 5,000 nodes cost the time of one, and are named.
func TestSilentNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := many(5000)
		for _, i := range []int{7, 8, 9} {
			nodes.nodes[i].before = silentNode
		}
		f, _ := newFleet(t, nodes, nil)
		f.least = 5000
		began := time.Now()
		page, err := f.List(t.Context(), Request{Reader: everyone, Limit: 500})
		if took := time.Since(began); err != nil || took != nodeTime || len(page.Entries) != 500 {
			t.Errorf("%d entries after %v, %v", len(page.Entries), took, err)
		}
		if s := page.Fleet; s.Nodes != 5000 || s.Asked != 5000 || s.Answered != 4997 || s.MissingMore != 0 || len(s.Missing) != 3 ||
			s.Missing[0] != (Missing{Node: "n0007", Reason: NoAnswer}) {
			t.Errorf("fleet %+v", s)
		}
		want := "3 of 5000 nodes did not answer (n0007, n0008, n0009); their volumes are not in this list"
		if len(page.Warnings) != 1 || page.Warnings[0] != want {
			t.Errorf("warnings %q", page.Warnings)
		}
		// Those nodes answer again, but the list lacks what they had on the first page.
		for _, i := range []int{7, 8, 9} {
			nodes.nodes[i].before = nil
		}
		page, err = f.List(t.Context(), Request{Reader: everyone, Limit: 500, Continue: page.Continue})
		if err != nil || page.Fleet.Answered != 5000 || len(page.Fleet.Missing) != 3 || len(page.Warnings) != 1 || page.Warnings[0] != want {
			t.Errorf("the next page: %+v, warnings %q, %v", page.Fleet, page.Warnings, err)
		}
	})
}

// TestNobodyAnswers is T39: such a list is an error, also if the nodes are not asked any more.
func TestNobodyAnswers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		count int
		do    func(n *fakeNode)
		took  time.Duration
	}{
		{"few", 3, func(n *fakeNode) { n.before = silentNode }, nodeTime},
		{"many", 5000, func(n *fakeNode) { n.before = silentNode }, listTime},
		{"slow", 40, func(n *fakeNode) { n.before = after(nodeTime + 1) }, nodeTime},
		{"skipped", 40, func(n *fakeNode) { n.skip = "NotAnswering" }, 0},
		{"not known", 40, func(n *fakeNode) { n.before, n.quiet = silentNode, true }, nodeTime},
		{"errors", 40, func(n *fakeNode) { n.before = func(context.Context, api.Query) error { return errBroken } }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			nodes := many(tt.count)
			for _, n := range nodes.nodes {
				tt.do(n)
			}
			f, _ := newFleet(t, nodes, nil)
			began := time.Now()
			_, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "ci"})
			if took := time.Since(began); !errors.Is(err, ErrSilent) || took != tt.took || !strings.Contains(err.Error(), "n000") {
				t.Errorf("%s: %v after %v", tt.name, err, took)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("%s: the error has %d bytes", tt.name, len(err.Error()))
			}
			// A namespace without volumes is empty whatever the nodes do, if that is known.
			page, err := f.List(t.Context(), Request{Reader: everyone, Namespace: "empty"})
			if quiet := tt.name == "not known"; quiet != (err != nil) || len(page.Entries) > 0 {
				t.Errorf("%s: an empty namespace: %v, %v", tt.name, page.Entries, err)
			}
		})
	}
}

// TestNobodyIsConnected: such a list is an error that says since when.
func TestNobodyIsConnected(t *testing.T) { synctest.Test(t, testNobodyIsConnected) }

func testNobodyIsConnected(t *testing.T) {
	nodes := &fakeNodes{missing: []Missing{{"n1", epoch, NotConnected}, {"n2", epoch, NotConnected}}}
	f, _ := newFleet(t, nodes, nil)
	_, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "ci"})
	away := (*NotConnectedError)(nil)
	if !errors.As(err, &away) || len(away.Missing) != 2 ||
		err.Error() != "node n1 is not connected to this gateway since 2026-11-01T12:00:00Z, and 1 more" {
		t.Errorf("error %v", err)
	}
	// One that is there makes a list.
	nodes.nodes = append(nodes.nodes, node("n3"))
	page, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "ci"})
	if err != nil || page.Fleet.Nodes != 3 || page.Fleet.Asked != 0 || len(page.Fleet.Missing) != 2 || len(page.Warnings) != 1 {
		t.Errorf("with one node: %+v %q, %v", page.Fleet, page.Warnings, err)
	}
}

// TestSlowNodesDoNotHoldUpOthers: a third of the nodes takes almost all the time that a node has, and
// all are asked all the same.
func TestSlowNodesDoNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := many(3000)
		for i := range 1000 {
			nodes.nodes[3*i].before = after(1900 * time.Millisecond)
		}
		f, _ := newFleet(t, nodes, nil)
		f.least = 3000
		page, err := f.List(t.Context(), Request{Reader: everyone, Limit: 500})
		if err != nil || page.Fleet.Answered != 3000 || len(page.Entries) != 500 {
			t.Errorf("%d nodes answered: %v", page.Fleet.Answered, err)
		}
	})
}

// TestManyMissing: at most 20 nodes are named, and the others counted, on all pages.
func TestManyMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := many(100)
		for i := range 50 {
			nodes.nodes[2*i].before = silentNode
		}
		f, _ := newFleet(t, nodes, nil)
		for _, p := range all(t, f, Request{Reader: everyone, Limit: 7}) {
			if s := p.Fleet; len(s.Missing) != 20 || s.MissingMore != 30 || !strings.HasPrefix(p.Warnings[0], "50 of 100 nodes") ||
				!strings.Contains(p.Warnings[0], "n0038, and 30 more); their") {
				t.Fatalf("%+v, %q", s, p.Warnings)
			}
		}
	})
}

// TestReaderLeaves: a list ends when nobody waits for it.
func TestReaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := many(10)
		nodes.nodes[3].before = silentNode
		f, _ := newFleet(t, nodes, nil)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, err := f.List(ctx, Request{Reader: everyone})
		if took := time.Since(began); !errors.Is(err, context.Canceled) || took != time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// TestBusyNodes: a node that answers too many others is asked again, as long as there is time.
func TestBusyNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := many(10)
		for i, times := range map[int]int{3: 4, 5: 1000} {
			nodes.nodes[i].before = func(context.Context, api.Query) error {
				if times--; times >= 0 {
					return &api.Error{Status: api.Status{Code: 429, Reason: api.TooManyRequests}}
				}
				return nil
			}
		}
		f, _ := newFleet(t, nodes, nil)
		page, err := f.List(t.Context(), Request{Reader: everyone})
		if err != nil || len(page.Entries) != 9 || !slices.Equal(page.Fleet.Missing, []Missing{{Node: "n0005", Reason: NoAnswer}}) {
			t.Errorf("%d entries, %+v, %v", len(page.Entries), page.Fleet, err)
		}
	})
}
