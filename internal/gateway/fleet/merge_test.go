package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// seeds is how many crowds TestMerge has. KATBOX_SEEDS sets another number.
func seeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("KATBOX_SEEDS"), 10, 32); err == nil {
		return n
	}
	return 60
}

// TestMerge is T40: over nodes of any kind, while volumes come and go, a list shows no volume twice and
// none out of order, and all that were there all the time, except for those of the nodes that it names.
func TestMerge(t *testing.T) {
	for seed := range seeds() {
		synctest.Test(t, func(t *testing.T) { newCrowd(t, seed).check(t) })
		if t.Failed() {
			return
		}
	}
}

// crowd is a fleet in which volumes come and go.
type crowd struct {
	seed  uint64
	nodes *fakeNodes
	// next numbers the volumes, and now is when the next one is retained, in seconds after the epoch.
	next, now int
	// moved are the volumes that were not there all the time.
	moved map[volume.ID]bool
	// least is how many nodes a page asks at least.
	least int
	// since is what a node says is the newest that it holds, and does not say the truth: what it has above that may be missed.
	since map[string]time.Time
	// random is for what happens in the test; each node has its own for what it does.
	random *rand.Rand
	r      Request
}

func newCrowd(t *testing.T, seed uint64) *crowd {
	c := &crowd{
		seed: seed, nodes: &fakeNodes{}, moved: map[volume.ID]bool{}, since: map[string]time.Time{},
		random: rand.New(rand.NewPCG(seed, 1)), now: 10_000,
	}
	c.r = Request{Reader: everyone, Namespace: []string{"ci", "", home}[c.random.IntN(3)], Limit: 1 + c.random.IntN(40)}
	if c.random.IntN(3) == 0 {
		c.r.Limit = 1 + c.random.IntN(3)
	}
	if c.r.Namespace == "ci" && c.random.IntN(2) == 0 {
		c.r.Reader = tenant
	}
	if c.random.IntN(4) == 0 {
		c.r.Keep = func(e Entry) bool { return e.Volume.ID[len(e.Volume.ID)-1] == '7' }
	}
	spread := 1 + c.random.IntN(9_000) // few seconds: many volumes with the same time
	c.least = []int{1, 5, 1000}[c.random.IntN(3)]
	failing := 0
	for i := range 1 + c.random.IntN([]int{30, 30, 60}[c.random.IntN(3)]) {
		n := node(fmt.Sprintf("n%d", i))
		c.nodes.nodes = append(c.nodes.nodes, n)
		own := rand.New(rand.NewPCG(seed, uint64(i)+2)) // used under the lock of the node
		if c.random.IntN(3) == 0 {
			most := 1 + c.random.IntN(5)
			n.page = func() int { return 1 + own.IntN(most) }
		}
		for range c.random.IntN([]int{1, 4, 10, 60}[c.random.IntN(4)]) {
			n.add(c.volume(c.random.IntN(spread)))
		}
		n.quiet = c.random.IntN(10) == 0
		c.speak(n, spread)
		if failing < mostMissing-2 && c.random.IntN(8) == 0 {
			failing++
			often := 2 + c.random.IntN(4)
			failures := rand.New(rand.NewPCG(seed, uint64(i)+1000))
			n.before = func(ctx context.Context, q api.Query) error {
				n.mu.Lock()
				fails, silent := failures.IntN(often) == 0, failures.IntN(5) == 0
				n.mu.Unlock()
				switch {
				case fails && silent:
					return silentNode(ctx, q)
				case fails:
					return errBroken
				}
				return nil
			}
		}
	}
	// The same time and ID on several nodes: only a node that lies has such, and it harms no other.
	for _, n := range c.nodes.nodes {
		if c.random.IntN(3) == 0 {
			n.add(record("twin7", spread/2))
		}
	}
	if c.random.IntN(5) == 0 {
		c.nodes.missing = append(c.nodes.missing, Missing{Node: "gone", Reason: NotConnected, Since: epoch})
	}
	t.Logf("seed %d: %d nodes, namespace %q, limit %d", seed, len(c.nodes.nodes), c.r.Namespace, c.r.Limit)
	return c
}

// speak decides what a node says of its newest volume: the truth, or else nothing, or something newer or older, as long as the list takes.
func (c *crowd) speak(n *fakeNode, spread int) {
	at := epoch.Add(time.Duration(c.random.IntN(2*spread)) * time.Second)
	switch c.random.IntN(8) {
	case 0:
		at = time.Time{}
	case 1:
		c.since[n.name] = at
	default:
		return
	}
	n.says = func(h *api.Holding) { h.Newest = at }
}

// volume returns a new volume.
func (c *crowd) volume(seconds int) volume.Record {
	c.next++
	r := record(fmt.Sprintf("v%d", c.next), seconds)
	switch c.random.IntN(8) {
	case 0:
		r.Owner.NamespaceUID = "ci-1" // of an earlier namespace
	case 1:
		r.Owner = volume.Owner{Verdict: volume.Denied}
	case 2:
		r.Namespace, r.Owner = "", volume.Owner{}
	case 3:
		r.Namespace, r.Owner = home, volume.Owner{}
	case 4:
		r.Owner = volume.Owner{}
	}
	return r
}

// happen lets some volumes come and go.
func (c *crowd) happen() {
	for range c.random.IntN(4) {
		n := c.nodes.nodes[c.random.IntN(len(c.nodes.nodes))]
		c.now++
		switch c.random.IntN(3) {
		case 0:
			r := c.volume(c.now)
			c.moved[r.ID] = true
			n.add(r)
			continue
		case 1:
			if len(n.volumes) > 0 { // the oldest expires
				c.moved[n.remove(len(n.volumes)-1).ID] = true
			}
			continue
		}
		if len(n.volumes) > 0 { // one is used again
			r := n.remove(c.random.IntN(len(n.volumes)))
			c.moved[r.ID] = true
			r.Unpublished = epoch.Add(time.Duration(c.now) * time.Second)
			n.add(r)
		}
	}
}

