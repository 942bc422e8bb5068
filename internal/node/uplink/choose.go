package uplink

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
)

// Replicas of a gateway ask one another, so a node connects to two of them: the first two in an order of their addresses that is
// another one for each node, and that stays as it is when others come and go. What is counted among the two is a
// connection, or the first attempt to make one. An address that cannot be reached is not, nor one that leads to a replica
// that has a connection already, nor a replica that does not ask others: then the next one has its turn, too.

// enough is how many replicas of a gateway a node connects to.
const enough = 2

// forwards reports whether a replica says that it asks others.
func forwards(answer http.Header) bool { return answer.Get(api.HeaderForwards) != "" }

// weight is the place of an address in the order of a node: the greatest comes first.
func weight(node string, a netip.AddrPort) uint64 {
	sum := sha256.Sum256([]byte(node + " " + a.String()))
	return binary.BigEndian.Uint64(sum[:])
}

// rank puts addresses into the order of a node.
func rank(node string, all []netip.AddrPort) []netip.AddrPort {
	return slices.SortedFunc(slices.Values(all), func(a, b netip.AddrPort) int {
		return cmp.Or(cmp.Compare(weight(node, b), weight(node, a)), a.Compare(b))
	})
}

// choose makes links for the addresses that the node is to connect to, and tells those that it is not to connect to any
// more: that of an address that is gone makes no new connection, and one beyond those that are enough gives up the one
// that it has.
func (u *Uplink) choose(ctx context.Context) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stopped {
		return
	}
	targets := map[netip.AddrPort]target{}
	for _, t := range u.targets {
		for _, a := range u.found[t] {
			if _, twice := targets[a]; !twice {
				targets[a] = t
			}
		}
	}
	for a, l := range u.links {
		if _, there := targets[a]; !there {
			l.wanted = false
		}
	}
	counted, connected := 0, 0
	for _, a := range rank(u.cfg.Node, slices.Collect(maps.Keys(targets))) {
		l := u.links[a]
		full := u.peer.enough > 0 && counted >= u.peer.enough
		switch {
		case l == nil && full:
			continue
		case l == nil:
			l = u.newLink(targets[a], a, connected > 0)
			u.tasks.Go(func() { l.run(ctx) })
		}
		l.wanted = !full
		// Not before the others are connected: they may not be reachable.
		over := full && connected >= u.peer.enough
		if over && !l.over {
			signal(l.surplus)
		}
		l.over = over
		if l.counts() {
			counted++
		}
		if l.counts() && !l.since.IsZero() {
			connected++
		}
	}
}

// newLink returns a link that is wanted. Where another one is connected there is time for it: many nodes may come at once.
// mu is held.
func (u *Uplink) newLink(t target, a netip.AddrPort, another bool) *link {
	l := &link{u: u, target: t, address: a, wanted: true, first: u.pace.first, surplus: make(chan struct{}, 1),
		log: u.cfg.Log.WithValues(u.peer.name, t.String(), "address", a.String())}
	if another {
		l.first = u.pace.back
	}
	u.links[a] = l
	return l
}

// counts reports whether a link is one of those that are enough. mu is held.
func (l *link) counts() bool {
	if l.since.IsZero() {
		return l.err == nil
	}
	return l.forwards
}

// satisfied reports whether the node is connected to as many replicas as it has to be. mu is held.
func (u *Uplink) satisfied() bool {
	connected, missing := 0, len(u.links) == 0
	for _, l := range u.links {
		switch {
		case !l.since.IsZero() && l.forwards:
			connected++
		case l.since.IsZero() && l.wanted && !l.standsBy:
			missing = true
		}
	}
	return !missing || u.peer.enough > 0 && connected >= u.peer.enough
}

// aloneInterval is the time between two looks at whether anything runs on a connection.
const aloneInterval = time.Second

// alone waits until nothing runs on a connection but the summary, until it has ended, or ctx.
func (c *connection) alone(ctx context.Context) {
	for c.running.Load() > 0 && c.open() && retry.Pause(ctx, aloneInterval) == nil {
	}
}
