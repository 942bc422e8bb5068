package uplink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/duration"
)

// mostAddresses bounds how many replicas of a gateway a node connects to.
const mostAddresses = 16

// netResolver asks the DNS servers itself: then a lookup ends with its context.
type netResolver struct{ net.Resolver }

var resolver = netResolver{net.Resolver{PreferGo: true}}

func (r *netResolver) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	return r.LookupNetIP(ctx, "ip", host)
}

// find keeps a link for each address that the names have, until ctx ends.
func (u *Uplink) find(ctx context.Context) {
	for {
		u.resolveAll(ctx)
		wait := u.pace.resolve
		if !u.connected() {
			wait = u.pace.missed
		}
		if retry.Pause(ctx, retry.Around(wait)) != nil {
			return
		}
	}
}

// connected reports whether each address has a connection, and there is one.
func (u *Uplink) connected() bool {
	states := u.States()
	return len(states) > 0 && !slices.ContainsFunc(states, func(s State) bool { return s.Since.IsZero() && !s.StandsBy })
}

// resolveAll looks up all names. A name that cannot be resolved keeps the addresses that it had.
func (u *Uplink) resolveAll(ctx context.Context) {
	for _, t := range u.targets {
		addresses, err := u.resolve(ctx, t)
		if ctx.Err() != nil {
			return
		}
		if u.noteResolved(t, err) {
			u.cfg.Log.Error(err, "cannot find "+u.peer.String()+", trying again until it works", logkeys.Interval, duration.Format(u.pace.missed))
		}
		if err == nil {
			u.want(ctx, t, addresses)
		}
	}
}

// noteResolved keeps why a name cannot be resolved. It reports whether that is news.
func (u *Uplink) noteResolved(t target, err error) (news bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.unresolved[t]
	delete(u.unresolved, t)
	if err == nil {
		return false
	}
	u.unresolved[t] = err
	return before == nil || before.Error() != err.Error()
}

func (u *Uplink) resolve(ctx context.Context, t target) ([]netip.AddrPort, error) {
	port, err := strconv.ParseUint(t.port, 10, 16)
	if err != nil {
		return nil, err
	}
	addresses := []netip.Addr{}
	if literal, err := netip.ParseAddr(t.host); err == nil {
		addresses = append(addresses, literal)
	} else {
		ctx, cancel := context.WithTimeout(ctx, u.pace.lookup)
		defer cancel()
		if addresses, err = u.lookup(ctx, t.host); err != nil {
			why := err
			// It repeats the name and the server, which differs from time to time.
			if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
				why = errors.New(dns.Err)
			}
			return nil, fmt.Errorf("resolve the name %s of %s: %w; "+
				"check that %s's Service exists, and that the daemon's pod uses the cluster's DNS", t.host, u.peer.flag, why, u.peer)
		}
	}
	all := make([]netip.AddrPort, 0, len(addresses))
	for _, address := range addresses {
		all = append(all, netip.AddrPortFrom(address.Unmap(), uint16(port)))
	}
	slices.SortFunc(all, netip.AddrPort.Compare)
	all = slices.Compact(all)
	if len(all) == 0 {
		return nil, fmt.Errorf("the name %s of %s has no addresses; check that %s runs and is ready", t.host, u.peer.flag, u.peer)
	}
	return all[:min(len(all), mostAddresses)], nil
}

// want makes a link for each address of a target that has none, and tells the links of addresses
// that are gone to make no new connection.
func (u *Uplink) want(ctx context.Context, t target, addresses []netip.AddrPort) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stopped {
		return
	}
	for address, l := range u.links {
		if l.target == t {
			l.wanted = slices.Contains(addresses, address)
		}
	}
	for _, address := range addresses {
		if u.links[address] != nil {
			continue
		}
		l := &link{u: u, target: t, address: address, wanted: true,
			log: u.cfg.Log.WithValues(u.peer.name, t.String(), "address", address.String())}
		u.links[address] = l
		u.tasks.Go(func() { l.run(ctx) })
	}
}

// leave removes a link whose address is not wanted any more; it reports whether it did.
func (u *Uplink) leave(l *link) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if l.wanted {
		return false
	}
	delete(u.links, l.address)
	return true
}
