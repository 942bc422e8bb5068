//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	localDriver = "local.csi.katbox.io"
	// nodesWithDisks is how many nodes there are, each with a disk of localDiskSize.
	nodesWithDisks = 3
	localDiskSize  = 2 << 30
	// anotherNode is one that is started later.
	anotherNode = nodesWithDisks + 1
	// localNodes is the headless Service of the controller that the daemons look for.
	localNodes = "katbox-controller-nodes"
	// noDisk is a file below the mount point of a node's disk, as deploy/docs/local-pools.md has it.
	noDisk = "no-disk-is-mounted-here"
)

// localCluster is a cluster whose nodes have disks of their own.
type localCluster struct{ *poolsCluster }

func (l *localCluster) in(t *testing.T) *localCluster { return &localCluster{l.poolsCluster.in(t)} }

// newLocalCluster makes the disks, and installs daemon and controller.
func newLocalCluster(t *testing.T) *localCluster {
	t.Helper()
	l := &localCluster{newPoolsCluster(t, "overlay-local")}
	l.serveDNS(localNodes)
	for n, fsType := range map[int]string{1: "xfs", 2: "xfs", nodesWithDisks: "ext4"} {
		l.makeMountPoint(n)
		l.makeDisk(n, fsType, localDiskSize)
		l.mountDisk(n)
	}
	l.install()
	l.feed(localClasses, "apply", "--server-side", "-f", "-")
	l.wantPools()
	return l
}

// localClasses are all that is made before the first claim.
const localClasses = `
apiVersion: pools.katbox.io/v1alpha1
kind: PoolClass
metadata: {name: nvme}
spec: {enforcement: Strict}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: nvme}
provisioner: ` + localDriver + `
parameters: {poolClass: nvme}
allowVolumeExpansion: true
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: nvme-xfs}
provisioner: ` + localDriver + `
parameters: {poolClass: nvme, csi.storage.k8s.io/fstype: xfs}
allowVolumeExpansion: true
volumeBindingMode: WaitForFirstConsumer
`

// install applies the overlay with the directory of these nodes.
func (l *localCluster) install() {
	l.t.Helper()
	l.installAs(func(text string) string { return text })
}

// installAs is install with manifests that are changed.
func (l *localCluster) installAs(change func(string) string) {
	l.t.Helper()
	text := strings.ReplaceAll(l.poolsManifests(), "/var/lib/katbox-pools/nvme", l.diskDir()+",backend=image")
	text = strings.ReplaceAll(text, "/var/lib/katbox-pools", filepath.Dir(l.diskDir()))
	l.feed(change(text), "apply", "-f", "-")
	l.controllerReady()
	l.daemonsReady()
}

// daemonsReady waits until each node has the daemon that it should have.
func (l *localCluster) daemonsReady() {
	l.t.Helper()
	if out, err := l.tryKubectl("", "-n", namespace, "rollout", "status", "daemonset/katbox", "--timeout", patience.String()); err != nil {
		l.t.Fatalf("%v\n%s\n%s", err, out, l.kubectl("-n", namespace, "describe", "pods"))
	}
}

// diskDir is where a disk is mounted on each node, as the node sees it.
func (l *localCluster) diskDir() string { return filepath.Join(l.state, "pools", "disk") }

// makeMountPoint makes the directory of a node's disk, as deploy/docs/local-pools.md has it. The node may be down.
func (l *localCluster) makeMountPoint(n int) {
	l.t.Helper()
	dir := filepath.Join(l.nodeDir(n), "pools", "disk")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, noDisk), nil, 0o600)); err != nil {
		l.t.Fatal(err)
	}
}

// diskImage is the disk of a node, as the host sees it.
func (l *localCluster) diskImage(n int) string { return filepath.Join(l.nodeDir(n), "disk.img") }

// makeDisk makes the disk of a node.
func (l *localCluster) makeDisk(n int, fsType string, size int64) {
	l.t.Helper()
	f, err := os.Create(l.diskImage(n))
	if err != nil {
		l.t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		l.t.Fatal(err)
	}
	mkfs := []string{"-q", l.diskImage(n)}
	if fsType == "ext4" {
		mkfs = append([]string{"-F"}, mkfs...)
	}
	if _, err := l.try("", "mkfs."+fsType, mkfs...); err != nil {
		l.t.Fatal(err)
	}
}

// mountDisk mounts the disk of a node, as it does when it boots.
func (l *localCluster) mountDisk(n int) {
	l.t.Helper()
	l.onNode(n, "mount -o loop "+filepath.Join(l.state, "disk.img")+" "+l.diskDir())
}

// powerCut ends a node in one instant. What the script cleans up behind it may be busy for a moment.
func (l *localCluster) powerCut(n int) {
	l.t.Helper()
	l.eventually("node "+fmt.Sprint(n)+" is down", func() error {
		out, err := l.try("", "bash", filepath.Join(l.scripts, "node.sh"), "kill", fmt.Sprint(n))
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return err
	})
}

