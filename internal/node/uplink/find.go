package uplink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/duration"
)

// mostAddresses bounds how many replicas of a gateway, or of a controller, a node knows.
const mostAddresses = 64

// netResolver asks the DNS servers itself: then a lookup ends with its context.
type netResolver struct{ net.Resolver }

var resolver = netResolver{net.Resolver{PreferGo: true}}

func (r *netResolver) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	return r.LookupNetIP(ctx, "ip", host)
}

// find keeps a link for each address that the node is to connect to, until ctx ends. It looks the names up again and again.
func (u *Uplink) find(ctx context.Context) {
	for {
		u.resolveAll(ctx)
		u.choose(ctx)
		wait := u.pace.resolve
		if !u.connected() {
			wait = u.pace.missed
		}
		if u.changes(ctx, retry.Around(wait)) != nil {
			return
		}
	}
}

// changes chooses again each time that something about a link has changed, for a while.
func (u *Uplink) changes(ctx context.Context, wait time.Duration) error {
	during, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		select {
		case <-during.Done():
			return ctx.Err()
		case <-u.changed:
			u.choose(ctx)
		}
	}
}

// connected reports whether the node has all connections that it is to have, and one at least.
func (u *Uplink) connected() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.unresolved) == 0 && u.satisfied()
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
			u.mu.Lock()
			u.found[t] = addresses
			u.mu.Unlock()
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
