//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// claim is a PersistentVolumeClaim.
type claim struct {
	name, class, mode, access, size string
	// source is the snapshot that it is made from, clone the claim.
	source, clone string
}

func (c claim) String() string {
	if c.mode == "" {
		c.mode = "Filesystem"
	}
	if c.access == "" {
		c.access = "ReadWriteOnce"
	}
	if c.size == "" {
		c.size = "1Gi"
	}
	if c.class == "" {
		c.class = "fast"
	}
	source := ""
	switch {
	case c.source != "":
		source = fmt.Sprintf("\n  dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: %s}", c.source)
	case c.clone != "":
		source = fmt.Sprintf("\n  dataSource: {kind: PersistentVolumeClaim, name: %s}", c.clone)
	}
	return fmt.Sprintf(`
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s}
spec:
  storageClassName: %s
  volumeMode: %s
  accessModes: [%s]
  resources: {requests: {storage: %s}}%s
`, c.name, c.class, c.mode, c.access, c.size, source)
}

// podWith is a pod that uses a claim.
func podWith(name string, c claim) string {
	use := "volumeMounts: [{name: v, mountPath: /v}]"
	if c.mode == "Block" {
		use = "volumeDevices: [{name: v, devicePath: /dev/v}]"
	}
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "localhost/realkubelet/busybox:1", imagePullPolicy: Never, command: [sh, -c, exec sleep 9999], %s}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: %s}}]
`, name, use, c.name)
}

func (p *poolsCluster) apply(objects ...string) {
	p.t.Helper()
	p.feed(strings.Join(objects, ""), "apply", "-f", "-")
}

// bound waits until a claim is bound, and returns its volume's name.
func (p *poolsCluster) bound(name string) string {
	p.t.Helper()
	p.kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "--timeout=120s", "pvc/"+name)
	return p.kubectl("get", "pvc", name, "-o", "jsonpath={.spec.volumeName}")
}

// testLife: made, attached, grown, copied, detached, deleted. The name of the PersistentVolume is that of
// the PoolVolume and of the volume on the array.
func (p *poolsCluster) testLife() {
	one := claim{name: "one"}
	p.apply(one.String(), podWith("one", one))
	volume := p.bound("one")
	if state := p.kubectl("get", "poolvolume", volume, "-o", "jsonpath={.status.state} {.spec.claimRef.name}"); state != "Ready one" {
		p.t.Errorf("the PoolVolume is %q", state)
	}
	p.kubectl("wait", "--for=condition=Ready", "--timeout=120s", "pod/one")
	if p.attachedTo(volume) == "" {
		p.t.Error("a pod runs, and its volume is not attached on the array")
	}
	context := p.kubectl("get", "volumeattachments", "-o", "jsonpath={.items[*].status.attachmentMetadata}")
	if !strings.Contains(context, `"protocol":"nfs"`) || strings.Contains(context, "test_chap") {
		p.t.Errorf("the publish context is %s", context)
	}

	p.kubectl("patch", "pvc", "one", "-p", `{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`)
	p.kubectl("wait", "--for=jsonpath={.status.capacity.storage}=3Gi", "--timeout=120s", "pvc/one")
	for _, v := range p.onArray("volumes") {
		if size := fmt.Sprint(v["virtual_capacity"]); v["display_name"] == volume && size != "3" {
			p.t.Errorf("the array's volume has %s GiB, want 3", size)
		}
	}

	p.apply(snapshotOf("snap", "one"))
	p.kubectl("wait", "--for=jsonpath={.status.readyToUse}=true", "--timeout=120s", "volumesnapshot/snap")
	p.apply(claim{name: "two", source: "snap", size: "3Gi"}.String())
	copied := p.bound("two")
	if v := p.onArray("volumes"); len(v) != 2 || copied == volume {
		p.t.Errorf("%d volumes on the array, want 2", len(v))
	}

	// The array keeps what has snapshots: nothing is deleted as long as it is needed.
	p.kubectl("delete", "pod", "one", "--wait=true")
	p.kubectl("delete", "pvc", "one", "two", "--wait=true", "--timeout=120s")
	p.kubectl("delete", "volumesnapshot", "snap", "--wait=true", "--timeout=120s")
}

// testArrayAway: a pool whose array is away is Unreachable. What is attached stays so, claims wait, and
// all goes on when it is back.
func (p *poolsCluster) testArrayAway() {
	one, two := claim{name: "one"}, claim{name: "two"}
	p.apply(one.String(), podWith("one", one))
	volume := p.bound("one")
	p.kubectl("wait", "--for=condition=Ready", "--timeout=120s", "pod/one")
	p.array.end(syscall.SIGKILL)
	p.wantPool("Unreachable")
	p.apply(two.String())
	p.kubectl("delete", "pvc", "one", "--wait=false")
	p.kubectl("delete", "pod", "one", "--wait=false")
	p.eventually("the claim says why it waits", func() error {
		out := p.kubectl("get", "events", "--field-selector=involvedObject.name=two", "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(out, "Pool") {
			return errors.New(out)
		}
		return nil
	})
	if out := p.kubectl("get", "poolvolume", volume, "-o", "jsonpath={.metadata.name}"); out != volume {
		p.t.Errorf("the PoolVolume is gone while its array is away: %q", out)
	}
	p.startArray()
	p.wantPool("Ready")
	p.bound("two")
	p.kubectl("delete", "pvc", "two", "--wait=true", "--timeout=120s")
}

// testManyClaims: 1,000 claims, 50 at a time, each bound and deleted.
func (p *poolsCluster) testManyClaims() {
	const all, atOnce = 1000, 50
	began := time.Now()
	var made, gone time.Duration
	for batch := range all / atOnce {
		var objects, names []string
		for i := range atOnce {
			c := claim{name: fmt.Sprintf("c-%02d-%02d", batch, i)}
			objects, names = append(objects, c.String()), append(names, "pvc/"+c.name)
		}
		start := time.Now()
		p.apply(objects...)
		p.kubectl(append([]string{"wait", "--for=jsonpath={.status.phase}=Bound", "--timeout=170s"}, names...)...)
		made += time.Since(start)
		if v := p.onArray("volumes"); len(v) < atOnce {
			p.t.Errorf("%d claims are bound, and the array has %d volumes", atOnce, len(v))
		}
		start = time.Now()
		p.kubectl(append([]string{"delete", "--wait=true", "--timeout=170s"}, names...)...)
		gone += time.Since(start)
	}
	p.wantNothingLeft()
	p.t.Logf("%d claims, %d at a time, with an array that takes %s for a request: %.0f/s made, %.0f/s deleted, %s in all",
		all, atOnce, arrayLatency, all/made.Seconds(), all/gone.Seconds(), time.Since(began).Round(time.Second))
}
