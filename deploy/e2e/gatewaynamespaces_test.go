//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// finalized deletes a namespace, and waits until it is gone.
func (c *gatewayCluster) finalized(ns string) {
	c.t.Helper()
	c.kubectl("delete", "namespace", ns, "--wait", "--timeout", patience.String())
}

// testNamespaces: a namespace goes without its volumes, and one of the same name does not inherit
// them. It covers T11 and T20.
func (c *gatewayCluster) testNamespaces() {
	c.kubectl("create", "namespace", "again")
	old := c.retained("again", 2, leaves("tenant", "of the first"))
	c.finalized("again")
	if logs := c.gatewayLogs(); strings.Contains(logs, "namespace-controller") {
		c.t.Error("the namespace controller asked the gateway")
	}
	if _, err := os.Stat(filepath.Join(c.nodeDir(2), "katbox-data", old.Spec.PodUID, old.Spec.VolumeID)); err != nil {
		c.t.Errorf("the volume went with its namespace: %v", err)
	}
	c.kubectl("create", "namespace", "again")
	c.kubectl("-n", "again", "create", "rolebinding", "bob", "--clusterrole=admin", "--user="+bob)
	c.eventually("bob's right", func() error { _, err := c.as(bob).run("get", "pods", "-n", "again"); return err })

	p := c.as(bob)
	p.wantSees("again")
	p.cannot([]string{"NotFound"}, "get", "rv", "-n", "again", old.Metadata.Name)
	p.cannot([]string{"NotFound"}, "delete", "rv", "-n", "again", old.Metadata.Name)
	p.wantCode(http.StatusNotFound, old.path()+"/files")
	p.wantCode(http.StatusNotFound, old.path()+"/log?path=out%2Flog")
	mine := c.retained("again", 1, leaves("tenant", "of the second"))
	p.wantSees("again", mine)
	if got := p.wantCode(http.StatusOK, mine.path()+"/log?path=out%2Flog"); got != "of the second" {
		c.t.Errorf("bob reads %q", got)
	}
	c.admin().wantSees("again", old, mine)
	for _, v := range c.admin().list("again", "").Items {
		if foreign := v.Metadata.Labels["katbox.io/foreign"] == "true"; foreign != (v.Metadata.Name == old.Metadata.Name) {
			c.t.Errorf("%s has the labels %v", v, v.Metadata.Labels)
		}
	}
	if got := c.admin().wantCode(http.StatusOK, old.path()+"/log?path=out%2Flog"); got != "of the first" {
		c.t.Errorf("an administrator reads %q", got)
	}
	c.finalized("again")
}

// testMissingNode: a node that is away is named. It covers T38 for one of three nodes.
func (c *gatewayCluster) testMissingNode() {
	there, away := c.retained("ci", 1, leaves("there", "x")), c.retained("ci", 3, leaves("away", "y"))
	c.script("node.sh", "kill", "3")
	c.eventually("node 3 is missing", func() error {
		list := c.admin().list("ci", "")
		if len(list.Fleet.Missing) != 1 || list.Fleet.Missing[0].Node != c.nodeName(3) {
			return fmt.Errorf("the fleet is %+v", list.Fleet)
		}
		return nil
	})
	began := time.Now()
	answer, body := c.as(alice).ask(http.MethodGet, apiGroup+"/namespaces/ci/retainedvolumes", nil)
	if took := time.Since(began); took > 5*time.Second {
		c.t.Errorf("a list without node 3 took %s", took)
	}
	c.wantIn(answer.Header.Get("Warning"), c.nodeName(3))
	c.wantIn(body, there.Metadata.Name)
	answer, body = c.as(alice).ask(http.MethodGet, away.path(), nil)
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
		c.t.Errorf("a volume of node 3: %s", answer.Status)
	}
	c.wantIn(body, c.nodeName(3), "ServiceUnavailable")
	c.kubectl("uncordon", c.nodeName(3)) // the script waits until pods can come
	c.script("node.sh", "start", "3")
	c.gatewayReady()
	if got := c.as(bob).wantCode(http.StatusOK, away.path()+"/log?path=out%2Flog"); got != "y" {
		c.t.Errorf("after node 3 is back bob reads %q", got)
	}
}

// testControllers: no controller lists or watches retained volumes (T12). The scenarios before took
// more than ten minutes.
func (c *gatewayCluster) testControllers() {
	if past := time.Since(c.began); past < 10*time.Minute {
		time.Sleep(10*time.Minute - past)
	}
	for line := range strings.Lines(string(c.secret("logs/audit.log"))) {
		if strings.Contains(line, "/apis/katbox.io/v1alpha1/") && strings.Contains(line, "retainedvolumes") &&
			(strings.Contains(line, `"username":"system:`) || strings.Contains(line, "kube-controller-manager")) {
			c.t.Errorf("a controller asks: %s", line)
		}
	}
}

// testAway: without the gateway a namespace waits, and nothing else does (T13).
func (c *gatewayCluster) testAway() {
	c.kubectl("-n", namespace, "scale", "deployment/katbox-gateway", "--replicas=0")
	c.kubectl("wait", "--for=condition=Available=False", "apiservice/v1alpha1.katbox.io", "--timeout", patience.String())
	c.kubectl("create", "namespace", "waits")
	c.kubectl("delete", "namespace", "waits", "--wait=false")
	c.eventually("the namespace says why it waits", func() error {
		out := c.kubectl("get", "namespace", "waits", "-o",
			"jsonpath={.status.conditions[?(@.type=='NamespaceDeletionDiscoveryFailure')].status}")
		if out != "True" {
			return fmt.Errorf("its condition is %q", out)
		}
		return nil
	})
	c.kubectl("get", "pods", "-A")
	// Pods get and lose volumes as ever.
	there := *c.cluster
	there.pods = "ci"
	there.succeeds(pod{Name: "meanwhile", Node: c.nodeName(2), Scripts: []string{"echo x > /scratch/file"}})
	c.kubectl("-n", namespace, "scale", "deployment/katbox-gateway", "--replicas=2")
	c.gatewayReady()
	c.kubectl("wait", "--for=delete", "namespace/waits", "--timeout", patience.String())
	c.eventually("the volume of the time without a gateway", func() error {
		for _, v := range c.admin().list("ci", "").Items {
			if v.Spec.PodName == "meanwhile" {
				return nil
			}
		}
		return errStillThere
	})
}

// testRemoval: the documented removal leaves no APIService, and namespaces go (T14).
func (c *gatewayCluster) testRemoval() {
	c.kubectl("delete", "apiservice", "v1alpha1.katbox.io", "--wait")
	c.feed(c.gatewayManifests(), "delete", "--ignore-not-found", "--wait", "--timeout", patience.String(), "-f", "-")
	if left := c.kubectl("get", "apiservices", "-o", "name"); strings.Contains(left, "katbox.io") {
		c.t.Errorf("there is still %s", left)
	}
	c.finalized("ci")
	c.finalized("other")
}
