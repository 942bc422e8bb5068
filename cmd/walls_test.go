// Package cmd has the programs, one in each directory. Its test keeps them apart.
package cmd

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const own = "github.com/katbox/katbox/"

// walls are what each program does not link. Import rules see what a package imports by itself; these hold for all
// that comes with it.
var walls = []struct {
	program string
	// has is a package that shows that these are those of the program.
	has string
	// not are the beginnings of packages that it does not link, except those in but.
	not, but []string
}{
	// The daemon is privileged, and small. It makes the few requests of internal/node/kubeapi, where pools are installed; what
	// does more with the API server belongs into other programs.
	{"katbox", own + "actors", []string{
		"k8s.io/client-go", "k8s.io/api/", "k8s.io/apiserver", "sigs.k8s.io/controller-runtime",
		own + "internal/gateway", own + "internal/model/v1alpha1", own + "internal/controller/array", own + "actors/pools", own + "messages/pools",
	}, nil},
	// The gateway runs on no node. It mounts nothing, opens no volume's files, and has no actors.
	{"katbox-gateway", own + "internal/gateway/server", []string{
		own + "actors", own + "messages", own + "internal/lib/kernel", own + "internal/node/mount", own + "internal/node/files", own + "internal/node/beneath",
		own + "internal/node/attach", own + "internal/node/localdisk", own + "internal/node/csi/inline", own + "internal/node/store", own + "internal/node/scratch",
		own + "internal/node/handlers", own + "internal/controller/array", own + "internal/plugin/web",
	}, nil},
	// The controller runs on no node. Of the node it has the words, and internal/lib/kernel for its socket.
	{"katbox-controller", own + "actors/pools", []string{
		own + "actors/ephemeral", own + "actors/local", own + "actors/arrays", own + "messages/local", own + "internal/node/mount",
		own + "internal/node/files", own + "internal/node/beneath", own + "internal/node/attach", own + "internal/node/localdisk", own + "internal/node/csi/inline",
		own + "internal/node/metrics", own + "internal/node/policy", own + "internal/node/store", own + "internal/node/scratch", own + "internal/node/handlers",
		own + "internal/gateway", own + "internal/plugin/web", own + "internal/lib/kubelet",
	}, []string{own + "internal/controller/csi", own + "internal/lib/edge"}},
	// The plugin is downloaded by each user. It has no typed clients, and nothing of the daemon and the gateway but words.
	// (protobuf comes with the library that reads durations, 0.4 MB.)
	{"kubectl-katbox", own + "internal/plugin/cluster", []string{
		"k8s.io/api/", "k8s.io/apiserver", "k8s.io/client-go/kubernetes", "k8s.io/cli-runtime", "github.com/spf13/cobra",
		"github.com/prometheus/client_golang", "google.golang.org/grpc", own + "internal/gateway", own + "internal/lib/kernel",
		own + "internal/node/handlers", own + "actors",
	}, []string{own + "internal/model/resource"}},
}

// TestWalls looks at all that each program links.
func TestWalls(t *testing.T) {
	for _, w := range walls {
		t.Run(w.program, func(t *testing.T) {
			text, err := exec.Command("go", "list", "-deps", "./"+w.program).Output()
			if err != nil {
				t.Fatal(err)
			}
			linked := strings.Fields(string(text))
			if !slices.Contains(linked, w.has) {
				t.Fatalf("these are not the packages of %s:\n%s", w.program, text)
			}
			for _, pkg := range linked {
				begins := func(not string) bool { return strings.HasPrefix(pkg, not) }
				if slices.ContainsFunc(w.not, begins) && !slices.Contains(w.but, pkg) {
					t.Errorf("%s links %s", w.program, pkg)
				}
			}
		})
	}
}
