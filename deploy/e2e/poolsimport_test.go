//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// testImport: what is on an array before its pool is Ready gets resources. What Katbox has made is its own
// again, with the claims that there are; what others have made can be used, and is never deleted there.
func (p *poolsCluster) testImport() {
	p.importOurs()
	p.importOthers()
}

// importOurs: the resources of a volume and a snapshot are lost while no controller runs. The next one finds
// both on the array, and the claim and the snapshot go on as if nothing had been.
func (p *poolsCluster) importOurs() {
	p.apply(claim{name: "one"}.String())
	volume := p.bound("one")
	p.apply(snapshotOf("snap", "one"))
	p.kubectl("wait", "--for=jsonpath={.status.readyToUse}=true", "--timeout=120s", "volumesnapshot/snap")
	before := p.kubectl("get", "poolvolumes,poolsnapshots", "-o", "jsonpath={.items[*].status.id} {.items[*].spec.claimRef.name}")

	p.scaleController(0)
	for _, kind := range []string{"poolsnapshots", "poolvolumes"} {
		for name := range strings.FieldsSeq(p.kubectl("get", kind, "-o", "jsonpath={.items[*].metadata.name}")) {
			p.kubectl("patch", kind, name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
			p.kubectl("delete", kind, name)
		}
	}
	p.scaleController(1)
	p.eventually("the volume and the snapshot have resources again", func() error {
		after := p.kubectl("get", "poolvolumes,poolsnapshots", "-o", "jsonpath={.items[*].status.id} {.items[*].spec.claimRef.name}")
		if after != before {
			return fmt.Errorf("they are %q, and were %q", after, before)
		}
		return nil
	})
	p.wantEvent("Pool", "a", "Imported", "imported 1 volumes and 1 snapshots again")
	p.wantState("poolvolume", volume, "Ready")

	two := claim{name: "two", source: "snap"}
	p.apply(two.String(), podWith("one", claim{name: "one"}))
	p.bound("two")
	p.kubectl("wait", "--for=condition=Ready", "--timeout=120s", "pod/one")
	if p.attachedTo(volume) == "" {
		p.t.Error("the volume that was imported is not attached on the array")
	}
	p.kubectl("delete", "pod", "one", "--wait=true")
	p.kubectl("delete", "volumesnapshot", "snap", "--wait=true", "--timeout=120s")
	p.kubectl("delete", "pvc", "one", "two", "--wait=true", "--timeout=120s")
	p.wantNothingLeft()
}

// scaleController waits until the controller has that number of pods.
func (p *poolsCluster) scaleController(replicas int) {
	p.t.Helper()
	p.kubectl("-n", namespace, "scale", "deployment/katbox-controller", fmt.Sprintf("--replicas=%d", replicas))
	p.eventually(fmt.Sprintf("the controller has %d pods", replicas), func() error {
		if pods := p.podsOfController(); len(pods) != replicas {
			return fmt.Errorf("it has %d", len(pods))
		}
		return nil
	})
	p.controllerReady()
}

// importOthers: volumes and a snapshot of strangers. A PersistentVolume may name such a volume, and a pod use
// it. Without the resources all is still on the array.
func (p *poolsCluster) importOthers() {
	b := p.startBeside("b")
	b.orders(http.MethodPost, "/fake/volumes", map[string]any{"name": "theirs", "size": 2})
	b.orders(http.MethodPost, "/fake/volumes", map[string]any{"name": "their-disk", "size": 3, "block": true})
	b.orders(http.MethodPost, "/fake/snapshots", map[string]any{"volume": b.content("volumes")[0]["name"], "name": "monday"})
	p.classBeside()
	p.apply(b.pool(", manageExternal: true"))
	p.wantState("pool", "b", "Ready")
	p.wantEvent("Pool", "b", "Imported", "3 volumes and snapshots of others")
	p.wantField("pool", "b", "{.status.counters.external} {.status.counters.volumes} {.status.counters.snapshots}", "2 0 1")
	const imported = "{.spec.management} {.status.state} {.status.capacity} {.spec.protocol}"
	p.wantField("poolvolume", "b-theirs", imported, "External Ready 2Gi nfs")
	p.wantField("poolvolume", "b-their-disk", imported, "External Ready 3Gi iscsi")

	// What comes later is found by the next comparison.
	b.orders(http.MethodPost, "/fake/volumes", map[string]any{"name": "later"})
	began := time.Now()
	p.wantField("pool", "b", "{.status.counters.external}", "3")
	p.t.Logf("a stranger's new volume is counted after %s, with --sync-interval=5s", time.Since(began).Round(100*time.Millisecond))

	p.apply(fmt.Sprintf(`
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: static}
spec:
  storageClassName: ""
  accessModes: [ReadWriteOnce]
  capacity: {storage: 2Gi}
  claimRef: {namespace: default, name: static}
  csi: {driver: %s, volumeHandle: b-theirs}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: static}
spec: {storageClassName: "", volumeName: static, accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}
`, poolsDriver), podWith("static", claim{name: "static"}))
	p.kubectl("wait", "--for=condition=Ready", "--timeout=120s", "pod/static")
	attached := ""
	for _, v := range b.content("volumes") {
		if v["display_name"] == "theirs" {
			attached, _ = v["server_ext_names"].(string)
		}
	}
	if attached == "" {
		p.t.Error("a pod runs with a stranger's volume, which is not attached on its array")
	}
	p.kubectl("delete", "pod", "static", "--wait=true")
	p.kubectl("delete", "pvc", "static", "--wait=true", "--timeout=120s")
	p.kubectl("delete", "pv", "static", "--wait=true", "--timeout=120s")
	p.eventually("the node's server record is deleted", func() error {
		if servers := b.content("servers"); len(servers) > 0 {
			return fmt.Errorf("there is %v", servers[0])
		}
		return nil
	})
	p.dropBeside("b")
	if v, s := b.content("volumes"), b.content("snapshots"); len(v) != 3 || len(s) != 1 {
		p.t.Errorf("the array of a pool that was deleted has %d volumes and %d snapshots of strangers, want 3 and 1", len(v), len(s))
	}
	p.eventually("their resources are gone", func() error {
		if out := p.kubectl("get", "poolvolumes,poolsnapshots", "-o", "name"); out != "" {
			return errors.New(out)
		}
		return nil
	})
}

// snapshotOf is a VolumeSnapshot of a claim.
func snapshotOf(name, claim string) string {
	return fmt.Sprintf(`
---
{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: %s},
  spec: {volumeSnapshotClassName: fast, source: {persistentVolumeClaimName: %s}}}
`, name, claim)
}
