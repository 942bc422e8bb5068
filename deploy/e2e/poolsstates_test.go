//go:build e2e

package e2e

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"
)

// testStates: a class without pools is Ready and asks no array. A pool goes through Configuring and Importing
// to Ready; one whose array does not fit is Incompatible, one that gives no answer Unreachable, and both say
// why. All heals when the array does.
func (p *poolsCluster) testStates() {
	b := p.startBeside("b")
	b.orders(http.MethodDelete, "/fake/counts", nil)
	p.classBeside()
	time.Sleep(5 * time.Second) // more than two intervals of the health checks: time to be wrong
	var asked map[string]int
	p.fakeInto(&asked, b.url, http.MethodGet, "/fake/counts", nil)
	if len(asked) > 0 {
		p.t.Errorf("a class without pools has its controller ask %v", asked)
	}

	b.delay("300ms") // each state is written before the next
	states := p.followStates()
	p.apply(b.pool(""))
	p.wantState("pool", "b", "Ready")
	p.eventually("the watch is told", func() error { return hasAll(strings.Join(states.of("b"), " "), []string{"Ready"}) })
	if had := states.of("b"); !slices.Equal(had, []string{"Configuring", "Importing", "Ready"}) {
		p.t.Errorf("the states of a new pool are %q", had)
	}
	b.heal()
	p.wantField("poolclass", besideClass, "{.status.counters.pools} {.status.counters.ready}", "1 1")

	twin := *b
	twin.name = "twin"
	p.apply(twin.pool(""))
	p.wantRefused("twin", "Incompatible", "Compatible", "SamePool", "is that of Pool b already")
	p.kubectl("delete", "pool", "twin", "--wait=true", "--timeout=120s")

	p.refuses(b, "Incompatible", "Compatible", "VersionTooOld", "19.08", func() {
		b.orders(http.MethodPatch, "/fake/settings", map[string]any{"version": "19.08"})
	}, func() { b.orders(http.MethodPatch, "/fake/settings", map[string]any{"version": "22.06-sp1-123"}) })
	p.refuses(b, "Incompatible", "Compatible", "NotThisArray", "the volumes are on", func() {
		b.orders(http.MethodPatch, "/fake/settings", map[string]any{"serial": 99})
	}, func() { b.orders(http.MethodPatch, "/fake/settings", map[string]any{"serial": b.serial}) })
	p.refuses(b, "Unreachable", "Reachable", "InvalidCredentials", "", func() {
		b.orders(http.MethodPatch, "/fake/settings", map[string]any{"token": "another"})
	}, func() { b.orders(http.MethodPatch, "/fake/settings", map[string]any{"token": "token"}) })
	p.refuses(b, "Unreachable", "Reachable", "BadAnswer", "", func() {
		b.orders(http.MethodPost, "/fake/faults", map[string]any{"kind": "html"})
	}, b.heal)
	p.refuses(b, "Unreachable", "Reachable", "NetworkError", "refused", func() { b.end(syscall.SIGKILL) },
		func() { b.start(strings.TrimPrefix(b.url, "http://")) })
	b.orders(http.MethodPost, "/fake/pools", map[string]any{"capacity": 50})
	p.wantRefused("b", "Incompatible", "Compatible", "SeveralPools", "name one in spec.vpsa.pool")
	p.kubectl("patch", "pool", "b", "--type=merge", "-p", `{"spec":{"vpsa":{"pool":"pool-00000001"}}}`)
	p.wantState("pool", "b", "Ready")
	p.dropBeside("b")
}

// refuses lets an array be in a way that a pool cannot use, and heals it.
func (p *poolsCluster) refuses(b *beside, state, condition, reason, words string, become, heal func()) {
	p.t.Helper()
	become()
	p.wantRefused(b.name, state, condition, reason, words)
	p.wantState("poolclass", besideClass, "Ready") // it takes volumes as soon as one pool does
	heal()
	p.wantState("pool", b.name, "Ready")
}

// wantRefused waits until a pool is in a state that says why: in the condition and in an Event.
func (p *poolsCluster) wantRefused(pool, state, condition, reason, words string) {
	p.t.Helper()
	p.wantState("pool", pool, state)
	p.wantField("pool", pool, `{.status.conditions[?(@.type=="`+condition+`")].reason}`, reason)
	p.wantEvent("Pool", pool, state, words)
}