// onNode runs a script on a node, and returns what it prints.
func (l *localCluster) onNode(n int, script string) string {
	l.t.Helper()
	out, err := l.try("", "bash", filepath.Join(l.scripts, "node.sh"), "exec", fmt.Sprint(n), "sh", "-c", script)
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

// onDisk are the names in one of the directories of a node's pool, without those that are there at all times: some have a file
// .keep, and the records have .spare.
func (l *localCluster) onDisk(n int, part string) []string {
	l.t.Helper()
	names := strings.Fields(l.onNode(n, "ls -A --ignore=.keep "+filepath.Join(l.diskDir(), part)))
	return slices.DeleteFunc(names, func(name string) bool { return part == "records" && name == ".spare" })
}

// localPool is what the tests read of a Pool.
type localPool struct {
	Metadata struct{ Name string }
	Spec     struct{ Local struct{ UUID string } }
	Status   struct {
		State      string
		Conditions []struct{ Type, Status, Reason, Message string }
		Capacity   struct{ Total, Available, Provisioned string }
		Local      struct{ UUID, Node, Path, Backend string }
	}
}

func (l *localCluster) pools() map[string]localPool {
	l.t.Helper()
	var list struct{ Items []localPool }
	l.get(&list, "pools.pools.katbox.io")
	pools := map[string]localPool{}
	for _, pool := range list.Items {
		pools[pool.Status.Local.Node] = pool
	}
	return pools
}

// wantPools waits until each node has a pool that is ready, and the scheduler knows how much room there is.
func (l *localCluster) wantPools() {
	l.t.Helper()
	for n := 1; n <= nodesWithDisks; n++ {
		l.wantPoolOf(n, "Ready")
	}
	l.eventually("the scheduler knows how much room each node has", func() error {
		out, err := l.tryKubectl("", "-n", namespace, "get", "csistoragecapacities", "-o",
			`jsonpath={range .items[?(@.storageClassName=="nvme")]}{.nodeTopology.matchLabels}{"\n"}{end}`)
		if err == nil && strings.Count(out, localDriver+"/") != nodesWithDisks {
			err = fmt.Errorf("it knows %q", out)
		}
		return err
	})
}

// wantPoolOf waits until the pool of a node has a state.
func (l *localCluster) wantPoolOf(n int, state string) {
	l.t.Helper()
	l.eventually("the pool of node "+fmt.Sprint(n)+" is "+state, func() error {
		pool, ok := l.pools()[l.nodeName(n)]
		if !ok || pool.Status.State != state {
			return fmt.Errorf("it is %+v", pool)
		}
		return nil
	})
}

// clear deletes what a scenario that failed has left.
func (l *localCluster) clear() {
	l.t.Helper()
	for _, kinds := range []string{"statefulsets,pods", "pvc"} {
		l.kubectl("delete", kinds, "--all", "--wait=true", "--timeout", patience.String())
	}
	l.kubectl("delete", "poolvolumes", "--all", "--wait=true", "--timeout", patience.String())
}

// wantNothingLeft waits until there is no volume any more, neither in the cluster nor on a disk.
func (l *localCluster) wantNothingLeft() {
	l.t.Helper()
	l.clear()
	for n := 1; n <= nodesWithDisks; n++ {
		l.wantNothingLeftOf(n)
	}
}

// wantNothingLeftOf waits until there is no volume any more, neither in the cluster nor on a node's disk.
func (l *localCluster) wantNothingLeftOf(n int) {
	l.t.Helper()
	l.eventually("nothing is left", func() error {
		out, err := l.tryKubectl("", "get", "pv,poolvolumes,poolsnapshots", "-o", "name")
		if err == nil && out != "" {
			err = fmt.Errorf("%d objects: %.200s", strings.Count(out, "\n"), out)
		}
		for _, part := range []string{"volumes", "snapshots", "records", ".trash"} {
			if left := l.onDisk(n, part); err == nil && len(left) > 0 {
				err = fmt.Errorf("node %d has %d in %s, such as %s", n, len(left), part, left[0])
			}
		}
		return err
	})
}

// localPod is a pod with a volume on its node at /v: a claim of the name, or with a size one of its own.
type localPod struct {
	name, script, claim, size string
	// node is the one that it has to be on; 0 for any.
	node int
	// prefers is the one on which the scheduler puts it, if nothing is against that; 0 for none.
	prefers int
}

func (p localPod) String() string {
	on, use := "", fmt.Sprintf("persistentVolumeClaim: {claimName: %s}", p.claim)
	if p.node > 0 {
		on = fmt.Sprintf("\n  nodeSelector: {kubernetes.io/hostname: %s}", (&cluster{}).nodeName(p.node))
	}
	if p.prefers > 0 {
		on += fmt.Sprintf("\n  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: "+
			"{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}}]}}", (&cluster{}).nodeName(p.prefers))
	}
	if p.size != "" {
		use = fmt.Sprintf("ephemeral: {volumeClaimTemplate: {spec: {storageClassName: nvme, accessModes: [ReadWriteOnce], "+
			"resources: {requests: {storage: %s}}}}}", p.size)
	}
	if p.script == "" {
		p.script = sleep
	}
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: local}}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1%s
  # A node that is away is to keep its pods.
  tolerations: [{operator: Exists, effect: NoExecute}]
  containers:
  - name: c
    image: "localhost/realkubelet/busybox:1"
    imagePullPolicy: Never
    command: [sh, -c, %q]
    volumeMounts: [{name: v, mountPath: /v}]
  volumes: [{name: v, %s}]
`, p.name, on, p.script, use)
}

// localClaim is a claim with annotations, in YAML.
func localClaim(name, size, annotations string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, annotations: {%s}}
spec: {storageClassName: nvme, accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}
`, name, annotations, size)
}

// nodeOf returns the node of a pod; empty for one that has none.
func (l *localCluster) nodeOf(pod string) string {
	l.t.Helper()
	return l.kubectl("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")
}
