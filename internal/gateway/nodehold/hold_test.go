package nodehold

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/katbox/katbox/internal/testing/metricstest"
)

// TestHold: a node is held while volumes wait, by one write of two replicas, and another one when the last is up. Two hours
// later nothing is left of it.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a", "b")
		c.start(t)
		c.start(t)
		c.after(t, time.Minute, "a", "")
		c.wait("a", 2)
		c.after(t, 2*lookEvery, "a", allHeld)
		metricstest.Of(t, c.metrics).Want(t, "holds", metricstest.Values{"katbox_gateway_nodes_held": 1})
		c.wait("a", 1)
		c.after(t, 5*time.Minute, "a", allHeld)
		c.wait("a", 0)
		c.after(t, 2*lookEvery, "a", "mark")
		if c.writes != 2 {
			t.Errorf("%d writes, want one at the beginning and one at the end", c.writes)
		}
		c.after(t, window+listEvery, "a", "")
		c.after(t, 0, "b", "")
		reads := c.reads
		c.after(t, time.Hour, "a", "")
		if c.reads != reads || len(c.log) > 0 {
			t.Errorf("%d reads of nodes on which nothing waits; the log is %q", c.reads-reads, c.log)
		}
	})
}

// TestHoldEnds: after ten minutes, with a line that names the node; and after twenty in two hours where pods keep failing.
func TestHoldEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a")
		c.start(t)
		c.wait("a", 1)
		c.after(t, 9*time.Minute, "a", allHeld)
		c.after(t, time.Minute, "a", "mark")
		if len(c.log) != 1 || !strings.Contains(c.log[0], `"a"`) || !strings.Contains(c.log[0], "are lost") {
			t.Errorf("the log is %q", c.log)
		}
		held := longest - margin
		for range 11 {
			c.wait("a", 1)
			time.Sleep(10 * time.Second)
			for range 9 * 60 / 10 {
				if strings.Contains(c.has("a"), "scale") {
					held += 10 * time.Second
				}
				time.Sleep(10 * time.Second)
			}
		}
		if held > most || held < most-time.Minute {
			t.Errorf("within two hours it was held for %s", held)
		}
	})
}

// TestAdministrator: what an administrator has set stays, and what one takes away does not come back.
func TestAdministrator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a", "b", "c")
		c.annotate("a", map[string]string{DoNotDisrupt: Set, ScaleDownDisabled: "false"})
		c.annotate("b", map[string]string{DoNotDisrupt: Set})
		c.start(t)
		for _, name := range []string{"a", "b", "c"} {
			c.wait(name, 1)
		}
		c.after(t, time.Minute, "a", "scale=false disrupt mark")
		c.after(t, 0, "b", allHeld)
		c.annotate("c", map[string]string{ScaleDownDisabled: "-", DoNotDisrupt: "5m"})
		c.after(t, time.Minute, "c", "disrupt=5m mark")
		for _, name := range []string{"a", "b", "c"} {
			c.wait(name, 0)
		}
		c.after(t, time.Minute, "a", "scale=false disrupt mark")
		c.after(t, 0, "b", "disrupt mark")
		c.after(t, 0, "c", "disrupt=5m mark")
		c.after(t, 3*time.Hour, "a", "scale=false disrupt")
	})
}

// TestStale: what an earlier gateway has left ends in time, whether the node is heard or not; and what it was held counts.
func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a", "b", "c")
		first := c.start(t)
		for _, name := range []string{"a", "b", "c"} {
			c.wait(name, 1)
		}
		c.after(t, 5*time.Minute, "a", allHeld)
		first()
		// The next one hears nothing of b, and a and c go on.
		c.away("b")
		c.wait("a", 0)
		c.annotate("c", map[string]string{Marker: "?"})
		c.start(t)
		c.after(t, lookEvery, "a", "mark")
		c.after(t, 0, "b", allHeld)
		c.after(t, 5*time.Minute, "b", "mark")
		// Nothing is known of who has set these any more.
		if has := c.has("c"); !strings.HasPrefix(has, "scale disrupt") {
			t.Errorf("c has %q", has)
		}
	})
}

// TestConflict: what another client writes in between is seen before anything is written.
func TestConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a")
		c.start(t)
		c.before = func() { c.annotate("a", map[string]string{ScaleDownDisabled: Set}) }
		c.wait("a", 1)
		c.after(t, time.Minute, "a", allHeld)
		c.wait("a", 0)
		c.after(t, time.Minute, "a", "scale mark")
	})
}

// TestNodeGone: a Node that is deleted is forgotten, and one that is made anew is another one.
func TestNodeGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a")
		c.start(t)
		c.wait("a", 1)
		c.after(t, time.Minute, "a", allHeld)
		c.delete("a")
		c.away("a")
		time.Sleep(time.Hour)
		c.annotate("a", nil)
		c.after(t, time.Hour, "a", "")
		if len(c.log) > 0 {
			t.Errorf("the log is %q", c.log)
		}
	})
}

// TestRefused: an API server that refuses is asked less and less often, and the log says so once.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a")
		c.start(t)
		time.Sleep(time.Minute)
		c.answers(apierrors.NewForbidden(Resource.GroupResource(), "a", errors.New("no right")))
		c.wait("a", 1)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if c.reads > 20 || len(c.log) != 1 || !strings.Contains(c.log[0], "no right") {
			t.Errorf("%d reads, the log is %q", c.reads, c.log)
		}
		c.answers(nil)
		c.after(t, 2*time.Minute, "a", allHeld)
	})
}

// TestOneNodeIsRefused: those that cannot be annotated keep no other one from being held, nor from being let go.
func TestOneNodeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"a", "b", "c", "d", "e", "f", "g", "z"}
		c := newCluster(names...)
		c.refused = map[string]error{}
		for _, name := range names[:7] {
			c.refused[name] = errors.New("a webhook says no")
		}
		c.start(t)
		for _, name := range names {
			c.wait(name, 1)
		}
		c.after(t, time.Minute, "z", allHeld)
		metricstest.Of(t, c.metrics).Want(t, "holds", metricstest.Values{"katbox_gateway_nodes_held": 1})
		c.wait("z", 0)
		c.after(t, 5*time.Minute, "z", "mark")
		if len(c.log) != 1 || !strings.Contains(c.log[0], "node e") || !strings.Contains(c.log[0], "and 2 more") {
			t.Errorf("the log is %q", c.log)
		}
	})
}

// TestRelease: all that gateways have set is removed, and nothing else.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a", "b", "c")
		c.annotate("b", map[string]string{DoNotDisrupt: Set})
		stop := c.start(t)
		c.wait("a", 1)
		c.wait("b", 1)
		c.after(t, time.Minute, "b", allHeld)
		stop()
		released, err := Release(t.Context(), c.config())
		if err != nil || released != 2 {
			t.Errorf("%d nodes, %v", released, err)
		}
		c.after(t, 0, "a", "")
		c.after(t, 0, "b", "disrupt")
		away := errors.New("away")
		c.answers(away)
		if _, err := Release(t.Context(), c.config()); !errors.Is(err, away) {
			t.Errorf("an API server that is away: %v", err)
		}
	})
}

// TestConfig: each field that is required.
func TestConfig(t *testing.T) {
	c := newCluster()
	for _, broken := range []Config{{Nodes: c}, {Waiting: c.heard}} {
		if _, err := New(broken); err == nil {
			t.Errorf("%+v is taken", broken)
		}
	}
}
