//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"strings"
)

// debugPod is the name of the pod in what debug prints.
var debugPod = regexp.MustCompile(`katbox-debug-[a-z0-9]+`)

// testHold: people keep, release and delete what a job left, look at it from a pod, and see later why it
// is gone.
func (c *gatewayCluster) testHold() {
	volumes := c.failedJob()
	looked, other := volumes[0].Metadata.Name, volumes[1].Metadata.Name
	p := c.as(bob)
	p.doesNot(1, []string{"katbox-keep"}, "pin", "-n", "ci", looked, "--for", "48h", "--reason", "post-mortem")
	c.kubectl("-n", "ci", "create", "rolebinding", "hold", "--clusterrole=katbox-keep", "--user="+bob)
	defer c.kubectl("-n", "ci", "delete", "rolebinding", "hold")
	c.eventually("bob may pin", func() error {
		if s := p.katbox(c.t.TempDir(), "pin", "-n", "ci", looked, "--for", "48h", "--reason", "post-mortem"); s.code != 0 {
			return fmt.Errorf("%s", s.stderr)
		}
		return nil
	})
	c.shows(p.does("list", "-n", "ci"), "(pinned)")
	c.shows(p.does("stat", "-n", "ci", looked), "by bob: post-mortem", "Outcome:    Failed")

	made := p.does("debug", "-n", "ci", looked, "--image", c.busybox())
	pod := debugPod.FindString(made)
	exec := func(command string) (string, error) {
		return c.tryKubectl("", "-n", "ci", "exec", pod, "--", "sh", "-c", command)
	}
	if out, err := exec("cat /data/log"); err != nil || out != p.does("cat", "-n", "ci", looked+":log") {
		c.t.Errorf("%q, %v", out, err)
	}
	if out, err := exec("echo x > /data/log"); err == nil || !strings.Contains(err.Error(), "Read-only file system") {
		c.t.Errorf("a write: %q, %v", out, err)
	}
	p.doesNot(1, nil, "rm", "--yes", "-n", "ci", looked)
	c.kubectl("-n", "ci", "delete", "pod", pod, "--wait", "--timeout", patience.String())
	c.shows(p.does("list", "-n", "ci"), looked[:len(looked)-12], "(pinned)")

	p.does("unpin", "-n", "ci", looked)
	p.does("release", "-n", "ci", other, "--reason", "all is clear")
	c.shows(p.does("list", "-n", "ci", other), "(released)")
	c.eventually("the volume goes that no pod has attached", func() error {
		if s := p.katbox(c.t.TempDir(), "rm", "--yes", "-n", "ci", looked, "--reason", "leaked"); s.code != 0 {
			return fmt.Errorf("%s", s.stderr)
		}
		return nil
	})
	c.shows(p.does("list", "--gone", "-n", "ci"), "purged")
	c.shows(p.does("list", "--gone", "-n", "ci", "-o", "yaml"), "why: leaked", "by: bob", "reason: purged", "phase: Gone")
}

// shows reports what is not in a text.
func (c *gatewayCluster) shows(text string, parts ...string) {
	c.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			c.t.Errorf("%q is not in\n%s", part, text)
		}
	}
}
