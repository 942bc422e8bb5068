package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLinksNoNode: the controller runs on no node. Of the node it has the words, and internal/kernel for its socket.
func TestLinksNoNode(t *testing.T) {
	deps, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const own = "github.com/katbox/katbox/"
	if !strings.Contains(string(deps), own+"actors/pools\n") {
		t.Fatalf("these are not the packages of the controller:\n%s", deps)
	}
	for pkg := range strings.Lines(string(deps)) {
		for _, not := range []string{
			"actors/ephemeral", "actors/local", "actors/persistent", "messages/local", "internal/mount", "internal/files", "internal/beneath",
			"internal/attach", "internal/local/disk", "internal/driver\n", "internal/driver/node", "internal/metrics", "internal/policy",
			"internal/kubelet", "internal/store", "internal/scratch", "internal/api/node", "internal/gateway", "internal/web",
		} {
			if strings.HasPrefix(pkg, own+not) {
				t.Errorf("the controller links %s", pkg)
			}
		}
	}
}
