package nfs

import (
	"net/netip"
	"strings"
	"testing"
)

func TestClientAddress(t *testing.T) {
	for server, want := range map[string]string{
		"127.0.0.1":      "127.0.0.1",
		"127.0.0.9":      "127.0.0.1",
		"fe80::1%nosuch": "it has no way to fe80::1%nosuch: ",
	} {
		if own := clientAddress(netip.MustParseAddr(server)); !strings.HasPrefix(own, want) {
			t.Errorf("to %s: from %s, want %s", server, own, want)
		}
	}
	// A machine without IPv6 has no way there.
	if own := clientAddress(netip.IPv6Loopback()); own != "::1" && !strings.HasPrefix(own, "it has no way") {
		t.Errorf("to ::1: from %s", own)
	}
	if number, err := zoneNumber("7"); err != nil || number != 7 {
		t.Error(number, err)
	}
	if number, err := zoneNumber("lo"); err != nil || number == 0 {
		t.Error(number, err)
	}
}
