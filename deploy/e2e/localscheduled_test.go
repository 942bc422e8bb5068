//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// testMostRoom: pods that may be on any node go where the class has the most room, from Kubernetes 1.37 on.
func (l *localCluster) testMostRoom() {
	const emptiest, pods = 2, 3
	for n := 1; n <= nodesWithDisks; n++ {
		if n != emptiest {
			name := fmt.Sprintf("fills-%d", n)
			l.apply(localPod{name: name, size: "1200Mi", node: n}.String())
			l.running(name)
		}
	}
	l.eventually("the scheduler knows where there is less room", func() error { return l.roomBelow(1<<30, nodesWithDisks-1) })
	there := 0
	for i := range pods {
		name := fmt.Sprintf("any-%d", i)
		l.apply(localPod{name: name, size: "150Mi"}.String())
		l.running(name)
		if l.nodeOf(name) == l.nodeName(emptiest) {
			there++
		}
	}
	report("pods on the node with the most room", "%d of %d", there, pods)
	if !strings.Contains(l.kubectl("get", "--raw", "/metrics"), `kubernetes_feature_enabled{name="StorageCapacityScoring",stage="BETA"} 1`) {
		l.t.Skipf("Kubernetes is older than 1.37: %d of %d pods are on the node with the most room, by chance", there, pods)
	}
	if there != pods {
		l.t.Errorf("%d of %d pods are on the node with the most room", there, pods)
	}
}

// roomBelow fails unless the scheduler sees less than bytes of room on exactly that number of nodes.
func (l *localCluster) roomBelow(bytes int64, nodes int) error {
	out, err := l.tryKubectl("", "-n", namespace, "get", "csistoragecapacities", "-o",
		`jsonpath={range .items[?(@.storageClassName=="nvme")]}{.capacity}{"\n"}{end}`)
	if err != nil {
		return err
	}
	below := 0
	for text := range strings.FieldsSeq(out) {
		room, err := resource.ParseQuantity(text)
		if err != nil {
			return err
		}
		if room.Value() < bytes {
			below++
		}
	}
	if below != nodes {
		return fmt.Errorf("%d nodes have less than %d bytes: %q", below, bytes, out)
	}
	return nil
}

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
