package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLinksNoClientGo: the daemon is privileged, and small. It makes the few requests of internal/kubeapi,
// where pools are installed; what does more with the API server belongs into other programs.
func TestLinksNoClientGo(t *testing.T) {
	deps, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(deps), "github.com/katbox/katbox/actors\n") {
		t.Fatalf("these are not the packages of the daemon:\n%s", deps)
	}
	for pkg := range strings.Lines(string(deps)) {
		for _, not := range []string{
			"k8s.io/client-go", "k8s.io/api/", "k8s.io/apiserver", "sigs.k8s.io/controller-runtime",
			"github.com/katbox/katbox/internal/gateway", "github.com/katbox/katbox/internal/pools/v1alpha1",
			"github.com/katbox/katbox/internal/array", "github.com/katbox/katbox/actors/pools", "github.com/katbox/katbox/messages/pools",
		} {
			if strings.HasPrefix(pkg, not) {
				t.Errorf("the daemon links %s", pkg)
			}
		}
	}
}
