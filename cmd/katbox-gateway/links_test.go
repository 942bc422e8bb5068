package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLinksNoNode: the gateway runs on no node. It mounts nothing, opens no volume's files, and has no actors.
func TestLinksNoNode(t *testing.T) {
	deps, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const own = "github.com/katbox/katbox/"
	if !strings.Contains(string(deps), own+"internal/gateway/server\n") {
		t.Fatalf("these are not the packages of the gateway:\n%s", deps)
	}
	for pkg := range strings.Lines(string(deps)) {
		for _, not := range []string{
			"actors", "messages", "internal/kernel", "internal/mount", "internal/files", "internal/beneath", "internal/attach",
			"internal/local/disk", "internal/driver", "internal/store", "internal/scratch", "internal/api/node", "internal/array", "internal/web",
		} {
			if strings.HasPrefix(pkg, own+not) {
				t.Errorf("the gateway links %s", pkg)
			}
		}
	}
}
