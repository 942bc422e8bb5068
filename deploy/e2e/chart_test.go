//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// charts are the one of v0.1.0, from which people upgrade, and the one of this tree.
var charts = struct{ before, now string }{
	before: filepath.Join("..", "..", ".ci", "deploy", "testdata", "before", "katbox-0.1.0.tgz"),
	now:    filepath.Join("..", "helm", "katbox"),
}

// TestChart: an upgrade with --reuse-values from the chart of v0.1.0, and node sets that come and go, leave running pods
// and retained volumes alone, and helm test tries a volume each time.
func TestChart(t *testing.T) {
	if os.Getenv("KATBOX_E2E_CHART") == "" {
		t.Skip("the cluster has no network for pods: \"make e2e SUITE=chart\" runs this")
	}
	c := newCluster(t)
	values := c.values() + `
headroom: 0.01
maxUnavailable: 1
`
	c.helm(values, "install", "katbox", charts.before, "--values", "-", "--create-namespace")
	c.rolledOut()
	uid := c.succeeds(pod{Name: "ended", Scripts: []string{"echo kept > /scratch/file"}})
	w := c.startWriter("runs")
	unaffected := func(when string) {
		c.want(c.file(uid, "file"), "kept\n")
		w.wantUnaffected(when)
	}

	repository, version := c.busyboxParts()
	c.helm("", "upgrade", "katbox", charts.now, "--reuse-values",
		"--set", "tests.image.repository="+repository, "--set-string", "tests.image.tag="+version)
	c.rolledOut()
	unaffected("after the upgrade")
	c.helmTest("was written and read")

	c.kubectl("label", "node", c.node(), "disk=nvme")
	c.helm("", "upgrade", "katbox", charts.now, "--reuse-values",
		"--set-json", `nodeSets=[{"name": "nvme", "nodeSelector": {"disk": "nvme"}, "lifespan": "7d"}]`)
	c.daemonOf("katbox-nvme")
	unaffected("in a set")
	c.helmTest("was written and read")

	c.helm("", "upgrade", "katbox", charts.now, "--reuse-values", "--set-json", "nodeSets=[]")
	c.daemonOf("katbox")
	unaffected("in no set any more")

	c.helm("", "uninstall", "katbox")
	unaffected("after the release is gone")
	c.helm(values, "install", "katbox", charts.now, "--values", "-", "--set", "logs.dir="+filepath.Join(c.state, "podlogs"))
	c.rolledOut()
	c.end("runs")
	w.wantRetained()
	c.want(c.file(uid, "file"), "kept\n")
	c.wantNoMounts()
	c.helm("", "uninstall", "katbox")
	c.helmTestFails()
}

// values are those of the chart for this node and the image that was built.
func (c *cluster) values() string {
	name, tag, _ := strings.Cut(c.image, ":")
	return fmt.Sprintf(`
kubeletDir: %q
workdir: {hostPath: %q}
image: {repository: %q, tag: %q}
kubeletLine: 1%%,1%%
hostNetwork: true
httpPort: %s
`, c.kubeletDir(), c.workdir(), name, tag, port)
}

// helm runs helm, which has to succeed, and waits for what it changes.
func (c *cluster) helm(values string, args ...string) string {
	c.t.Helper()
	out, err := c.tryHelm(values, append(args, "--wait", "--timeout", patience.String())...)
	if err != nil {
		c.t.Fatalf("%v\n%s", err, c.kubectl("-n", namespace, "describe", "pods"))
	}
	return out
}

func (c *cluster) tryHelm(values string, args ...string) (string, error) {
	return c.try(values, filepath.Join("..", "..", "bin", "helm"), append(args, "--namespace", namespace)...)
}

// helmTest runs the release's test, whose log has to have the words.
func (c *cluster) helmTest(words string) {
	c.t.Helper()
	out, err := c.tryHelm("", "test", "katbox", "--logs", "--timeout", patience.String())
	if err != nil || !strings.Contains(out, words) {
		c.t.Errorf("helm test: %v\n%s", err, out)
	}
}

// helmTestFails installs a release whose driver no daemon serves: the test must not succeed.
func (c *cluster) helmTestFails() {
	c.t.Helper()
	repository, version := c.busyboxParts()
	c.helm("", "install", "katbox", charts.now, "--set", "kubeletDir="+c.kubeletDir()+",nodeSelector.none=such",
		"--set", "tests.image.repository="+repository, "--set-string", "tests.image.tag="+version)
	if out, err := c.tryHelm("", "test", "katbox", "--timeout", "20s"); err == nil {
		c.t.Errorf("helm test succeeds where no node has a daemon:\n%s", out)
	}
	c.helm("", "uninstall", "katbox")
}

// busyboxParts are repository and tag of the image of the test's pods.
func (c *cluster) busyboxParts() (repository, tag string) {
	i := strings.LastIndex(c.busybox(), ":")
	return c.busybox()[:i], c.busybox()[i+1:]
}

// daemonOf waits until the only daemon is that of a DaemonSet.
func (c *cluster) daemonOf(set string) {
	c.t.Helper()
	c.eventually("the daemon is of "+set, func() error {
		owners := strings.Fields(c.kubectl("-n", namespace, "get", "pods", "-l", "app.kubernetes.io/name=katbox", "-o",
			"jsonpath={range .items[*]}{.metadata.ownerReferences[0].name} {end}"))
		if len(owners) != 1 || owners[0] != set {
			return fmt.Errorf("there are daemons of %q", owners)
		}
		if _, err := c.fetch("/readyz"); err != nil {
			return errors.Join(errors.New("it is not ready"), err)
		}
		return nil
	})
}
