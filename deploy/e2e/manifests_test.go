//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"
)

const (
	namespace  = "katbox"
	driverName = "katbox.csi.paypal.com"
	// port is Katbox's on this node, whose network is the host's.
	port = "28080"
)

// imageName is the image in the manifests, with whatever tag.
var imageName = regexp.MustCompile(`ghcr\.io/katbox/katbox:\S+`)

// headroom is the flag in the manifests. A kubelet that has no disk of its own is told to
// evict nothing before 1 % of the machine's is free, and Katbox so.
var headroom = regexp.MustCompile(`(?m)^( *- )--headroom=.*$`)

// rendered are the manifests of a directory of kustomize as an operator applies
// them, with the places of this node, the thresholds of its kubelet and the image that
// was built.
func (c *cluster) rendered(dir string) string {
	c.t.Helper()
	text := c.kubectl("kustomize", dir)
	for _, place := range [][2]string{
		{"/var/lib/kubelet", c.kubeletDir()},
		{"/var/lib/csi-katbox-data", c.workdir()},
		{":8080", ":" + port},
		{"containerPort: 8080", "containerPort: " + port},
	} {
		if !strings.Contains(text, place[0]) {
			c.t.Fatalf("the manifests in %s do not have %q", dir, place[0])
		}
		text = strings.ReplaceAll(text, place[0], place[1])
	}
	if !imageName.MatchString(text) {
		c.t.Fatalf("the manifests in %s do not have the image %s", dir, imageName)
	}
	if os.Getenv("KATBOX_E2E_DISK") == "" {
		if !headroom.MatchString(text) {
			c.t.Fatalf("the manifests in %s do not have the flag --headroom", dir)
		}
		text = headroom.ReplaceAllString(text, "$0\n$1--kubelet-line=1%,1%")
	}
	return imageName.ReplaceAllString(text, c.image)
}

// deploy applies the manifests and waits until Katbox is ready.
func (c *cluster) deploy() {
	c.t.Helper()
	c.feed(c.rendered("overlay"), "apply", "-f", "-")
	c.rolledOut()
}

// rolledOut waits until the DaemonSet is what it should be, and the kubelet knows the
// driver.
func (c *cluster) rolledOut() {
	c.t.Helper()
	if out, err := c.try("", c.kube, "kubectl", "-n", namespace, "rollout", "status", "daemonset/katbox", "--timeout",
		patience.String()); err != nil {
		c.t.Fatalf("%v\n%s\n%s", err, out, c.kubectl("-n", namespace, "describe", "pods"))
	}
	c.eventually("readyz", func() error { _, err := c.fetch("/readyz"); return err })
	c.eventually("the node has the driver", func() error {
		var node struct {
			Spec struct{ Drivers []struct{ Name string } }
		}
		c.get(&node, "csinode", c.node())
		for _, driver := range node.Spec.Drivers {
			if driver.Name == driverName {
				return nil
			}
		}
		return errors.New("CSINode does not list it")
	})
}

// remove deletes what deploy applied, and waits until it is gone.
func (c *cluster) remove() {
	c.t.Helper()
	c.feed(c.rendered("overlay"), "delete", "--wait", "--timeout", patience.String(), "-f", "-")
}

// restartDaemon has the DaemonSet replace its pod, as an update does.
func (c *cluster) restartDaemon() {
	c.t.Helper()
	c.kubectl("-n", namespace, "rollout", "restart", "daemonset/katbox")
	c.rolledOut()
}

// node is the name of the only node.
func (c *cluster) node() string {
	c.t.Helper()
	return c.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
}

// fetch reads a path of Katbox's HTTP listener.
func (c *cluster) fetch(path string) (string, error) {
	client := http.Client{Timeout: 10 * time.Second}
	reply, err := client.Get("http://127.0.0.1:" + port + path)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		return "", err
	}
	if reply.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %s", path, reply.Status, body)
	}
	return string(body), nil
}

// metric reads a sample of Katbox's metrics; name has the labels, if there are
// any.
func (c *cluster) metric(name string) (float64, error) {
	text, err := c.fetch("/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, name+" "); found {
			var value float64
			_, err := fmt.Sscan(rest, &value)
			return value, err
		}
	}
	return 0, fmt.Errorf("no metric %s", name)
}

// wantMetric waits until a metric has a value: what the kubelet does may go on.
func (c *cluster) wantMetric(name string, want float64) {
	c.t.Helper()
	c.eventually(name, func() error {
		got, err := c.metric(name)
		if err == nil && got != want {
			err = fmt.Errorf("is %v, want %v", got, want)
		}
		return err
	})
}

// builtManifests are those of an overlay here, with the places of these nodes, and with the images that
// were built of the daemon and of another program.
func (c *cluster) builtManifests(overlay, program string) string {
	c.t.Helper()
	text := c.kubectl("kustomize", overlay)
	text = strings.ReplaceAll(text, "/var/lib/kubelet", c.kubeletDir())
	text = strings.ReplaceAll(text, "/var/lib/csi-katbox-data", c.workdir())
	// No volume is to go early, however full the machine's disk is.
	text = headroom.ReplaceAllString(text, "$1--headroom=0.01\n$1--kubelet-line=1%,1%")
	programImage := regexp.MustCompile(`ghcr\.io/katbox/katbox-` + program + `:\S+`)
	for _, image := range []*regexp.Regexp{imageName, programImage} {
		if !image.MatchString(text) {
			c.t.Fatalf("the manifests do not have the image %s", image)
		}
	}
	name, tag, _ := strings.Cut(c.image, ":")
	text = programImage.ReplaceAllString(text, name+"-"+program+":"+tag)
	return imageName.ReplaceAllString(text, c.image)
}
