// Package cmd has the programs, one in each directory. Its test keeps them apart.
package cmd

import (
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const own = "github.com/katbox/katbox/"

// wall is what a program or a room links: all that comes with it, where import rules see only what it imports by itself.
type wall struct {
	packages string
	// has is a package that shows that these are those of the program or room.
	has string
	// only are the beginnings of the packages of Katbox that it links, except for those in but.
	only, but []string
	// not are the beginnings of packages of others that it does not link.
	not []string
}

var programs = []wall{
	// The daemon is privileged, and small. It makes the few requests of internal/node/kubeapi, where pools are installed; what
	// does more with the API server belongs into other programs.
	{"./katbox", "internal/node/store", []string{
		"cmd/katbox", "actors", "messages", "internal/model", "internal/lib", "internal/link", "internal/node", "internal/cli",
	}, []string{"actors/pools", "messages/pools", "internal/model/v1alpha1"}, []string{
		"k8s.io/client-go", "k8s.io/api/", "k8s.io/apiserver", "sigs.k8s.io/controller-runtime",
	}},
	// The gateway runs on no node. It mounts nothing, opens no volume's files, and has no actors.
	{"./katbox-gateway", "internal/gateway/server", []string{
		"cmd/katbox-gateway", "internal/model", "internal/lib", "internal/link", "internal/gateway",
	}, []string{"internal/lib/kernel", "internal/lib/kubelet"}, []string{"sigs.k8s.io/controller-runtime"}},
	// The controller runs on no node. It needs internal/lib/kernel for its socket.
	{"./katbox-controller", "actors/pools", []string{
		"cmd/katbox-controller", "actors", "messages", "internal/model", "internal/lib", "internal/link", "internal/controller",
	}, []string{
		"actors/ephemeral", "actors/local", "actors/arrays", "actors/persistent", "messages/local", "internal/lib/kubelet",
		"internal/link/satoken",
	}, []string{"github.com/go-jose/go-jose"}},
	// The plugin is downloaded by each user. It has no typed clients, and nothing of the daemon and the gateway but words.
	// (protobuf comes with the library that reads durations, 0.4 MB.)
	{"./kubectl-katbox", "internal/plugin/cluster", []string{
		"cmd/kubectl-katbox", "internal/model", "internal/lib", "internal/cli", "internal/plugin",
	}, []string{"internal/lib/kernel"}, []string{
		"k8s.io/api/", "k8s.io/apiserver", "k8s.io/client-go/kubernetes", "k8s.io/cli-runtime", "sigs.k8s.io/controller-runtime",
		"github.com/prometheus/client_golang", "google.golang.org/grpc",
	}},
}

// rooms are the directories of internal, from below.
var rooms = []wall{
	{"../internal/model/...", "internal/model/volume", []string{"internal/model"}, nil, []string{"k8s.io/client-go",
		"google.golang.org/grpc"}},
	{"../internal/lib/...", "internal/lib/kernel", []string{"internal/model", "internal/lib"}, nil, []string{"k8s.io/client-go"}},
	{"../internal/link/...", "internal/link/hub", []string{"internal/model", "internal/lib", "internal/link"}, nil, nil},
	{"../internal/gateway/...", "internal/gateway/server", []string{
		"internal/model", "internal/lib", "internal/link", "internal/gateway"}, nil, nil},
	{"../internal/node/...", "internal/node/store", []string{"internal/model", "internal/lib", "internal/link/wire", "internal/node"},
		nil, nil},
	{"../internal/controller/...", "internal/controller/vpsa", []string{"internal/model", "internal/lib", "internal/controller"}, nil, nil},
	{"../internal/cli/...", "internal/cli/verbs", []string{"internal/model", "internal/lib", "internal/cli"}, nil, []string{"k8s.io"}},
	{"../internal/plugin/...", "internal/plugin/web", []string{"internal/model", "internal/lib", "internal/plugin"}, nil, nil},
	// The kit knows no kind of volume, and each kind only the kit.
	{"../actors", "actors", []string{"actors", "messages", "internal/model", "internal/lib"}, []string{
		"actors/ephemeral", "actors/arrays", "actors/local", "actors/persistent", "actors/pools", "messages/local", "messages/pools"}, nil},
}

// TestWalls looks at all that each program, and each room, links.
func TestWalls(t *testing.T) {
	linked := links(t)
	for _, w := range slices.Concat(programs, rooms) {
		t.Run(w.packages, func(t *testing.T) {
			dir, all := strings.CutSuffix(path.Join(own, "cmd", w.packages), "/...")
			links := map[string]bool{}
			for pkg, deps := range linked {
				if pkg == dir || all && strings.HasPrefix(pkg, dir+"/") {
					links[pkg] = true
					for _, dep := range deps {
						links[dep] = true
					}
				}
			}
			if !links[path.Join(own, w.has)] {
				t.Fatalf("these are not its packages: %v", slices.Sorted(maps.Keys(links)))
			}
			for _, pkg := range slices.Sorted(maps.Keys(links)) {
				below := func(dir string) bool { dir = path.Join(own, dir); return pkg == dir || strings.HasPrefix(pkg, dir+"/") }
				begins := func(start string) bool { return strings.HasPrefix(pkg, start) }
				mine := strings.HasPrefix(pkg, own)
				switch {
				case mine && (!slices.ContainsFunc(w.only, below) || slices.ContainsFunc(w.but, below)), slices.ContainsFunc(w.not, begins):
					t.Errorf("it links %s", pkg)
				}
			}
		})
	}
}

// tiers are the packages of actors/pools, from below: none links another one of its tier, or of a tier above. They know of one
// another only what messages say.
var tiers = [][]string{
	{"rules"}, {"servers"}, {"env"}, {"index", "nodes", "classes", "pool", "tasks", "unclaimed"}, {""},
}

// TestPoolsPointDown looks at all packages that there are.
func TestPoolsPointDown(t *testing.T) {
	tier := map[string]int{}
	for i, names := range tiers {
		for _, name := range names {
			tier[path.Join(own, "actors/pools", name)] = i
		}
	}
	text, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, "../actors/pools/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		names := strings.Fields(line)
		mine, known := tier[names[0]]
		if !known {
			t.Errorf("%s is in no tier", names[0])
		}
		found++
		for _, dep := range names[1:] {
			if below, ok := tier[dep]; ok && below >= mine {
				t.Errorf("%s links %s", names[0], dep)
			}
		}
	}
	if found != len(tier) {
		t.Errorf("there are %d packages, and %d have a tier", found, len(tier))
	}
}

// links has what each package of the programs and rooms links.
func links(t *testing.T) map[string][]string {
	t.Helper()
	args := []string{"list", "-f", `{{.ImportPath}} {{join .Deps " "}}`}
	for _, w := range slices.Concat(programs, rooms) {
		args = append(args, w.packages)
	}
	text, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		names := strings.Fields(line)
		all[names[0]] = names[1:]
	}
	return all
}
