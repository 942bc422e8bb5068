//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// rateDisk is the size of the one disk, of which only what is written to takes room on the machine.
	rateDisk = 120 << 30
	// rateNode is the node that has it.
	rateNode = 1
	// mostOfFew is how many claims there are at most of a kind that is measured for comparison.
	mostOfFew = 200
)

// rateFlags are those of the sidecars with which they send more requests than they do as installed. The controller looks
// at its pools as often as it does as installed.
var rateFlags = strings.NewReplacer("--kube-api-qps=200", "--kube-api-qps=1000", "--kube-api-burst=400", "--kube-api-burst=2000",
	"- --strict-topology=true", "- --strict-topology=true\n        - --worker-threads=200",
	"--probe-interval=2s", "--probe-interval=50s", "--sync-interval=5s", "--sync-interval=5m", "--log-level=debug", "--log-level=info")

// rateClass makes volumes in the one pool that there is, before any pod wants them.
const rateClass = `
apiVersion: pools.katbox.io/v1alpha1
kind: PoolClass
metadata: {name: nvme}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: nvme}
provisioner: ` + localDriver + `
parameters: {poolClass: nvme}
volumeBindingMode: Immediate
`

// TestRateOfLocalClaims measures how fast claims are bound, and their volumes deleted, 50 at a time, on one disk of one
// node, and what daemon and controller take with all of them. KATBOX_E2E_CLAIMS says how many; by default 10,000. As in
// TestRateOfClaims the controller manager needs limits of its own.
//
// Kubernetes binds one claim at a time, with three requests in a row. How long these take, and so how fast claims can be
// bound at all, is reported beside each rate, and the rate of a driver whose volumes are empty directories.
func TestRateOfLocalClaims(t *testing.T) {
	if os.Getenv("KATBOX_E2E_LOCAL") == "" {
		t.Skip(`the cluster is another: "make e2e SUITE=local-rate" runs this`)
	}
	claims := 10_000
	if text := os.Getenv("KATBOX_E2E_CLAIMS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("KATBOX_E2E_CLAIMS: %v", err)
		}
		claims = n
	}
	l := &localCluster{newPoolsCluster(t, "overlay-local")}
	l.serveDNS(localNodes)
	for n := 1; n <= nodesWithDisks; n++ {
		l.makeMountPoint(n)
	}
	l.makeDisk(rateNode, "xfs", rateDisk)
	l.mountDisk(rateNode)
	l.installAs(rateFlags.Replace)
	l.feed(rateClass, "apply", "--server-side", "-f", "-")
	l.wantPoolOf(rateNode, "Ready")
	c := newCrowd(l.poolsCluster)
	t.Logf("the controller manager has the flags %q", os.Getenv("RK_CONTROLLER_MANAGER_EXTRA"))
	fewer := min(claims/10, mostOfFew)
	made, gone := l.rateOfFloor(c, fewer)
	t.Logf("%d claims of a driver of empty directories: %.1f/s made, %.1f/s deleted", fewer, made, gone)
	l.in(t).wantNothingLeftOf(rateNode)
	block := corev1.PersistentVolumeBlock
	for _, one := range []struct {
		what   string
		size   string
		mode   *corev1.PersistentVolumeMode
		claims int
	}{
		{"with ext4, 8 MiB", "8Mi", nil, fewer},
		{"block, 1 MiB", "1Mi", &block, claims},
	} {
		c.spec = crowdSpec("nvme", one.size)
		c.spec.VolumeMode = one.mode
		before := l.took()
		made := l.rate(c, "made, "+one.what, one.claims, c.make, binding)
		with := l.took()
		l.found(fmt.Sprintf("memory with %d volumes, %s", one.claims, one.what),
			"daemon %.0f MiB (%.0f before), controller %.0f MiB (%.0f before)", with.daemon, before.daemon, with.controller, before.controller)
		l.measureStart(one.claims, one.what)
		l.wantProvisioner(c, one.claims)
		gone := l.rate(c, "deleted, "+one.what, one.claims, c.remove, releasing)
		l.in(t).wantNothingLeftOf(rateNode)
		t.Logf("%d claims, %s: %.1f/s made, %.1f/s deleted", one.claims, one.what, made, gone)
	}
	l.in(t).wantAllowed()
}

