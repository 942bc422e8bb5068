package controller

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/testing/apitest"
	"github.com/katbox/katbox/internal/testing/attachtest"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/sanity/specs"
)

// kindVariable says, in the environment, for which kind of volumes the specs are run.
const kindVariable = "KATBOX_SANITY_KIND"

// nodeSpecs are those for the controller and the nodes together.
var nodeSpecs = specs.Specs{
	Passing: 79, Skipped: append(slices.Clone(controllerSpecs.Skipped), storageHealth), NotTested: []string{"GroupController Service "},
}

// storageHealth is about a call that no driver offers: the health of a volume says the same.
const storageHealth = "Node Service NodeGetStorageHealth should return appropriate response"

// TestArraySanity runs the specs of the Controller and the Node service against the controller, the real
// daemon, and an array with real data, for each kind of volume. ginkgo runs once in a process.
func TestArraySanity(t *testing.T) {
	attachtest.Need(t)
	if kind := os.Getenv(kindVariable); kind != "" {
		testWithNode(t, kind)
		return
	}
	for _, kind := range []string{"nfs", "iscsi", "iscsi-numbers", "block"} {
		t.Run(kind, func(t *testing.T) {
			again := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestArraySanity$", "-test.timeout", "20m")
			again.Env = append(os.Environ(), kindVariable+"="+kind)
			out, err := again.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func testWithNode(t *testing.T, kind string) {
	start := attachtest.NewArray
	if kind == "iscsi-numbers" {
		start = attachtest.NewArrayOfNumbers
	}
	remote := start(t)
	api, kube := startAPI(t, remote.Settings().Token)
	dir := t.TempDir()
	roottest.UnmountBelowAtEnd(t, dir)
	kubeletDir := filepath.Join(dir, "kubelet")
	config := sanity.NewTestConfig()
	config.TargetPath = filepath.Join(kubeletDir, "pods/6d6a1b1e-9a55-4b38-8f0e-1c1f5d3c9a10/volumes/kubernetes.io~csi/sanity")
	config.StagingPath = filepath.Join(kubeletDir, "plugins/kubernetes.io/csi/array.csi.katbox.io/sanity")
	for _, path := range []string{config.TargetPath, config.StagingPath} {
		must(t, os.MkdirAll(filepath.Dir(path), 0o750))
	}
	switch kind {
	case "block":
		config.TestVolumeAccessType = "block"
		config.TargetPath = filepath.Join(kubeletDir, "plugins/kubernetes.io/csi/volumeDevices/publish/sanity")
		must(t, os.MkdirAll(filepath.Dir(config.TargetPath), 0o750))
		fallthrough
	case "iscsi", "iscsi-numbers":
		config.TestVolumeParameters = map[string]string{"protocol": "iscsi"}
	}
	suite := sanity.GinkgoTest(&config)
	suite.Conn = startNode(t, dir, kubeletDir, api)
	suite.ControllerConn = startController(t, kube, remote.Array, nil)
	awaitNode(t, kube)
	nodeSpecs.Run(t)
	table, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, kubeletDir) {
			t.Errorf("still mounted: %s", line)
		}
	}
	if records, err := os.ReadDir(filepath.Join(dir, "array/staged")); err != nil || len(records) > 0 {
		t.Errorf("records of staged volumes are left: %v, %v", records, err)
	}
}

// startNode starts the daemon, and returns a connection to its driver for volumes of arrays.
func startNode(t *testing.T, dir, kubeletDir string, api *apitest.Server) *grpc.ClientConn {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, "token"), []byte("token"), 0o600))
	socket := filepath.Join(dir, "array/csi.sock")
	daemon := exec.Command(os.Getenv("KATBOX_PROGRAM"),
		"--nodeid", nodeName, "--endpoint", "unix://"+filepath.Join(dir, "csi.sock"), "--workdir", filepath.Join(dir, "work"),
		"--kubelet-dir", kubeletDir, "--headroom", "0", "--kubelet-line", "none",
		"--array-endpoint", "unix://"+socket, "--node-addresses", attachtest.NodeAddress(t), "--kube-api", api.URL(), "--kube-credentials", dir)
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	daemon.Stdout, daemon.Stderr = log, log
	must(t, daemon.Start())
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	must(t, err)
	t.Cleanup(func() {
		must(t, conn.Close())
		must(t, daemon.Process.Signal(syscall.SIGTERM))
		err := daemon.Wait()
		if t.Failed() || err != nil {
			text, _ := os.ReadFile(log.Name())
			t.Errorf("the daemon: %v\n%s", err, text)
		}
		must(t, log.Close())
	})
	return conn
}

// awaitNode waits until the daemon has made its PoolNode, and the pool takes volumes.
func awaitNode(t *testing.T, kube client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := kube.Get(ctx, client.ObjectKey{Name: nodeName}, &v1alpha1.PoolNode{})
		if err == nil {
			return
		}
		must(t, ctx.Err())
		time.Sleep(20 * time.Millisecond)
	}
}
