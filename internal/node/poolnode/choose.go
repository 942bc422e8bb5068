package poolnode

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Host is what there is to choose from.
type Host struct {
	// Addresses are those of the node's interfaces.
	Addresses []netip.Addr
	// Given are the addresses that Kubernetes has of the node, its InternalIP first.
	Given []netip.Addr
	// Source is the address from which the node sends to the storage network; invalid where it has no
	// route there.
	Source netip.Addr
	// Last is the address that was chosen before; invalid at the first time.
	Last netip.Addr
}

// Choose returns the node's address on the storage network, and why it is this one. An array lets in what
// comes from that address.
//
// Without a network it is the node's InternalIP. With one it is the node's address there. Where there are
// several, it is the one that the node sends from, because arrays see that one: an address that moves
// between nodes is in the same network, but nodes do not send from it. If that is not known, it is the
// address chosen before, so that it does not change without need; at the first time the one that
// Kubernetes has, else the lowest.
func Choose(network netip.Prefix, h Host) (address netip.Addr, why string, err error) {
	if !network.IsValid() {
		if len(h.Given) == 0 {
			return address, "", fmt.Errorf("this node's address is not known: neither --storage-network nor --node-addresses is given; "+
				"its interfaces have %s", list(h.Addresses))
		}
		return h.Given[0], "it is the node's InternalIP", nil
	}
	in := slices.DeleteFunc(slices.Clone(h.Addresses), func(a netip.Addr) bool { return !network.Contains(a) })
	slices.SortFunc(in, netip.Addr.Compare)
	in = slices.Compact(in)
	switch {
	case len(in) == 0:
		return address, "", fmt.Errorf("no address of this node is in the storage network %s (--storage-network); it has %s",
			network, list(h.Addresses))
	case len(in) == 1:
		return in[0], "it is the only one in the storage network", nil
	case slices.Contains(in, h.Source):
		return h.Source, "the node sends from it to the storage network, where it has " + list(in), nil
	case slices.Contains(in, h.Last):
		return h.Last, "it was chosen before, of " + list(in), nil
	}
	for _, a := range h.Given {
		if slices.Contains(in, a) {
			return a, "Kubernetes has it as the node's, of " + list(in), nil
		}
	}
	return in[0], "it is the lowest of " + list(in), nil
}

// list returns addresses as a person reads them.
func list(addresses []netip.Addr) string {
	if len(addresses) == 0 {
		return "none"
	}
	s := make([]string, len(addresses))
	for i, a := range addresses {
		s[i] = a.String()
	}
	return strings.Join(s, ", ")
}
