package hub

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// TestAsks: what a node asks is answered, in its order, and the node's name is that of its token.
func TestAsks(t *testing.T) {
	s := newStage(t).listen(nil)
	s.cluster.onAsk = func(node string, asks []api.OwnerAsk) (answers []api.OwnerAnswer) {
		for _, a := range asks {
			if a.Pod != "unknown" {
				answers = append(answers, api.OwnerAnswer{ID: a.ID, PodUID: a.PodUID, Owner: api.Owner{Verdict: "Confirmed", Name: node}})
			}
		}
		return answers
	}
	p := s.connect("n1", s.cluster.add("p1", "u1", "n1"), nil)
	// Also before the first whole summary.
	p.say(api.Summary{Asks: []api.OwnerAsk{{ID: "a", Namespace: "ci", Pod: "x", PodUID: "1"}}})
	p.say(api.Summary{Full: true, Asks: []api.OwnerAsk{{ID: "b", Pod: "unknown"}, {ID: "c", Pod: "y", PodUID: "2"}}})
	p.say(api.Summary{Asks: []api.OwnerAsk{{ID: strings.Repeat("d", mostField+1)}, {ID: "e"}}})
	var got []string
	for len(got) < 3 {
		select {
		case answers := <-p.owners:
			for _, a := range answers.Items {
				got = append(got, a.ID+"/"+a.PodUID+"/"+a.Owner.Name)
			}
		case <-time.After(patience):
			t.Fatalf("got only %q", got)
		}
	}
	if want := []string{"a/1/n1", "c/2/n1", "e//n1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAskBounds: a node that asks without end has a bounded queue and no more than one question at a
// time; the summaries are still read.
func TestAskBounds(t *testing.T) {
	s := newStage(t).listen(nil)
	var mu sync.Mutex
	var running, most, asked int
	release := make(chan struct{})
	s.cluster.onAsk = func(_ string, asks []api.OwnerAsk) []api.OwnerAnswer {
		mu.Lock()
		running++
		most, asked = max(most, running), asked+len(asks)
		mu.Unlock()
		<-release
		mu.Lock()
		running--
		mu.Unlock()
		return nil
	}
	p := s.connect("n1", s.cluster.add("p1", "u1", "n1"), nil)
	p.say(api.Summary{Full: true})
	for line := range 5 {
		var many []api.OwnerAsk
		for i := range 900 {
			many = append(many, api.OwnerAsk{ID: fmt.Sprint(line, "-", i), Namespace: "a", Pod: "b", PodUID: "c"})
		}
		p.say(api.Summary{Asks: many})
	}
	p.say(api.Summary{Holdings: []api.Holding{{Namespace: "last", Volumes: 1}}})
	s.wait("the last line", func() bool { return s.holds("last") })
	close(release)
	s.wait("the end of the questions", func() bool {
		c := s.find("n1").current()
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.asking
	})
	mu.Lock()
	defer mu.Unlock()
	if most != 1 || asked > mostAsks+asksAtOnce || asked < mostAsks {
		t.Errorf("%d questions in all, %d at once", asked, most)
	}
}
