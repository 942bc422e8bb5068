//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// testOutOfReach takes from the API server the way to the gateway's pods, as on a platform whose control plane is outside of
// the network of pods; its way to nodes stays, and so do the ways between pods. The plugin says what is wrong, and on the
// network of the nodes the gateway is reached again.
func (c *gatewayCluster) testOutOfReach() {
	kept := c.retained("ci", 2, leaves("reach", "of before"))
	content := kept.path() + "/log?path=out%2Flog"
	c.wantIn(c.admin().does("check", "-A"), "v1alpha1.katbox.io is available", "all 3 are connected")

	reachPods := c.outOfReach("10250", "10.253.0.0/16")
	c.unavailable()
	if out := c.kubectl("-n", namespace, "get", "deployment", "katbox-gateway", "-o", "jsonpath={.status.readyReplicas}"); out != "2" {
		c.t.Errorf("%s replicas are ready, want 2", out)
	}
	c.kubectl("create", "namespace", "unreached")
	c.kubectl("delete", "namespace", "unreached", "--wait=false")
	c.eventually("the namespace says why it waits", func() error {
		out := c.kubectl("get", "namespace", "unreached", "-o",
			"jsonpath={.status.conditions[?(@.type=='NamespaceDeletionDiscoveryFailure')].status}")
		if out != "True" {
			return fmt.Errorf("its condition is %q", out)
		}
		return nil
	})
	c.wantCheck("the API server cannot connect to it", "addresses of pods", "gateway.hostNetwork=true",
		"no namespace of the cluster is deleted", "kubectl delete apiservice v1alpha1.katbox.io")

	// The address of node 1 is the API server's own machine's, which it always reaches.
	c.kubectl("uncordon", c.nodeName(3))
	c.kubectl("cordon", c.nodeName(1))
	defer c.kubectl("uncordon", c.nodeName(1))
	c.feed(c.builtManifests("overlay-gateway-nodes", "gateway"), "apply", "-f", "-")
	c.gatewayReady()
	c.kubectl("wait", "--for=delete", "namespace/unreached", "--timeout", patience.String())
	if hosts := strings.Fields(c.kubectl("-n", namespace, "get", "pods", "-l", "app.kubernetes.io/name=katbox-gateway", "-o",
		"jsonpath={.items[?(@.spec.hostNetwork==true)].status.hostIP}")); len(hosts) < 2 || hosts[0] == hosts[1] {
		c.t.Errorf("the replicas are on the nodes %q", hosts)
	}
	c.wantIn(c.admin().does("check", "-A"), "v1alpha1.katbox.io is available", "all 3 are connected")
	if got := c.as(bob).wantCode(http.StatusOK, content); got != "of before" {
		c.t.Errorf("on the network of the nodes bob reads %q", got)
	}

	// A firewall before the nodes.
	reachNodes := c.outOfReach("4443", "10.254.0.0/16")
	c.unavailable()
	c.wantCheck("the API server cannot connect to it", "addresses of nodes", "let it through")
	reachNodes()

	reachPods()
	c.feed(c.gatewayManifests(), "apply", "-f", "-")
	c.gatewayReady()
}

// outOfReach keeps what this machine's own processes send to a port of a network from getting there, until the function is
// called or the test ends. What the machine forwards from nodes and pods is not concerned, nor what it sends to an address of
// its own, as node 1's is.
func (c *gatewayCluster) outOfReach(port, network string) (again func()) {
	c.t.Helper()
	rule := []string{"pref", "99", "iif", "lo", "ipproto", "tcp", "dport", port, "to", network, "unreachable"}
	change := func(how string) {
		if out, err := c.try("", "ip", append([]string{"rule", how}, rule...)...); err != nil {
			c.t.Errorf("%v\n%s", err, out)
		}
	}
	change("add")
	again = sync.OnceFunc(func() { change("del") })
	c.t.Cleanup(again)
	return again
}

// unavailable waits until the API server has noticed that it does not reach the gateway.
func (c *gatewayCluster) unavailable() {
	c.t.Helper()
	c.kubectl("wait", "--for=condition=Available=False", "apiservice/v1alpha1.katbox.io", "--timeout", patience.String())
}

// wantCheck fails unless "kubectl katbox check" finds something wrong, and says so with each part.
func (c *gatewayCluster) wantCheck(parts ...string) {
	c.t.Helper()
	s := c.admin().katbox(c.t.TempDir(), "check", "-A")
	if s.code != 1 {
		c.t.Errorf("kubectl katbox check ends with %d:\n%s%s", s.code, s.stdout, s.stderr)
	}
	c.wantIn(s.stdout, parts...)
}
