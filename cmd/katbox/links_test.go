package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLinksNoClientGo: the daemon is privileged and must not reach the API server. What
// talks to it belongs into other programs.
func TestLinksNoClientGo(t *testing.T) {
	deps, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(deps), "github.com/katbox/katbox/actors\n") {
		t.Fatalf("these are not the packages of the daemon:\n%s", deps)
	}
	for pkg := range strings.Lines(string(deps)) {
		for _, not := range []string{"k8s.io/client-go", "k8s.io/api/", "k8s.io/apiserver", "github.com/katbox/katbox/internal/gateway"} {
			if strings.HasPrefix(pkg, not) {
				t.Errorf("the daemon links %s", pkg)
			}
		}
	}
}
