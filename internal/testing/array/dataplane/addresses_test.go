package dataplane

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSourceBeforeAddress: once the machine answers at an address, connections to it come from the source. A client
// of NFS connects at once, and from elsewhere it would get "Permission denied".
func TestSourceBeforeAddress(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	if err := os.WriteFile(filepath.Join(dir, "ip"), fmt.Appendf(nil, "#!/bin/sh\necho \"$*\" >>%s\n", log), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	k := &Kernel{source: netip.MustParseAddr("192.0.2.1")}
	if err := k.listenAt(netip.MustParseAddr("192.0.2.9")); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	const want = "route replace local 192.0.2.9/32 dev lo table local src 192.0.2.1\naddress replace 192.0.2.9/32 dev lo"
	if got := strings.TrimSpace(string(content)); got != want {
		t.Errorf("the commands were\n%s\nwant\n%s", got, want)
	}
}
