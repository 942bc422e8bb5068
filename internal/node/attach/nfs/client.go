package nfs

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// clientAddress says from which address the node reaches a server, for an error: the kernel finds it itself. It sends
// nothing. The socket is not one of Go's, which would have its poller watch it and wake another thread.
func clientAddress(server netip.Addr) string {
	own, err := routeFrom(server)
	if err != nil {
		return "it has no way to " + server.String() + ": " + err.Error()
	}
	return own.String()
}

func routeFrom(server netip.Addr) (netip.Addr, error) {
	const port = 2049
	domain, to := unix.AF_INET, unix.Sockaddr(nil)
	if server.Is4() {
		to = &unix.SockaddrInet4{Port: port, Addr: server.As4()}
	} else {
		zone, err := zoneNumber(server.Zone())
		if err != nil {
			return netip.Addr{}, err
		}
		domain, to = unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: server.As16(), ZoneId: zone}
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		return netip.Addr{}, fmt.Errorf("connect: %w", err)
	}
	name, err := unix.Getsockname(fd)
	switch own := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(own.Addr), nil
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(own.Addr).WithZone(server.Zone()), nil
	}
	return netip.Addr{}, fmt.Errorf("getsockname: %w", cmp.Or(err, error(unix.EAFNOSUPPORT)))
}

// zoneNumber returns the number of the interface that an IPv6 address is valid on; 0 for an address without one.
func zoneNumber(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}
	if number, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(number), nil
	}
	on, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, fmt.Errorf("interface %s: %w", zone, err)
	}
	return uint32(on.Index), nil
}