// expected returns the volumes that the list has to show: node and ID.
func (c *crowd) expected() map[string]bool {
	want := map[string]bool{}
	for _, n := range c.nodes.nodes {
		for _, r := range n.volumes {
			v := describe(r, n.name)
			foreign := r.Namespace == "" || !standardNamespaces[r.Namespace].Owns(r.Owner, r.Published)
			selected := c.r.Namespace == "" || r.Namespace == c.r.Namespace || r.Namespace == "" && c.r.Namespace == home
			if since, lies := c.since[n.name]; lies && r.Unpublished.After(since) {
				continue
			}
			if selected && (c.r.Reader.Everywhere || !foreign) && (c.r.Keep == nil || c.r.Keep(Entry{Volume: v})) && !c.moved[r.ID] {
				want[n.name+"/"+string(r.ID)] = true
			}
		}
	}
	return want
}

// check reads the whole list.
func (c *crowd) check(t *testing.T) {
	f, dropped := newFleet(t, c.nodes, nil)
	f.least = c.least
	var last place
	var missing []string
	seen := map[string]bool{}
	r, most := c.r, 0
	for pages, again := 1, 0; ; pages++ {
		page, err := f.List(t.Context(), r)
		if err != nil { // all nodes failed; the reader tries again
			if again++; again > 10_000 || !errors.Is(err, ErrSilent) {
				t.Fatalf("seed %d, page %d: %v", c.seed, pages, err)
			}
			continue
		}
		if len(page.Entries) > c.r.Limit {
			t.Errorf("seed %d: a page of %d entries", c.seed, len(page.Entries))
		}
		most = max(most, len(page.Entries))
		for _, e := range page.Entries {
			at := placeOf(&e.Volume)
			if !last.isTop() && at.compare(last) >= 0 {
				t.Errorf("seed %d: %v follows %v", c.seed, at, last)
			}
			last = at
			seen[e.Volume.Node+"/"+e.Volume.ID] = true
		}
		named := namesOf(page.Fleet.Missing)
		for _, name := range missing {
			if !slices.Contains(named, name) {
				t.Errorf("seed %d: page %d does not say any more that %s is missing", c.seed, pages, name)
			}
		}
		if missing = named; page.Fleet.MissingMore > 0 {
			t.Fatalf("seed %d: so many nodes are missing that the test cannot tell", c.seed)
		}
		if r.Continue = page.Continue; r.Continue == "" {
			break
		}
		if pages > 20_000 {
			t.Fatalf("seed %d: the list does not end", c.seed)
		}
		c.happen()
	}
	for want := range c.expected() {
		var n string
		for i := range want {
			if want[i] == '/' {
				n = want[:i]
			}
		}
		if !seen[want] && !slices.Contains(missing, n) {
			t.Errorf("seed %d: %s is lost", c.seed, want)
		}
	}
	if dropped() > 0 {
		t.Errorf("seed %d: %d entries of honest nodes were left out", c.seed, dropped())
	}
}

func namesOf(missing []Missing) (names []string) {
	for _, m := range missing {
		names = append(names, m.Node)
	}
	return names
}

// TestSkew: one of many nodes has all of the newest volumes, and the page is full all the same, for the
// price of a few pages.
func TestSkew(t *testing.T) { synctest.Test(t, testSkew) }

func testSkew(t *testing.T) {
	nodes := &fakeNodes{}
	for i := range 1000 {
		n := node(fmt.Sprintf("n%d", i))
		for j := range 4 {
			n.add(record(fmt.Sprintf("old-%d-%d", i, j), j*1000+i))
		}
		nodes.nodes = append(nodes.nodes, n)
	}
	for i := range 2000 {
		nodes.nodes[500].add(record(fmt.Sprintf("new-%d", i), 10_000+i))
	}
	f, _ := newFleet(t, nodes, nil)
	page, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "ci", Limit: 500})
	if err != nil || len(page.Entries) != 500 || page.Entries[499].Volume.ID != "new-1500" {
		t.Fatalf("%d entries, %v", len(page.Entries), err)
	}
	queries, volumes := 0, 0
	for _, n := range nodes.nodes {
		q, v := n.asked()
		queries, volumes = queries+q, volumes+v
	}
	if queries > 1300 || volumes > 2*1000+8*500+1000 {
		t.Errorf("%d queries for %d volumes", queries, volumes)
	}
	if got := *page.Remaining; got != 5500 {
		t.Errorf("%d remain, want 5,500", got)
	}
}

// TestPagesAreFull: a reader of equal nodes gets full pages but for the last.
func TestPagesAreFull(t *testing.T) { synctest.Test(t, testPagesAreFull) }

func testPagesAreFull(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	nodes := &fakeNodes{}
	for i := range 200 {
		n := node(fmt.Sprintf("n%d", i))
		for j := range 50 {
			n.add(record(fmt.Sprintf("v-%d-%d", i, j), random.IntN(1_000_000)))
		}
		nodes.nodes = append(nodes.nodes, n)
	}
	f, _ := newFleet(t, nodes, nil)
	pages := all(t, f, Request{Reader: everyone, Limit: 500})
	short := 0
	for _, p := range pages[:20] {
		if len(p.Entries) < 500 {
			short++
		}
	}
	if short > 2 || len(pages) > 23 {
		t.Errorf("%d of %d pages are short", short, len(pages))
	}
}
