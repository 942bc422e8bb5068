//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// testRestarts: the kubelet restarts, the DaemonSet replaces its pod and the
// daemon is killed while pods come and go and one runs all the time.
func (c *cluster) testRestarts() {
	w := c.startWriter("through-restarts")
	before := c.markers(nil, "")

	type outcome struct {
		churn
		err error
	}
	ended := make(chan outcome, 1)
	go func() {
		r, err := c.churn("csi", 100)
		ended <- outcome{r, err}
	}()

	c.wantMoreMarkers(before, 30)
	cancelled := c.cancelledStarts()
	c.restartKubelet()
	w.wantUnaffected("after the restart of the kubelet")
	c.wantMoreMarkers(before, 70)
	old := c.daemon()
	c.restartDaemon()
	if now := c.daemon(); now == old {
		c.t.Error("the rolling update replaced nothing")
	}
	w.wantUnaffected("after the rolling update")
	c.wantMoreMarkers(before, 120)
	if err := syscall.Kill(c.daemon().pid, syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}

	r := <-ended
	if r.err != nil {
		c.t.Fatal(r.err)
	}
	c.rolledOut()
	w.wantUnaffected("after the daemon was killed")
	cancelled = c.cancelledStarts() - cancelled
	c.wantClean(r.churn, cancelled)
	c.wantMarkers(r.churn)
	report("pods that the end of the kubelet cancelled", "%d", r.Failures)
	report("FailedMount events of 100 pods in three restarts", "%d", r.FailedMounts)
	for event, n := range r.Events {
		c.t.Logf("%d times: %s", n, event)
	}
	c.end(w.name)
	w.wantRetained()
	c.wantNoMounts()
}

// cancelledStarts counts the containers that did not start since the kubelet
// ended while it waited for that. Such a pod fails whatever its volumes are.
func (c *cluster) cancelledStarts() int {
	c.t.Helper()
	log, err := os.ReadFile(filepath.Join(c.state, "logs/containerd.log"))
	if err != nil {
		c.t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "StartContainer for") && strings.Contains(line, "context canceled") {
			n++
		}
	}
	return n
}

// process is the daemon's on the node.
type process struct {
	pid       int
	container string
}

// daemon finds the daemon's process.
func (c *cluster) daemon() process {
	c.t.Helper()
	var pods struct{ Items []status }
	c.get(&pods, "pods", "--namespace", namespace, "--selector", "app.kubernetes.io/name=katbox")
	if len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) != 1 {
		c.t.Fatalf("not one pod of Katbox with one container: %+v", pods.Items)
	}
	_, id, _ := strings.Cut(pods.Items[0].Status.ContainerStatuses[0].ContainerID, "://")
	return process{pid: c.pidOf(id), container: id}
}
