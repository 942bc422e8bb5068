//go:build e2e

package e2e

import (
	"fmt"
	"time"
)

// snapshot takes a snapshot of a claim, and waits until it is ready.
func (a *arrayCluster) snapshot(name string, of claim) {
	a.t.Helper()
	a.apply(fmt.Sprintf(`
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: %s}
spec: {volumeSnapshotClassName: fast, source: {persistentVolumeClaimName: %s}}
`, name, of.name))
	a.kubectl("wait", "--for=jsonpath={.status.readyToUse}=true", "--timeout", patience.String(), "volumesnapshot/"+name)
}

// testCopies: what is restored from a snapshot is what the volume had then, and a clone is what its
// source has, by checksum; both are used beside their source, on the same node, and are larger where that is wanted.
func (a *arrayCluster) testCopies() {
	sources := kindsOfVolumes()
	place := map[string]string{"nfs": "/v/data", "ext4": "/v/data", "xfs": "/v/data", "block": "/dev/v"}
	write := func(c claim) string {
		return a.exec(c.name, fmt.Sprintf("dd if=/dev/urandom of=%[1]s bs=1M count=16 conv=fsync,notrunc 2>/dev/null && "+
			"dd if=%[1]s bs=1M count=16 2>/dev/null | sha256sum", place[c.name]))
	}
	for _, c := range sources {
		a.apply(c.String(), container{name: c.name, script: sleep, claim: c}.String())
	}
	for _, c := range sources {
		began := time.Now()
		a.running(c.name)
		then := write(c)
		a.snapshot("snap-"+c.name, c)
		now := write(c)
		if then == now {
			a.t.Fatalf("%s: both contents are %s", c.name, now)
		}
		restored, cloned := c, c
		restored.name, restored.source, restored.size = "restored-"+c.name, "snap-"+c.name, "2Gi"
		cloned.name, cloned.clone = "cloned-"+c.name, c.name
		for _, copied := range []struct {
			claim
			want string
			size int
		}{{restored, then, 2}, {cloned, now, 1}} {
			a.apply(copied.String(), container{name: copied.name, script: sleep, claim: copied.claim}.String())
			a.running(copied.name)
			if out := a.exec(copied.name, "dd if="+place[c.name]+" bs=1M count=16 2>/dev/null | sha256sum"); out != copied.want {
				a.t.Errorf("%s has the checksum %s, want %s", copied.name, out, copied.want)
			}
			a.wantSize(copied.name, copied.claim, copied.size)
			a.exec(copied.name, fmt.Sprintf("dd if=/dev/zero of=%s bs=1M count=1 conv=fsync,notrunc 2>/dev/null", place[c.name]))
		}
		if out := a.exec(c.name, "dd if="+place[c.name]+" bs=1M count=16 2>/dev/null | sha256sum"); out != now {
			a.t.Errorf("%s has the checksum %s after its copies were written to, want %s", c.name, out, now)
		}
		a.t.Logf("%s: %.0f s", c.name, time.Since(began).Seconds())
		a.kubectl("delete", "pod", c.name, restored.name, cloned.name, "--wait=true")
	}
	a.kubectl("delete", "pvc", "--all", "--wait=true", "--timeout", patience.String())
	a.kubectl("delete", "volumesnapshots", "--all", "--wait=true", "--timeout", patience.String())
}

// wantSize fails unless a pod's volume has as many GiB; a file system takes some of them for itself.
func (a *arrayCluster) wantSize(pod string, c claim, gib int) {
	a.t.Helper()
	if c.mode == "Block" {
		a.eventually(pod+" has a larger device", func() error {
			if out := a.exec(pod, "blockdev --getsize64 /dev/v"); out != fmt.Sprint(gib<<30) {
				return fmt.Errorf("it has %s bytes", out)
			}
			return nil
		})
		return
	}
	a.eventually(pod+" has a larger file system", func() error {
		var mib int
		out := a.exec(pod, "df -Pm /v | tail -1 | awk '{print $2}'")
		if _, err := fmt.Sscan(out, &mib); err != nil || mib < gib*870 || mib > gib*1024 {
			return fmt.Errorf("it has %s MiB", out)
		}
		return nil
	})
}
