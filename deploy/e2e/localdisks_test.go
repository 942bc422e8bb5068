//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// scheduling is what the scheduler says of a pod that waits.
func (l *localCluster) scheduling(pod string) string {
	l.t.Helper()
	return l.kubectl("get", "pod", pod, "-o", `jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}`)
}

// wantData waits until a pod runs, and fails unless a file in its volume has a checksum.
func (l *localCluster) wantData(pod, sum string) {
	l.t.Helper()
	l.eventually("pod "+pod+" has its data", func() error {
		out, err := l.tryKubectl("", "exec", pod, "--", "sh", "-c", "sha256sum </v/data")
		if err == nil && strings.TrimSpace(out) != sum {
			l.t.Fatalf("the data are %q, want %q", out, sum)
		}
		return err
	})
}

// testDrained: a pod with a volume waits while its node is drained, others go elsewhere, and it has its data where it was
// once the node takes pods again.
func (l *localCluster) testDrained() {
	l.apply(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: local}}
  template:
    metadata: {labels: {app: local}}
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: 1
      containers:
      - name: c
        image: "localhost/realkubelet/busybox:1"
        imagePullPolicy: Never
        command: [sh, -c, "` + sleep + `"]
        volumeMounts: [{name: v, mountPath: /v}]
  volumeClaimTemplates:
  - metadata: {name: v}
    spec: {storageClassName: nvme, accessModes: [ReadWriteOnce], resources: {requests: {storage: 300Mi}}}
