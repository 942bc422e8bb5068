//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
)

// testStepsThatFail: whatever the array refuses, loses or answers with nonsense on the way of a pod to its
// volume, the pod waits, with an event. It starts when the array is well again, and nothing is doubled.
func (p *poolsCluster) testStepsThatFail() {
	for i, step := range []struct {
		method, path string
		fault        map[string]any
		// of is what has the event, which has the reason.
		of, reason string
	}{
		{http.MethodPost, "/api/volumes.json", map[string]any{"kind": "refuse", "text": "the pool has a bad day"}, "claim", "ProvisioningFailed"},
		{http.MethodPost, "/api/volumes.json", map[string]any{"kind": "http", "status": 503}, "claim", "ProvisioningFailed"},
		{http.MethodPost, "/api/volumes/*/update_comment.json", map[string]any{"kind": "lose-request"}, "claim", "ProvisioningFailed"},
		{http.MethodPost, "/api/servers.json", map[string]any{"kind": "refuse", "text": "no servers today"}, "pod", "FailedAttachVolume"},
		{http.MethodPost, "/api/servers/*/volumes.json", map[string]any{"kind": "html"}, "pod", "FailedAttachVolume"},
		{http.MethodPost, "/api/servers/*/volumes.json", map[string]any{"kind": "lose-answer", "times": 1}, "", ""},
	} {
		name := fmt.Sprintf("step-%d", i)
		step.fault["method"], step.fault["path"] = step.method, step.path
		p.fake(p.url, http.MethodPost, "/fake/faults", step.fault)
		c := claim{name: name}
		p.apply(c.String(), podWith(name, c))
		switch step.of {
		case "claim":
			p.wantEvent("PersistentVolumeClaim", name, step.reason)
		case "pod":
			p.wantEvent("Pod", name, step.reason)
		}
		if phase := p.kubectl("get", "pod", name, "-o", "jsonpath={.status.phase}"); step.of != "" && phase != "Pending" {
			p.t.Errorf("%s %s fails with %v, and the pod is %s", step.method, step.path, step.fault, phase)
		}
		p.arrayWaits(arrayLatency) // heals it
		volume := p.bound(name)
		p.kubectl("wait", "--for=condition=Ready", "--timeout=180s", "pod/"+name)
		var names []string
		for _, v := range p.onArray("volumes") {
			names = append(names, fmt.Sprint(v["display_name"]))
		}
		if !slices.Equal(names, []string{volume}) || len(p.onArray("servers")) != 1 || p.attachedTo(volume) == "" {
			p.t.Errorf("%s %s failed with %v: the array has the volumes %q and %d servers, and %s is attached to %q",
				step.method, step.path, step.fault, names, len(p.onArray("servers")), volume, p.attachedTo(volume))
		}
		p.kubectl("delete", "pod", name, "--wait=true")
		p.kubectl("delete", "pvc", name, "--wait=true", "--timeout=120s")
		p.wantNothingLeft()
	}
}

// testFinalizers: what something needs stays. A class waits for its pools, a pool for its volumes. Where the
// array is gone for ever, the annotation frees the resources, and nothing is changed on the array.
func (p *poolsCluster) testFinalizers() {
	p.classBeside()
	b := p.startBeside("b")
	p.apply(b.pool(""))
	p.wantState("pool", "b", "Ready")
	p.apply(claim{name: "one", class: besideClass}.String())
	volume := p.bound("one")

	p.kubectl("delete", "poolclass", besideClass, "--wait=false")
	p.wantEvent("PoolClass", besideClass, "DeleteBlocked", "it has 1 pools: b")
	p.kubectl("delete", "pool", "b", "--wait=false")
	p.wantEvent("Pool", "b", "DeleteBlocked", "the pool has 1 volumes and 0 snapshots of Katbox")
	p.wantState("pool", "b", "Deleting")

	p.kubectl("delete", "poolvolume", volume, "--wait=false")
	p.wantEvent("PoolVolume", volume, "DeleteBlocked", "the PersistentVolume "+volume+" names volume "+volume)

	p.kubectl("annotate", "pool", "b", "pools.katbox.io/forget=true")
	p.eventually("pool, class and volume are gone", func() error {
		if out := p.kubectl("get", "pools,poolclasses,poolvolumes", "-o", "jsonpath={.items[*].metadata.name}"); out != "a fast" {
			return errors.New(out)
		}
		return nil
	})
	if left := b.content("volumes"); len(left) != 1 || left[0]["display_name"] != volume {
		p.t.Errorf("a pool is forgotten, and its array has %v", left)
	}
	p.kubectl("delete", "pvc", "one", "--wait=true", "--timeout=120s")
	p.kubectl("delete", "storageclass", besideClass)
	p.withoutDefinition()
}

// withoutDefinition: the definition of the volumes is deleted while the controller runs. What claims need stays
// on the array, and goes with the claim. With the definition again the controller goes on.
func (p *poolsCluster) withoutDefinition() {
	p.apply(claim{name: "two"}.String())
	volume := p.bound("two")
	p.apply(snapshotOf("snap", "two"))
	p.kubectl("wait", "--for=jsonpath={.status.readyToUse}=true", "--timeout=120s", "volumesnapshot/snap")
	snapshot := p.kubectl("get", "poolsnapshots", "-o", "jsonpath={.items[*].metadata.name}")
	p.kubectl("delete", "poolsnapshot", snapshot, "--wait=false")
	p.wantEvent("PoolSnapshot", snapshot, "DeleteBlocked", "names snapshot "+snapshot)
	if left := p.onArray("snapshots"); len(left) != 1 {
		p.t.Errorf("a PoolSnapshot is deleted by hand, and the array has %v", left)
	}
	p.kubectl("delete", "volumesnapshot", "snap", "--wait=true", "--timeout=120s")
	p.eventually("the snapshot is gone", func() error {
		if left := p.onArray("snapshots"); len(left) > 0 {
			return fmt.Errorf("there is %v", left[0])
		}
		return nil
	})
	p.kubectl("delete", "crd", "poolvolumes.pools.katbox.io", "--wait=false")
	p.wantEvent("PoolVolume", volume, "DeleteBlocked", "the PersistentVolume "+volume+" names volume "+volume)
	if left := p.onArray("volumes"); len(left) != 1 {
		p.t.Errorf("the definition of the volumes is deleted, and the array has %v", left)
	}
	p.kubectl("delete", "pvc", "two", "--wait=true", "--timeout=120s")
	p.kubectl("wait", "--for=delete", "--timeout=120s", "crd/poolvolumes.pools.katbox.io")
	if left := p.onArray("volumes"); len(left) != 0 {
		p.t.Errorf("the claim is gone, and the array has %v", left)
	}
	p.kubectl("apply", "--server-side", "-k", filepath.Join("..", "crds"))
	p.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/poolvolumes.pools.katbox.io")
	p.apply(claim{name: "two"}.String())
	p.bound("two")
	p.kubectl("delete", "pvc", "two", "--wait=true", "--timeout=120s")
}
