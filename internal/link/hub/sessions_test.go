package hub

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/katbox/katbox/internal/model/local"
)

const uuidA, uuidB = "0f8a4a52-1111-4222-8333-aaaaaaaaaaaa", "0f8a4a52-1111-4222-8333-bbbbbbbbbbbb"

// heard is what a controller was told.
type heard struct {
	mu   sync.Mutex
	what []string
	on   []local.Pools
}

func (h *heard) NodePools(node, _ string, on local.Pools, all []local.Pool) {
	h.add(on, fmt.Sprintf("%s has %d", node, len(all)))
}
func (h *heard) NodeAway(node string, on local.Pools) { h.add(on, node+" is away") }

func (h *heard) add(on local.Pools, what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.what, h.on = append(h.what, what), append(h.on, on)
}

func (h *heard) is(want ...string) func() bool {
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return slices.Equal(h.what, want)
	}
}

// newController returns a registry of a controller.
func newController(t *testing.T) (*stage, *heard) {
	s, h := newStage(t), &heard{}
	s.Owners, s.Pools = nil, h
	return s.listen(nil), h
}

func full(uuids ...string) string {
	all := make([]string, 0, len(uuids))
	for _, uuid := range uuids {
		all = append(all, fmt.Sprintf(`{"uuid":%q}`, uuid))
	}
	return `{"full":true,"pools":[` + strings.Join(all, ",") + "]}\n"
}

// TestSessions: a connection that is renewed is no news; a node is away when the last one has ended.
func TestSessions(t *testing.T) {
	s, h := newController(t)
	token := s.cluster.add("katbox-1", "uid-1", "n1")
	first := s.connect("n1", token, nil)
	first.lines <- "{}\n"
	first.lines <- full(uuidA)
	want := []string{"n1 has 1"}
	s.wait("its pools", h.is(want...))
	first.lines <- full(uuidA) // nothing is new
	first.lines <- full(uuidA, uuidB)
	want = append(want, "n1 has 2")
	s.wait("another pool", h.is(want...))
	second := s.connect("n1", token, nil)
	first.lines <- full(uuidB) // the newer one has told nothing yet
	want = append(want, "n1 has 1")
	s.wait("one pool", h.is(want...))
	second.lines <- full()
	want = append(want, "n1 has 0")
	s.wait("no pool", h.is(want...))
	first.isEnded(t)
	second.end()
	want = append(want, "n1 is away")
	s.wait("the end", h.is(want...))
	third := s.connect("n1", token, nil)
	third.lines <- full()
	want = append(want, "n1 has 0")
	s.wait("its return", h.is(want...))
	for i, on := range h.on[:len(want)-1] {
		if on != h.on[0] {
			t.Errorf("%s: asked in another way than before", want[i])
		}
	}
	if h.on[len(want)-1] == h.on[0] {
		t.Error("a node that was away is asked in the same way as before")
	}
	s.Close()
	third.isEnded(t)
	if !h.is(want...)() {
		t.Errorf("the end of the controller is told: %q", h.what)
	}
}

// TestNodesThatLieAboutPools are not believed, and their connections are closed.
func TestNodesThatLieAboutPools(t *testing.T) {
	s, h := newController(t)
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("0f8a4a52-1111-4222-8333-%012d", i)
	}
	for i, line := range []string{
		"garbage\n", full("../../etc"), full(uuidA, uuidA), full(many...), `{"full":true,"pools":[` + strings.Repeat("{},", 300_000) + "{}]}\n",
		`{"full":true,"pools":[{"uuid":"` + uuidA + `","free":-1}]}` + "\n", `{"full":true,"pools":{}}` + "\n",
		`{"full":true,"pools":[{"uuid":"` + uuidA + `","path":"` + strings.Repeat("x", 5000) + `"}]}` + "\n", strings.Repeat("x", 2*mostLine),
	} {
		name := fmt.Sprint("n", i)
		p := s.connect(name, s.cluster.add("katbox-"+name, "uid-"+name, name), nil)
		p.lines <- line
		p.isEnded(t)
	}
	if !h.is()() {
		t.Errorf("told %q", h.what)
	}
}
