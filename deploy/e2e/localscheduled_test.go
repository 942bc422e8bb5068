//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// testWaitsForDriver: a pod that comes while its node does not have the driver is pending, and scheduled once the node has it:
// the scheduler looks again when a driver's limit in CSINode grows, so there has to be one.
func (l *localCluster) testWaitsForDriver() {
	const node = 2
	for n := 1; n <= nodesWithDisks; n++ {
		limit := l.kubectl("get", "csinode", l.nodeName(n), "-o", `jsonpath={.spec.drivers[?(@.name=="`+localDriver+`")].allocatable.count}`)
		if limit == "" {
			l.t.Errorf("in CSINode the driver of node %d has no limit", n)
		}
	}
	if _, err := l.tryKubectl("", "explain", "csidriver.spec.preventPodSchedulingIfMissing"); err != nil {
		l.t.Skipf("the API server is older than 1.35: %v", err)
	}
	l.overlay = "overlay-local-prevent"
	l.install()
	if out := l.kubectl("get", "csidriver", localDriver, "-o", "jsonpath={.spec.preventPodSchedulingIfMissing}"); out != "true" {
		l.t.Skipf("the API server is older than 1.37: preventPodSchedulingIfMissing is %q", out)
	}
	pool := l.pools()[l.nodeName(node)].Spec.Local.UUID
	l.kubectl("patch", "csinode", l.nodeName(node), "--type=json", "-p", `[{"op": "replace", "path": "/spec/drivers", "value": []}]`)
	l.apply(localPod{name: "early", size: "100Mi", node: node}.String())
	l.eventually("the scheduler misses the driver", func() error {
		if out := l.scheduling("early"); !strings.Contains(out, "CSI driver is not installed") {
			return errors.New("it says " + out)
		}
		return nil
	})
	l.killDaemon(node)
	l.eventually("both drivers are registered", func() error { return l.registered(node, pool) })
	began := time.Now()
	l.eventually("the pod has a node", func() error {
		if on := l.nodeOf("early"); on != l.nodeName(node) {
			return fmt.Errorf("its node is %q: %s", on, l.scheduling("early"))
		}
		return nil
	})
	report("from the driver's registration to the pod's node", "%.1f s", time.Since(began).Seconds())
	l.running("early")
}