`)
	l.kubectl("wait", "--for=create", "--timeout", patience.String(), "pod/db-0")
	l.running("db-0")
	on, volume := l.nodeOf("db-0"), l.bound("v-db-0")
	sum := l.exec("db-0", write("/v/data", 100)+" && sync && sha256sum </v/data")

	drain := []string{"drain", on, "--ignore-daemonsets", "--pod-selector=app=local", "--timeout", patience.String()}
	defer l.kubectl("uncordon", on)
	l.kubectl(drain...)
	l.eventually("the pod waits for its node", func() error {
		out, err := l.tryKubectl("", "get", "pod", "db-0", "-o",
			`jsonpath={.spec.nodeName}{.status.conditions[?(@.type=="PodScheduled")].message}`)
		if err == nil && !strings.Contains(out, "unschedulable") {
			err = errors.New("it says " + out)
		}
		return err
	})
	l.apply(localPod{name: "elsewhere", size: "300Mi"}.String())
	l.running("elsewhere")
	if l.nodeOf("elsewhere") == on {
		l.t.Errorf("a pod is on %s, which is drained", on)
	}
	if on := l.nodeOf("db-0"); on != "" {
		l.t.Errorf("the pod is on %s, and its volume is not", on)
	}
	if state := l.kubectl("get", "poolvolume", volume, "-o", "jsonpath={.status.state}"); state != "Ready" {
		l.t.Errorf("the volume of the node is %s", state)
	}

	l.kubectl("uncordon", on)
	l.wantData("db-0", sum)
	if now := l.nodeOf("db-0"); now != on {
		l.t.Errorf("the pod is on %s, and was on %s", now, on)
	}
}

// testDiskFull: a pod that has filled its volume gets ENOSPC, and no other one does: not even if something else has taken
// all of the disk. Then new claims go elsewhere, and claims can still be deleted. What would be retained without need of
// room goes at once, and the claim's events say why.
func (l *localCluster) testDiskFull() {
	const node = 1
	l.apply(localClaim("full", "300Mi", "pools.katbox.io/lifespan: 1h"), localPod{name: "full", claim: "full", node: node}.String(),
		localClaim("goes", "100Mi", ""), localPod{name: "goes", claim: "goes", node: node}.String(),
		localPod{name: "neighbour", size: "300Mi", node: node}.String())
	l.running("full", "goes", "neighbour")
	volumes := map[string]string{"full": l.bound("full"), "goes": l.bound("goes")}
	const fill = "dd if=/dev/zero of=%s bs=1M 2>&1 || true; sync"
	if out := l.exec("full", fmt.Sprintf(fill, "/v/fill")); !strings.Contains(out, "No space left on device") {
		l.t.Errorf("a pod that fills its volume reads %q", out)
	}
	l.exec("neighbour", write("/v/one", 100)+" && sync")
	l.exec("full", "rm /v/fill && "+write("/v/again", 100)+" && sync")

	stranger := filepath.Join(l.diskDir(), "stranger")
	defer func() { l.onNode(node, "rm -f "+stranger) }()
	if out := l.onNode(node, fmt.Sprintf(fill, stranger)); !strings.Contains(out, "No space left on device") {
		l.t.Fatalf("the disk is not full: %s", out)
	}
	l.onNode(node, "dd if=/dev/zero bs=4k 2>/dev/null >>"+stranger+" || true; sync") // to the last block
	l.exec("neighbour", write("/v/two", 100)+" && sync")
	l.exec("full", write("/v/more", 50)+" && sync")
	l.apply(localPod{name: "late", size: "600Mi", node: node}.String())
	l.eventually("the scheduler finds no room", func() error {
		if out := l.scheduling("late"); !strings.Contains(out, "enough free storage") {
			return errors.New("it says " + out)
		}
		return nil
	})
	l.apply(localPod{name: "elsewhere", size: "600Mi"}.String())
	l.running("elsewhere")
	if l.nodeOf("elsewhere") == l.nodeName(node) {
		l.t.Error("a pod is on the node whose disk is full")
	}

	l.kubectl("delete", "pod", "full", "goes", "--wait=true", "--timeout", patience.String())
	for _, claim := range []string{"full", "goes"} {
		l.kubectl("delete", "pvc", claim, "--wait=true", "--timeout", patience.String())
		l.eventually("the volume is gone from the full disk", func() error {
			if left := l.onDisk(node, "volumes"); slices.Contains(left, volumes[claim]) {
				return fmt.Errorf("the disk has %q", left)
			}
			return l.gone("poolvolume", volumes[claim])
		})
	}
	out := l.kubectl("get", "events", "--field-selector=involvedObject.name=full", "-o", "jsonpath={.items[*].reason}")
	if !strings.Contains(out, "Evicted") {
		l.t.Errorf("the claim has the events %s", out)
	}
	l.exec("neighbour", write("/v/one", 100)+" && sync")

	l.onNode(node, "rm "+stranger)
	l.running("late")
}

// wantAway waits until the pool of a node is Unreachable because of its disk, and the node's daemon is well.
func (l *localCluster) wantAway(n int) {
	l.t.Helper()
	l.wantPoolOf(n, "Unreachable")
	l.eventually("the reason is the disk", func() error {
		pool := l.pools()[l.nodeName(n)]
		if !slices.ContainsFunc(pool.Status.Conditions, func(c struct{ Type, Status, Reason, Message string }) bool {
			return c.Reason == "DiskAway"
		}) {
			return fmt.Errorf("its conditions are %+v", pool.Status.Conditions)
		}
		return nil
	})
	l.daemonsReady()
}

// testDiskAway: the disk of a node is not there when its daemon starts, and breaks while a pod uses it. All else goes on,
// inline volumes of the node among it. The pod can be deleted, and has its data when the disk is back.
func (l *localCluster) testDiskAway() {
	const node, other = 2, 3
	l.apply(localClaim("away", "300Mi", ""), localPod{name: "away", claim: "away", node: node}.String(),
		localPod{name: "other", size: "300Mi", node: other}.String())
	l.running("away", "other")
	sum := l.exec("away", write("/v/data", 100)+" && sync && sha256sum </v/data")
	inline := func(name string) {
		l.t.Helper()
		l.create(pod{Name: name, Node: l.nodeName(node), Scripts: []string{"echo well >/scratch/f && " + sleep}})
		l.running(name)
		l.exec("other", write("/v/f", 50)+" && sync")
	}

	l.powerCut(node)
	l.script("node.sh", "start", strconv.Itoa(node))
	l.wantAway(node)
	inline("inline-1")
	l.eventually("the pod says what is missing", func() error {
		out := l.kubectl("get", "events", "--field-selector=involvedObject.name=away", "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(out, "connect and mount its disk") {
			return errors.New("its events are " + out)
		}
		return nil
	})
	l.mountDisk(node)
	l.wantPoolOf(node, "Ready")
	l.wantData("away", sum)

	// As when a cable is pulled: from now on each access fails.
	l.onNode(node, "xfs_io -x -c shutdown "+l.diskDir())
	l.wantAway(node)
	if out, err := l.tryKubectl("", "exec", "away", "--", "sh", "-c", "dd if=/dev/zero of=/v/lost bs=1M count=10 conv=fsync"); err == nil {
		l.t.Errorf("a pod writes to a disk that is away: %s", out)
	}
	inline("inline-2")
	l.kubectl("delete", "pod", "away", "--wait=true", "--timeout", patience.String())
	if state := l.kubectl("get", "pvc", "away", "-o", "jsonpath={.status.phase}"); state != "Bound" {
		l.t.Errorf("the claim is %s", state)
	}
	l.eventually("the broken disk can be unmounted", func() error {
		_, err := l.try("", "bash", filepath.Join(l.scripts, "node.sh"), "exec", strconv.Itoa(node), "umount", l.diskDir())
		return err
	})
	l.eventually("nothing has the broken disk any more", func() error {
		out, err := l.try("", "losetup", "-j", l.diskImage(node))
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
	l.mountDisk(node)
	l.wantPoolOf(node, "Ready")
	l.apply(localPod{name: "away", claim: "away", node: node}.String())
	l.wantData("away", sum)
}

// testDiskMoved: a node has left, and its disk is in another one, under another name: the pod and its data follow, and what
// was retained can be had back. Then the disk returns to the first node, of which nothing but the name is as it was.
func (l *localCluster) testDiskMoved() {
	const node = 2
	uuid := l.pools()[l.nodeName(node)].Spec.Local.UUID
	l.apply(localClaim("moves", "300Mi", ""), localPod{name: "moves", claim: "moves", node: node}.String(),
		localClaim("kept", "200Mi", "pools.katbox.io/lifespan: 1h"), localPod{name: "kept", claim: "kept", node: node}.String())
	l.running("moves", "kept")
	sum := l.exec("moves", write("/v/data", 100)+" && sync && sha256sum </v/data")
	kept := l.exec("kept", write("/v/data", 50)+" && sync && sha256sum </v/data")
	l.kubectl("delete", "pod", "kept", "--wait=true")
	l.kubectl("delete", "pvc", "kept", "--wait=true")

	l.shareImages()
	l.moveDisk(node, anotherNode)
	if pool := l.pools()[l.nodeName(anotherNode)]; pool.Spec.Local.UUID != uuid {
		l.t.Errorf("the pool is %+v, and was %s", pool, uuid)
	}
	l.apply(localPod{name: "moves", claim: "moves"}.String())
	l.running("moves")
	if on := l.nodeOf("moves"); on != l.nodeName(anotherNode) {
		l.t.Errorf("the pod is on %s, and its disk is not", on)
	}
	l.wantData("moves", sum)
	l.apply(localClaim("again", "200Mi", "pools.katbox.io/restore: kept"), localPod{name: "again", claim: "again"}.String(),
		localPod{name: "new", size: "100Mi", node: anotherNode}.String())
	l.running("again", "new")
	l.wantData("again", kept)

	l.kubectl("delete", "pod", "new", "again", "--wait=true")
	for _, part := range []string{"kubelet", "kubelet-pki", "katbox-data", "etc", "root", "machine-id", "containerd"} {
		if err := os.RemoveAll(filepath.Join(l.nodeDir(node), part)); err != nil {
			l.t.Fatal(err)
		}
	}
	l.moveDisk(anotherNode, node)
	if pool := l.pools()[l.nodeName(node)]; pool.Spec.Local.UUID != uuid {
		l.t.Errorf("the pool is %+v, and was %s", pool, uuid)
	}
	l.apply(localPod{name: "moves", claim: "moves"}.String(), localPod{name: "again", claim: "again", node: node}.String())
	l.wantData("moves", sum)
	l.wantData("again", kept)
	if on := l.nodeOf("moves"); on != l.nodeName(node) {
		l.t.Errorf("the pod is on %s, and its disk is not", on)
	}
}

// shareImages gives the images of the programs to nodes that are started later.
func (l *localCluster) shareImages() {
	l.t.Helper()
	name, tag, _ := strings.Cut(l.image, ":")
	file := filepath.Join(l.state, "katbox.tar")
	if out, err := l.try("", filepath.Join(l.state, "deb/usr/bin/ctr"), "--address", filepath.Join(l.state, "containerd/containerd.sock"),
		"--namespace", "k8s.io", "images", "export", "--platform", "linux/amd64", file, l.image, name+"-controller:"+tag); err != nil {
		l.t.Fatalf("%v\n%s", err, out)
	}
	l.script("node.sh", "load", file)
}

// moveDisk lets a node leave the cluster, and puts its disk into another one, which is started.
func (l *localCluster) moveDisk(from, to int) {
	l.t.Helper()
	l.powerCut(from)
	l.kubectl("delete", "node", l.nodeName(from))
	l.eventually("nothing has the disk any more", func() error {
		out, err := l.try("", "losetup", "-j", l.diskImage(from))
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
	l.makeMountPoint(to)
	if err := os.Rename(l.diskImage(from), l.diskImage(to)); err != nil {
		l.t.Fatal(err)
	}
	l.script("node.sh", "start", strconv.Itoa(to))
	l.mountDisk(to)
	l.eventually("the pods of the node that has left are gone", func() error {
		out, err := l.tryKubectl("", "get", "pods", "--field-selector=spec.nodeName="+l.nodeName(from), "-o", "name")
		if err == nil && out != "" {
			_, err = l.tryKubectl("", append([]string{"delete", "--force", "--grace-period=0"}, strings.Fields(out)...)...)
			err = errors.Join(errors.New(out), err)
		}
		return err
	})
	l.daemonsReady()
	l.wantPoolOf(to, "Ready")
}
