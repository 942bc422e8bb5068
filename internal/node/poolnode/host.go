package poolnode

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// interfaces returns the addresses of this node's interfaces.
func interfaces() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("read the addresses of this node's interfaces: %w", err)
	}
	var addresses []netip.Addr
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			addresses = append(addresses, p.Addr().Unmap())
		}
	}
	return addresses, nil
}

// source returns the address from which this node sends to a network. It sends nothing: a UDP socket that is
// connected has asked for the route.
func source(network netip.Prefix, own []netip.Addr) netip.Addr {
	to := network.Masked().Addr().Next() // the first one may mean the whole network
	for network.Contains(to) && slices.Contains(own, to) {
		to = to.Next()
	}
	if !network.Contains(to) {
		return netip.Addr{}
	}
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, discard)))
	if err != nil {
		return netip.Addr{}
	}
	defer func() { _ = c.Close() }()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone("")
}

// discard is a port; nothing is sent to it.
const discard = 9
