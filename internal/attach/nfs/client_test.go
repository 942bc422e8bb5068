package nfs

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/katbox/katbox/internal/volume"
)

func TestClientAddress(t *testing.T) {
	for server, want := range map[string]string{
		"127.0.0.1": "127.0.0.1",
		"127.0.0.9": "127.0.0.1",
		"::1":       "::1",
	} {
		own, err := clientAddress(netip.MustParseAddr(server))
		if server == "::1" && errors.Is(err, volume.ErrUnavailable) {
			continue // a machine without IPv6
		}
		if err != nil || own.String() != want {
			t.Errorf("to %s: from %s, %v, want %s", server, own, err, want)
		}
	}
	if own, err := clientAddress(netip.MustParseAddr("fe80::1%nosuch")); !errors.Is(err, volume.ErrUnavailable) {
		t.Errorf("from %s, %v", own, err)
	}
	if number, err := zoneNumber("7"); err != nil || number != 7 {
		t.Error(number, err)
	}
	if number, err := zoneNumber("lo"); err != nil || number == 0 {
		t.Error(number, err)
	}
}