// wantProvisioner waits until the sidecars, which end with the controller, are there again: until one more claim was bound
// and has gone.
func (l *localCluster) wantProvisioner(c *crowd, n int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	if err := errors.Join(c.make(ctx, n), c.remove(ctx, n)); err != nil {
		l.t.Fatal(err)
	}
}

// rate does something for each claim, and reports how fast that was and what has taken the time.
func (l *localCluster) rate(c *crowd, what string, claims int, do func(context.Context, int) error, one turn) float64 {
	l.t.Helper()
	before := usedByPrograms(l.t)
	ctx, cancel := context.WithTimeout(l.t.Context(), crowdLongest)
	defer cancel()
	began := time.Now()
	if err := c.each(ctx, claims, do); err != nil {
		l.t.Fatal(err)
	}
	took := time.Since(began)
	rate := float64(claims) / took.Seconds()
	steps, turnTakes := l.stepsSince(began, one)
	l.found(fmt.Sprintf("%d claims %s (wanted: 20/s)", claims, what),
		"%.1f/s; the binder takes %.0f ms for each, one at a time: %.1f/s at most", rate, turnTakes.Seconds()*1000, 1/turnTakes.Seconds())
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Logf("%s: %.1f s; load of the machine: %s; CPU: %s", what, took.Seconds(), strings.TrimSpace(string(load)),
		usedSince(l.t, before, took))
	l.t.Logf("the way of a claim: %s", steps)
	l.t.Logf("requests to the API server, for each claim: %s", l.requestsSince(began, claims))
	return rate
}

// found reports a figure, and logs it at once: the whole takes long.
func (l *localCluster) found(what, format string, args ...any) {
	l.t.Helper()
	report(what, format, args...)
	l.t.Logf("%s: %s", what, fmt.Sprintf(format, args...))
}

// programs is what the programs have in memory, in MiB.
type programs struct{ daemon, controller float64 }

func (l *localCluster) took() programs {
	l.t.Helper()
	_, daemon := l.daemonPod(rateNode)
	_, controller := l.podOfController()
	return programs{
		l.memory(l.processOf("/katbox", daemon)) / (1 << 20), l.memory(l.processOf("/katbox-controller", controller)) / (1 << 20),
	}
}

// measureStart kills daemon and controller, and reports how long each takes from the moment that its next process is there
// until it has all volumes: the daemon can use the pool, the controller's pod is ready. That waits for its sidecars too,
// which end with the controller, and the node connects within half a minute, as not all do at once.
func (l *localCluster) measureStart(volumes int, what string) {
	l.t.Helper()
	l.killDaemon(rateNode)
	began := time.Now()
	up := fmt.Sprintf(`katbox_local_pool_up{class="nvme",path=%q} 1`, l.diskDir())
	l.eventually("the daemon has read its pool", func() error {
		out, err := l.try("", "curl", "--silent", "--max-time", "2", "http://127.0.0.1:9810/metrics")
		if err == nil && !strings.Contains(out, up) {
			err = errors.New("no metric " + up)
		}
		return err
	})
	daemon := time.Since(began)

	_, uid := l.podOfController()
	old := l.processOf("/katbox-controller", uid)
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		l.t.Fatal(err)
	}
	l.eventually("the controller is started again", func() error {
		if now := l.processOf("/katbox-controller", uid); now == 0 || now == old {
			return fmt.Errorf("its process is %d", now)
		}
		return nil
	})
	began = time.Now()
	l.controllerReady()
	controller := time.Since(began)
	l.wantPoolOf(rateNode, "Ready")
	connected := time.Since(began)
	after := l.took()
	l.found(fmt.Sprintf("start with %d volumes, %s", volumes, what),
		"daemon %.1f s, %.0f MiB; controller's pod %.1f s, %.0f MiB; its node is back after %.1f s",
		daemon.Seconds(), after.daemon, controller.Seconds(), after.controller, connected.Seconds())
}
