package poolnode

import (
	"net/netip"
	"strings"
	"testing"
)

func addresses(s ...string) (all []netip.Addr) {
	for _, a := range s {
		all = append(all, netip.MustParseAddr(a))
	}
	return all
}

func TestChoose(t *testing.T) {
	host := addresses("127.0.0.1", "192.168.1.4", "10.9.0.9", "10.9.0.7", "fd00::7")
	given := addresses("192.168.1.4", "fd00::7")
	for name, tt := range map[string]struct {
		network      string
		host, given  []netip.Addr
		source, last string
		want         string
	}{
		"without a network the InternalIP": {host: host, given: given, want: "192.168.1.4"},
		"one that no interface has":        {given: addresses("203.0.113.1"), host: host, want: "203.0.113.1"},
		"neither": {host: host,
			want: "error: neither --storage-network nor --node-addresses is given; its interfaces have 127.0.0.1, 192.168.1.4"},
		"neither, and no interfaces": {want: "error: its interfaces have none"},
		"the only one in the network": {network: "192.168.0.0/16", host: host, given: given, source: "192.168.1.4",
			want: "192.168.1.4"},
		"the only one, which another is sent from": {network: "192.168.0.0/16", host: host, source: "10.9.0.7", want: "192.168.1.4"},
		"of two the one that is sent from": {network: "10.9.0.0/24", host: host, source: "10.9.0.9", last: "10.9.0.7",
			want: "10.9.0.9"},
		"without a route the one before": {network: "10.9.0.0/24", host: host, last: "10.9.0.9", want: "10.9.0.9"},
		"one before that is gone":        {network: "10.9.0.0/24", host: host, last: "10.9.0.8", want: "10.9.0.7"},
		"sent from one outside": {network: "10.9.0.0/24", host: host, source: "192.168.1.4",
			given: addresses("10.9.0.9"), want: "10.9.0.9"},
		"at the first time the lowest":        {network: "10.9.0.0/24", host: host, given: given, want: "10.9.0.7"},
		"twice the same":                      {network: "10.9.0.0/24", host: addresses("10.9.0.7", "10.9.0.7"), want: "10.9.0.7"},
		"IPv6":                                {network: "fd00::/64", host: host, want: "fd00::7"},
		"loopback, where that is the network": {network: "127.0.0.0/8", host: host, want: "127.0.0.1"},
		"none fits: which there are": {network: "10.8.0.0/16", host: host, given: given,
			want: "error: storage network 10.8.0.0/16 (--storage-network); it has 127.0.0.1, 192.168.1.4, 10.9.0.9, 10.9.0.7, fd00::7"},
		"none fits: what Kubernetes has is no help": {network: "203.0.113.0/24", host: host, given: addresses("203.0.113.1"),
			want: "error: no address of this node"},
	} {
		t.Run(name, func(t *testing.T) {
			h := Host{Addresses: tt.host, Given: tt.given}
			var network netip.Prefix
			if tt.network != "" {
				network = netip.MustParsePrefix(tt.network)
			}
			if tt.source != "" {
				h.Source = netip.MustParseAddr(tt.source)
			}
			if tt.last != "" {
				h.Last = netip.MustParseAddr(tt.last)
			}
			got, why, err := Choose(network, h)
			if text, wrong := strings.CutPrefix(tt.want, "error: "); wrong {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("chose %s, error %v, want one with %q", got, err, text)
				}
				return
			}
			if err != nil || got.String() != tt.want || why == "" {
				t.Errorf("chose %s because %q, error %v, want %s", got, why, err, tt.want)
			}
		})
	}
}

// TestTheKernelTellsWhichAddressIsUsed: on the loopback interface, which each machine has.
func TestTheKernelTellsWhichAddressIsUsed(t *testing.T) {
	own, err := interfaces()
	if err != nil {
		t.Fatal(err)
	}
	loopback := netip.MustParseAddr("127.0.0.1")
	found := false
	for _, a := range own {
		found = found || a == loopback
	}
	if !found {
		t.Fatalf("the interfaces have %v, not %s", own, loopback)
	}
	// A destination on the loopback interface is its own source, unless a machine's routes say more.
	if got := source(netip.MustParsePrefix("127.0.0.0/8"), own); !got.IsLoopback() {
		t.Errorf("sends from %s to 127.0.0.0/8", got)
	}
	for _, full := range []string{"127.0.0.1/32", "127.0.0.0/31"} {
		if got := source(netip.MustParsePrefix(full), own); got.IsValid() {
			t.Errorf("sends from %s to %s, which has no other address", got, full)
		}
	}
}
