//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	apiGroup = "/apis/katbox.io/v1alpha1"
	// frontProxy is who kube-apiserver is for an aggregated API server.
	frontProxy = "front-proxy-client"
)

// gatewayCluster is a cluster of three nodes with RBAC and aggregation, and the gateway in it.
type gatewayCluster struct {
	*cluster
	began time.Time
	// archives: the gateway has a bucket, which counts as one more node.
	archives bool
}

// in returns the cluster for a subtest.
func (c *gatewayCluster) in(t *testing.T) *gatewayCluster {
	return &gatewayCluster{cluster: c.cluster.in(t), began: c.began, archives: c.archives}
}

// TestGateway installs Katbox with its gateway as an operator does. The long stream goes on beside
// the other scenarios.
func TestGateway(t *testing.T) {
	if os.Getenv("KATBOX_E2E_GATEWAY") == "" {
		t.Skip("the cluster has no aggregation: \"make e2e SUITE=gateway\" runs this")
	}
	c := &gatewayCluster{cluster: newCluster(t), began: time.Now()}
	c.serveDNS(nodesService)
	c.people()
	// Node 3 is to go without a replica.
	c.kubectl("cordon", c.nodeName(3))
	c.feed(c.gatewayManifests(), "apply", "-f", "-")
	c.gatewayReady()
	long := c.beginLongStream()
	for _, scenario := range []struct {
		name string
		run  func(*gatewayCluster)
	}{
		{"rights", (*gatewayCluster).testRights},
		{"kubectl", (*gatewayCluster).testKubectl},
		{"files", (*gatewayCluster).testFiles},
		{"outcomes", (*gatewayCluster).testGatewayOutcomes},
		{"trust", (*gatewayCluster).testTrust},
		{"nodes", (*gatewayCluster).testNodeTrust},
		{"namespaces", (*gatewayCluster).testNamespaces},
		{"missing", (*gatewayCluster).testMissingNode},
		{"throughput", (*gatewayCluster).testThroughput},
		{"kubectl proxy", (*gatewayCluster).testProxy},
	} {
		t.Run(scenario.name, func(t *testing.T) { scenario.run(c.in(t)) })
	}
	t.Run("long stream", func(t *testing.T) { long(t) })
	for _, scenario := range []struct {
		name string
		run  func(*gatewayCluster)
	}{
		{"controllers", (*gatewayCluster).testControllers},
		{"rollout", (*gatewayCluster).testRollout},
		{"plugin", (*gatewayCluster).testPlugin},
		{"hold", (*gatewayCluster).testHold},
		{"page", (*gatewayCluster).testPage},
		{"away", (*gatewayCluster).testAway},
		{"out of reach", (*gatewayCluster).testOutOfReach},
		{"removal", (*gatewayCluster).testRemoval},
	} {
		t.Run(scenario.name, func(t *testing.T) { scenario.run(c.in(t)) })
	}
}

// gatewayManifests are those of the overlay with the gateway.
func (c *gatewayCluster) gatewayManifests() string {
	c.t.Helper()
	return c.builtManifests("overlay-gateway", "gateway")
}

// gatewayReady waits until everything is rolled out and each node is connected to each replica.
func (c *gatewayCluster) gatewayReady() {
	c.t.Helper()
	for _, what := range []string{"deployment/katbox-gateway", "daemonset/katbox"} {
		if out, err := c.tryKubectl("", "-n", namespace, "rollout", "status", what, "--timeout", patience.String()); err != nil {
			c.t.Fatalf("%v\n%s\n%s", err, out, c.kubectl("-n", namespace, "describe", "pods"))
		}
	}
	c.kubectl("wait", "--for=condition=Available", "apiservice/v1alpha1.katbox.io", "--timeout", patience.String())
	c.wholeFleet()
}

// wholeFleet waits until each replica reports all three nodes.
func (c *gatewayCluster) wholeFleet() {
	c.t.Helper()
	nodes := 3
	if c.archives {
		nodes++
	}
	c.eventually("both replicas have all nodes", func() error {
		for range 8 { // the API server takes one replica or the other
			var list rvList
			if err := c.admin().read(&list, apiGroup+"/retainedvolumes?limit=1"); err != nil {
				return err
			}
			if list.Fleet.Nodes != nodes || len(list.Fleet.Missing) > 0 {
				return fmt.Errorf("the fleet is %+v", list.Fleet)
			}
		}
		return nil
	})
}

// rvList is what the tests read of a list.
type rvList struct {
	Metadata struct {
		Continue           string
		RemainingItemCount *int
	}
	Fleet struct {
		Nodes, Asked, Answered int
		Missing                []struct{ Node, Since, Reason string }
	}
	Items []rv
}

// rv is what the tests read of a retained volume.
type rv struct {
	Metadata struct {
		Name, Namespace, UID string
		Labels               map[string]string
	}
	Spec struct {
		PodName, PodUID, VolumeName, NodeName, VolumeID, NamespaceUID string
		Owner                                                         struct {
			Kind, Name, UID string
			Guessed         bool
		}
	}
	Status struct {
		Phase, Outcome, PublishedAt, RetainedAt, ExpiresAt string
		Bytes                                              *int64
	}
}

// nodeName and nodeDir are those of node n, from 1 on.
func (c *cluster) nodeName(n int) string {
	if n == 1 {
		return "rk-node"
	}
	return fmt.Sprintf("rk-node-%d", n)
}

func (c *cluster) nodeDir(n int) string {
	if n == 1 {
		return c.state
	}
	return filepath.Join(c.state, "nodes", fmt.Sprint(n))
}

// script runs a script of the cluster.
func (c *cluster) script(name string, args ...string) {
	c.t.Helper()
	if out, err := c.try("", "bash", append([]string{filepath.Join(c.scripts, name)}, args...)...); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
}

// retained runs a pod on a node to its failure, deletes it and waits until the gateway shows its
// volume. The pod has the given labels.
func (c *gatewayCluster) retained(ns string, n int, p pod) rv {
	c.t.Helper()
	return c.retainedAfter(ns, n, p, func() {})
}

// retainedAfter is retained for a pod that fails once while has returned. That is called when the pod was created.
func (c *gatewayCluster) retainedAfter(ns string, n int, p pod, while func()) rv {
	c.t.Helper()
	there := *c.cluster
	there.pods = ns
	p.Node = c.nodeName(n)
	uid := there.create(p)
	while()
	there.wantPhase(p.Name, "Failed")
	there.end(p.Name)
	var found rv
	c.eventually("the volume of "+ns+"/"+p.Name, func() error {
		var list rvList
		if err := c.admin().read(&list, apiGroup+"/namespaces/"+ns+"/retainedvolumes?fieldSelector=spec.podUID%3D"+uid); err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d volumes", len(list.Items))
		}
		found = list.Items[0]
		return nil
	})
	return found
}

func (v rv) path() string {
	return apiGroup + "/namespaces/" + v.Metadata.Namespace + "/retainedvolumes/" + v.Metadata.Name
}

// gatewayLogs are the logs of all replicas that run.
func (c *gatewayCluster) gatewayLogs() string {
	c.t.Helper()
	return c.kubectl("-n", namespace, "logs", "-l", "app.kubernetes.io/name=katbox-gateway", "--tail=-1", "--prefix")
}

var errStillThere = errors.New("it is still there")
