package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLinksLittle: the plugin is downloaded by each user. It has no typed clients, and nothing of the
// daemon and the gateway but words. (protobuf comes with the library that reads durations, 0.4 MB.)
func TestLinksLittle(t *testing.T) {
	deps, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(deps), "github.com/katbox/katbox/internal/cluster\n") {
		t.Fatalf("these are not the packages of the plugin:\n%s", deps)
	}
	const words = "github.com/katbox/katbox/internal/gateway/resource\n"
	for pkg := range strings.Lines(string(deps)) {
		for _, not := range []string{
			"k8s.io/api/", "k8s.io/apiserver", "k8s.io/client-go/kubernetes", "k8s.io/cli-runtime", "github.com/spf13/cobra",
			"github.com/prometheus/client_golang", "google.golang.org/grpc", "github.com/katbox/katbox/internal/gateway",
			"github.com/katbox/katbox/internal/kernel", "github.com/katbox/katbox/internal/api/node", "github.com/katbox/katbox/actors",
		} {
			if strings.HasPrefix(pkg, not) && pkg != words {
				t.Errorf("the plugin links %s", pkg)
			}
		}
	}
}
