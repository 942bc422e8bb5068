package controller

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"

	actorslocal "github.com/katbox/katbox/actors/local"
	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/local"
	words "github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/node/attach"
	attachdisk "github.com/katbox/katbox/internal/node/attach/disk"
	"github.com/katbox/katbox/internal/node/csi/persistent"
	"github.com/katbox/katbox/internal/node/localdisk"
	nodemetrics "github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/sanity/specs"
)

// localNodeSpecs are those for the controller and the nodes together.
var localNodeSpecs = specs.Specs{
	Passing: 70, Skipped: append(slices.Clone(localSpecs.Skipped), storageHealth), NotTested: nodeSpecs.NotTested,
}

// TestLocalNodeSanity runs the specs of the Controller and the Node service with volumes on a real disk of the node.
// ginkgo runs once in a process.
func TestLocalNodeSanity(t *testing.T) {
	roottest.Need(t)
	if kind := os.Getenv(kindVariable); kind != "" {
		testLocalWithNode(t, kind)
		return
	}
	for _, kind := range []string{"btrfs", "block"} {
		t.Run(kind, func(t *testing.T) {
			again := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestLocalNodeSanity$", "-test.timeout", "20m")
			again.Env = append(os.Environ(), kindVariable+"="+kind)
			out, err := again.CombinedOutput()
			if strings.Contains(string(out), "--- SKIP") {
				t.Skipf("%s", out)
			}
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func testLocalWithNode(t *testing.T, kind string) {
	fsType, backend := "btrfs", local.Btrfs
	if kind == "block" {
		fsType, backend = "xfs", local.Image
	}
	pool := filepath.Join(roottest.FileSystem(t, fsType, 16<<10), "pool")
	dir := t.TempDir()
	roottest.UnmountBelowAtEnd(t, dir)
	kubeletDir := filepath.Join(dir, "kubelet")
	config := sanity.NewTestConfig()
	config.TestVolumeSize, config.TestVolumeExpandSize = 64<<20, 128<<20
	config.TargetPath = filepath.Join(kubeletDir, "pods/6d6a1b1e-9a55-4b38-8f0e-1c1f5d3c9a10/volumes/kubernetes.io~csi/sanity")
	config.StagingPath = filepath.Join(kubeletDir, "plugins/kubernetes.io/csi/local.csi.katbox.io/sanity")
	if kind == "block" {
		config.TestVolumeAccessType = "block"
		config.TargetPath = filepath.Join(kubeletDir, "plugins/kubernetes.io/csi/volumeDevices/publish/sanity")
	}
	for _, path := range []string{config.TargetPath, config.StagingPath} {
		must(t, os.MkdirAll(filepath.Dir(path), 0o750))
	}
	suite := sanity.GinkgoTest(&config)
	on := startLocalNode(t, pool, backend)
	all, err := on.Pools(t.Context())
	must(t, err)
	counted := nodemetrics.New("", "")
	d, err := persistent.New(persistent.Config{
		Kind: words.KindLocal, Name: "local.csi.katbox.io", NodeID: nodeName, KubeletDir: kubeletDir, Volumes: on, Segments: on.Segments,
		Log: testr.New(t), Count: func(method string) edge.Calls { return counted.LocalMethod(method) },
	})
	must(t, err)
	suite.Conn = serve(t, persistent.NewServer(d))
	suite.ControllerConn = startLocalWith(t, on, all[0].UUID, nil, func() string {
		volumes, err := on.Volumes(context.Background(), all[0].UUID, "", 0)
		snapshots, err2 := on.Snapshots(context.Background(), all[0].UUID, "", 0)
		if len(volumes)+len(snapshots) > 0 || err != nil || err2 != nil {
			return fmt.Sprintf("left on the node: %v, %v (%v, %v)", volumes, snapshots, err, err2)
		}
		return ""
	})
	localNodeSpecs.Run(t)
	table, err := attach.Table()
	must(t, err)
	if i := slices.IndexFunc(table, func(m attach.Mount) bool { return strings.HasPrefix(m.Target, kubeletDir) }); i >= 0 {
		t.Errorf("still mounted: %+v", table[i])
	}
}

// startLocalNode starts what the daemon starts for a pool in a directory.
func startLocalNode(t *testing.T, path string, backend local.Backend) *actorslocal.Node {
	t.Helper()
	log := testr.New(t)
	projects, locations := localdisk.NewProjects(quota.LocalRange, nil, nil, log), localdisk.NewLocations(path)
	found := make(chan struct{}, 1)
	n, err := actorslocal.Start(actorslocal.Config{
		Places: []actorslocal.Place{{Class: localClass, Path: path, Backend: backend}},
		Open: func(_ context.Context, p actorslocal.Place) (localdisk.Dir, error) {
			return localdisk.Open(p.Path, localdisk.Config{
				Class: p.Class, Backend: p.Backend, Expect: p.UUID, Projects: projects, Locations: locations, Log: log,
			})
		},
		Machine: machine{attachdisk.Tools{Log: log}, locations}, Metrics: nodemetrics.New("", ""), Log: log,
		Changed: func() {
			select {
			case found <- struct{}{}:
			default:
			}
		},
	})
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		must(t, n.Stop(ctx))
	})
	select {
	case <-found:
	case <-time.After(patience):
		t.Fatal("the pool was not opened")
	}
	return n
}

// machine is what is done with mounts whatever pool they are of.
type machine struct {
	attachdisk.Tools
	locations *localdisk.Locations
}

func (machine) Table() ([]attach.Mount, error)         { return attach.Table() }
func (a machine) NameOf(m attach.Mount) (string, bool) { return a.locations.NameOf(m) }
func (machine) Lost(m attach.Mount) bool               { return localdisk.Lost(m) }
func (a machine) Unstage(ctx context.Context, name, path string) error {
	return a.locations.Unstage(ctx, name, path)
}
