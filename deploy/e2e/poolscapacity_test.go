//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// mode sets how full the array says that its pool is; used is what is in use of it, in GiB.
func (b *beside) mode(mode string, used int) {
	b.p.t.Helper()
	b.orders(http.MethodPatch, "/fake/pools/pool-00000001", map[string]any{"mode": mode, "used": used << 10})
}

// figures are the capacity and the mode in a status.
const figures = "{.status.capacity.total} {.status.capacity.available} {.status.capacity.mode}"

// testCapacity: a pool's room and counters follow its array within an interval, the class adds its pools up,
// and its mode is the worst of theirs.
func (p *poolsCluster) testCapacity() {
	p.classBeside()
	b, c := p.startBeside("b", "--pools=1000"), p.startBeside("c", "--pools=3000")
	p.apply(b.pool(""), c.pool(""))
	p.wantState("pool", "b", "Ready")
	p.wantState("pool", "c", "Ready")
	p.wantField("poolclass", besideClass, figures, "4000Gi 4000Gi normal")
	for _, step := range []struct {
		change func()
		pool   *beside
		// of is what the pool says, and class what its class does.
		of, class string
	}{
		{func() { b.mode("normal", 250) }, b, "1000Gi 750Gi normal", "4000Gi 3750Gi normal"},
		{func() { b.mode("alert", 900) }, b, "1000Gi 100Gi alert", "4000Gi 3100Gi alert"},
		{func() { c.mode("protected", 2800) }, c, "3000Gi 200Gi protected", "4000Gi 300Gi protected"},
		{func() { b.mode("emergency", 990) }, b, "1000Gi 10Gi emergency", "4000Gi 210Gi emergency"},
		{func() { b.mode("normal", 0) }, b, "1000Gi 1000Gi normal", "4000Gi 1200Gi protected"},
		{func() { c.mode("normal", 0) }, c, "3000Gi 3000Gi normal", "4000Gi 4000Gi normal"},
		// An array that does not say its mode: the thresholds of the Pool decide.
		{func() { c.mode("", 2500) }, c, "3000Gi 500Gi alert", "4000Gi 1500Gi alert"},
		{func() { c.mode("", 0) }, c, "3000Gi 3000Gi normal", "4000Gi 4000Gi normal"},
	} {
		began := time.Now()
		step.change()
		p.wantField("pool", step.pool.name, figures, step.of)
		p.t.Logf("%s: %s after %s, with --probe-interval=2s", step.pool.name, step.of, time.Since(began).Round(100*time.Millisecond))
		p.wantField("poolclass", besideClass, figures, step.class)
	}
	p.wantEvent("Pool", "b", "CapacityAlert", "emergency")
	p.wantEvent("Pool", "b", "CapacityNormal", "normal again")

	one := claim{name: "one", class: besideClass}
	p.apply(one.String(), podWith("one", one))
	volume := p.bound("one")
	p.kubectl("wait", "--for=condition=Ready", "--timeout=120s", "pod/one")
	p.apply(snapshotOf("snap", "one"))
	p.kubectl("wait", "--for=jsonpath={.status.readyToUse}=true", "--timeout=120s", "volumesnapshot/snap")
	pool := p.kubectl("get", "poolvolume", volume, "-o", "jsonpath={.spec.poolName}")
	p.wantField("pool", pool, "{.status.counters.volumes} {.status.counters.snapshots} {.status.counters.attachments}", "1 1 1")
	p.wantField("poolclass", besideClass, "{.status.counters.pools} {.status.counters.volumes} {.status.counters.snapshots}", "2 1 1")
	p.wantField("pool", pool, "{.status.capacity.provisioned}", "1Gi")
	p.kubectl("delete", "pod", "one", "--wait=true")
	p.kubectl("delete", "volumesnapshot", "snap", "--wait=true", "--timeout=120s")
	p.kubectl("delete", "pvc", "one", "--wait=true", "--timeout=120s")
	p.wantField("pool", pool, "{.status.counters.volumes} {.status.counters.snapshots} {.status.counters.attachments}", "  ") // no zeros
	p.dropBeside("b", "c")
}

// testAllocator: a new volume goes past the pools that are Unreachable, Incompatible, protected, full or not to
// be used. Where none is left, the claim waits with an event that says why for each, and is bound when one is.
func (p *poolsCluster) testAllocator() {
	p.classBeside()
	var away, old, guarded, full, not *beside
	all := []struct {
		array **beside
		name  string
		why   string
	}{
		{&away, "away", "Unreachable"}, {&old, "old", "Incompatible: its version is 19.08"},
		{&guarded, "guarded", "the capacity mode is protected"},
		{&full, "full", "2 GiB free; 10 GiB are needed"}, {&not, "not", "unschedulable"},
	}
	var names, why []string
	for _, one := range all {
		*one.array = p.startBeside(one.name, "--pools=100")
		p.apply((*one.array).pool(""))
		names = append(names, one.name)
		why = append(why, "pool "+one.name+": "+one.why)
	}
	for _, name := range names {
		p.wantState("pool", name, "Ready")
	}
	away.end(syscall.SIGKILL)
	old.orders(http.MethodPatch, "/fake/settings", map[string]any{"version": "19.08"})
	guarded.mode("protected", 92)
	full.mode("normal", 98)
	p.kubectl("patch", "pool", "not", "--type=merge", "-p", `{"spec":{"unschedulable":true}}`)
	p.wantState("pool", "away", "Unreachable")
	p.wantState("pool", "old", "Incompatible")
	p.wantField("pool", "guarded", "{.status.capacity.mode}", "protected")
	p.wantField("pool", "full", "{.status.capacity.available}", "2Gi")

	small, large := claim{name: "small", class: besideClass}, claim{name: "large", class: besideClass, size: "10Gi"}
	p.apply(small.String()) // one pool is left for it
	if pool := p.kubectl("get", "poolvolume", p.bound("small"), "-o", "jsonpath={.spec.poolName}"); pool != "full" {
		p.t.Errorf("the small volume is in pool %s, and only the pool full takes it", pool)
	}
	p.kubectl("delete", "pvc", "small", "--wait=true", "--timeout=120s")
	p.wantField("pool", "full", "{.status.capacity.available} {.status.counters.volumes}", "2Gi ")

	p.apply(large.String())
	p.wantEvent("PersistentVolumeClaim", "large", "ProvisioningFailed", append(why, "ResourceExhausted")...)
	if phase := p.kubectl("get", "pvc", "large", "-o", "jsonpath={.status.phase}"); phase != "Pending" {
		p.t.Errorf("a claim that no pool takes is %s", phase)
	}
	guarded.mode("normal", 0)
	if pool := p.kubectl("get", "poolvolume", p.bound("large"), "-o", "jsonpath={.spec.poolName}"); pool != "guarded" {
		p.t.Errorf("the large volume is in pool %s, and the pool guarded has become free", pool)
	}
	p.kubectl("delete", "pvc", "large", "--wait=true", "--timeout=120s")
	p.eventually("its volume is gone", func() error {
		if left := guarded.content("volumes"); len(left) > 0 {
			return fmt.Errorf("%d are left", len(left))
		}
		return nil
	})
	p.t.Logf("none is left: %s", strings.Join(why, "; "))
	p.dropBeside(names...)
}
