//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// patience is how long anything may take that has to happen. The kubelet tries
// again after up to two minutes. A virtual machine on a busy computer is slow.
var patience = func() time.Duration {
	if os.Getenv("KATBOX_E2E_ARRAY") != "" {
		return 6 * time.Minute
	}
	return 3 * time.Minute
}()

// cluster is what "run" has brought up.
type cluster struct {
	t     *testing.T
	state string
	image string
	tool  string // rktool
	kube  string // rkube
	// scripts is where kubelet.sh is.
	scripts string
	// pods is the namespace of the test's pods; empty for "default".
	pods string
}

// newCluster finds the cluster that "run" has brought up.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	variable := func(name string) string {
		value := os.Getenv(name)
		if value == "" {
			t.Fatalf("%s is not set: this is run by \"make e2e\"", name)
		}
		return value
	}
	programs := variable("RK_BIN")
	return &cluster{
		t: t, state: variable("RK_STATE"), image: variable("KATBOX_E2E_IMAGE"), scripts: variable("REALKUBELET"),
		tool: filepath.Join(programs, "rktool"), kube: filepath.Join(programs, "rkube"),
	}
}

// in returns the cluster for the subtest t, which its failures then end.
func (c *cluster) in(t *testing.T) *cluster {
	other := *c
	other.t = t
	return &other
}

// inNamespace returns the cluster with the test's pods in another namespace, which it makes.
func (c *cluster) inNamespace(name string) *cluster {
	c.t.Helper()
	c.kubectl("create", "namespace", name)
	other := *c
	other.pods = name
	// A pod needs it, and a controller makes it.
	other.eventually("a ServiceAccount in namespace "+name, func() error {
		_, err := other.tryKubectl("", "get", "serviceaccount", "default")
		return err
	})
	return &other
}

func (c *cluster) kubeletDir() string { return filepath.Join(c.state, "kubelet") }
func (c *cluster) workdir() string    { return filepath.Join(c.state, "katbox-data") }

// data are the data directories of a pod, whose UID is given.
func (c *cluster) data(uid string) []string {
	c.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(c.workdir(), uid, "*"))
	if err != nil {
		c.t.Fatal(err)
	}
	return dirs
}

// file is a file in the only volume of a pod, beside that of its logs, as it lies on the node.
func (c *cluster) file(uid, name string) string {
	c.t.Helper()
	logs := string(volume.LogsID(volume.PodUID(uid)))
	dirs := slices.DeleteFunc(c.data(uid), func(dir string) bool { return filepath.Base(dir) == logs })
	if len(dirs) != 1 {
		c.t.Fatalf("pod %s has the data directories %q, not one", uid, dirs)
	}
	return filepath.Join(dirs[0], name)
}

// try runs a command with input, and returns what it printed.
func (c *cluster) try(input, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String(), nil
}

// kubectl runs kubectl, which has to succeed.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	return c.feed("", args...)
}

// feed is kubectl with an input.
func (c *cluster) feed(input string, args ...string) string {
	c.t.Helper()
	out, err := c.tryKubectl(input, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// tryKubectl is feed, where kubectl may fail.
func (c *cluster) tryKubectl(input string, args ...string) (string, error) {
	words := []string{"kubectl"}
	if c.pods != "" {
		words = append(words, "--namespace", c.pods)
	}
	return c.try(input, c.kube, append(words, args...)...)
}

// get reads objects, as JSON, into v.
func (c *cluster) get(v any, args ...string) {
	c.t.Helper()
	out := c.kubectl(append(append([]string{"get"}, args...), "-o", "json")...)
	if err := json.Unmarshal([]byte(out), v); err != nil {
		c.t.Fatalf("kubectl get %s: %v", strings.Join(args, " "), err)
	}
}

// restartKubelet ends the kubelet as an update of the node does, and starts it.
func (c *cluster) restartKubelet() {
	c.t.Helper()
	if _, err := c.try("", "bash", filepath.Join(c.scripts, "kubelet.sh"), "restart"); err != nil {
		c.t.Fatal(err)
	}
}

// eventually waits until check returns no error any more.
func (c *cluster) eventually(what string, check func() error) {
	c.t.Helper()
	eventually(c.t, what, check)
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		began := time.Now()
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s: %v", patience, what, err)
		}
		// On a slow machine the checks do not take the time of what they wait for.
		time.Sleep(max(100*time.Millisecond, 2*time.Since(began)))
	}
}
