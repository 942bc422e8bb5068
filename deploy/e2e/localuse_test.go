//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// write is a command that writes MiB of random data to a file.
func write(path string, mebibytes int) string {
	return fmt.Sprintf("dd if=/dev/urandom of=%s bs=1M count=%d 2>/dev/null", path, mebibytes)
}

// testInstalled: each node has one pool, which is where it was told to be, and the controller needs nothing else.
func (l *localCluster) testInstalled() {
	name, _ := l.podOfController()
	l.wantWell(name)
	for n := 1; n <= nodesWithDisks; n++ {
		pool := l.pools()[l.nodeName(n)]
		if pool.Status.Local.Path != l.diskDir() || pool.Status.Local.Backend != "image" || pool.Spec.Local.UUID == "" {
			l.t.Errorf("the pool of node %d is %+v", n, pool)
		}
		if label := l.kubectl("get", "node", l.nodeName(n), "--show-labels", "--no-headers"); !strings.Contains(label,
			localDriver+"/"+pool.Spec.Local.UUID+"=here") {
			l.t.Errorf("node %d has the labels %s", n, label)
		}
	}
}

// testRoom: three pods, whose volumes fit each on a node of their own alone, land so. A fourth one waits until one of
// them goes.
func (l *localCluster) testRoom() {
	var nodes []string
	for i := range nodesWithDisks {
		name := "wide-" + strconv.Itoa(i)
		l.apply(localPod{name: name, size: "1200Mi"}.String())
		l.running(name)
		nodes = append(nodes, l.nodeOf(name))
	}
	slices.Sort(nodes)
	if len(slices.Compact(slices.Clone(nodes))) != nodesWithDisks {
		l.t.Fatalf("the pods are on %q", nodes)
	}
	l.apply(localPod{name: "waits", size: "1200Mi"}.String())
	l.eventually("the scheduler finds no room", func() error {
		out := l.kubectl("get", "pod", "waits", "-o", `jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}`)
		if !strings.Contains(out, "enough free storage") {
			return errors.New("it says " + out)
		}
		return nil
	})
	freed := l.nodeOf("wide-1")
	l.kubectl("delete", "pod", "wide-1", "--wait=true")
	l.running("waits")
	if on := l.nodeOf("waits"); on != freed {
		l.t.Errorf("it is on %s, and there is room on %s", on, freed)
	}
}

// testSameRoom: of many claims at once as many are made as there is room for, and no disk promises more than it has.
func (l *localCluster) testSameRoom() {
	const asked, size, fit = 15, 500 << 20, 9
	var objects []string
	for i := range asked {
		script := write("/v/f", 100) + " && " + sleep
		objects = append(objects, localPod{name: "crowd-" + strconv.Itoa(i), size: "500Mi", script: script}.String())
	}
	l.apply(objects...)
	running := func() []string {
		return strings.Fields(l.kubectl("get", "pods", "-l", "app=local", "--field-selector=status.phase=Running", "-o",
			"jsonpath={.items[*].metadata.name}"))
	}
	full := func() error {
		if n := len(running()); n != fit {
			return fmt.Errorf("%d run, want %d", n, fit)
		}
		return nil
	}
	l.eventually("the disks are full", full)
	promised := func() {
		l.t.Helper()
		per := map[string]int{}
		for pool := range strings.FieldsSeq(l.kubectl("get", "poolvolumes", "-o", "jsonpath={.items[*].spec.poolName}")) {
			per[pool]++
		}
		for pool, volumes := range per {
			if volumes*size > localDiskSize*9/10 {
				l.t.Errorf("the pool %s has promised %d volumes of %d bytes", pool, volumes, size)
			}
		}
	}
	time.Sleep(10 * time.Second) // it has the time to be wrong
	if err := full(); err != nil {
		l.t.Error(err)
	}
	promised()
	gone := running()[:3]
	l.kubectl(append([]string{"delete", "pod", "--wait=true"}, gone...)...)
	l.eventually("others take the room", full)
	promised()
}

// testComesBack: a deleted claim's data are there for a new claim, with every byte and within their lifespan, after
// everything was started again: etcd, API server, scheduler, controllers, sidecars, daemons, kubelets, and the node.
// What has a shorter lifespan goes all the same.
func (l *localCluster) testComesBack() {
	const node, other = 2, 1
	l.apply(localClaim("kept", "600Mi", "pools.katbox.io/lifespan: 1h"), localPod{name: "writer", claim: "kept", node: node}.String())
	l.running("writer")
	volume := l.bound("kept")
	sum := l.exec("writer", write("/v/data", 200)+" && mkdir /v/d && echo small >/v/d/small && sync && sha256sum </v/data")
	l.apply(localClaim("brief", "100Mi", "pools.katbox.io/lifespan: 1m"), localPod{name: "brief", claim: "brief", node: node}.String())
	l.running("brief")
	brief := l.bound("brief")
	l.kubectl("delete", "pod", "writer", "brief", "--wait=true")
	l.kubectl("delete", "pvc", "kept", "brief", "--wait=true")
	until := ""
	retained := func() error {
		out, err := l.tryKubectl("", "get", "poolvolume", volume, "-o", "jsonpath={.status.state} {.status.retainedUntil}")
		state, end, _ := strings.Cut(out, " ")
		switch {
		case err != nil:
			return err
		case state != "Retained" || end == "":
			return fmt.Errorf("it is %q", out)
		case until != "" && end != until:
			l.t.Fatalf("it is retained until %s, and was until %s", end, until)
		}
		until = end
		return nil
	}
	l.eventually("the volume is retained", retained)
	if table := l.kubectl("get", "poolvolume", volume); !strings.Contains(table, until) {
		l.t.Errorf("people who ask until when it is retained read %s", table)
	}

	l.restartControlPlane()
	l.kubectl("-n", namespace, "rollout", "restart", "daemonset/katbox", "deployment/katbox-controller")
	l.daemonsReady()
	l.controllerReady()
	for n := 1; n <= nodesWithDisks; n++ {
		l.script("kubelet.sh", "crash", strconv.Itoa(n))
	}
	l.bootNode(node)
	l.eventually("the volume is retained after all was started again", retained)
	l.eventually("the lifespan of the other one is over", func() error { return l.gone("poolvolume", brief) })

	// No pod names the node. The scheduler would take another one.
	l.apply(localClaim("again", "600Mi", "pools.katbox.io/restore: kept, pools.katbox.io/lifespan: 1h"),
		localPod{name: "reader", claim: "again", prefers: other}.String())
	l.running("reader")
	if on := l.nodeOf("reader"); on != l.nodeName(node) {
		l.t.Errorf("the pod is on %s, and its data are on %s", on, l.nodeName(node))
	}
	if again := l.bound("again"); again != volume {
		if handle := l.kubectl("get", "pv", again, "-o", "jsonpath={.spec.csi.volumeHandle}"); handle != volume {
			l.t.Errorf("the claim has the volume %s, and %s was retained", handle, volume)
		}
	}
	if got := l.exec("reader", "cat /v/d/small && sha256sum </v/data"); got != "small\n"+sum {
		l.t.Errorf("the data are %q, want %q", got, sum)
	}
	out := l.kubectl("get", "events", "--field-selector=involvedObject.name=again", "-o", "jsonpath={.items[*].reason}")
	if !strings.Contains(out, "Restored") {
		l.t.Errorf("the claim has the events %s", out)
	}
	l.kubectl("delete", "pod", "reader", "--wait=true")
	l.kubectl("delete", "pvc", "again", "--wait=true")
	l.elsewhere(volume, node, other, sum)
}

// elsewhere: the pod of a new claim may not run where the data are. It waits, the claim says where they are, and nothing is
// lost.
func (l *localCluster) elsewhere(volume string, node, other int, sum string) {
	l.t.Helper()
	l.eventually("the volume is retained once more", func() error {
		state, err := l.tryKubectl("", "get", "poolvolume", volume, "-o", "jsonpath={.status.state}")
		if err == nil && state != "Retained" {
			err = fmt.Errorf("it is %q", state)
		}
		return err
	})
	l.apply(localClaim("elsewhere", "600Mi", "pools.katbox.io/restore: again"),
		localPod{name: "elsewhere", claim: "elsewhere", node: other}.String())
	l.eventually("the claim says where its data are", func() error {
		out, err := l.tryKubectl("", "get", "events", "--field-selector=involvedObject.name=elsewhere,reason=Restored", "-o",
			"jsonpath={.items[*].message}")
		if err == nil && !strings.Contains(out, "on a disk of node "+l.nodeName(node)) {
			err = fmt.Errorf("its events say %q", out)
		}
		return err
	})
	if on := l.nodeOf("elsewhere"); on != "" {
		l.t.Errorf("the pod is on %s", on)
	}
	l.kubectl("delete", "pod", "elsewhere", "--wait=true")
	l.apply(localPod{name: "elsewhere", claim: "elsewhere"}.String())
	l.running("elsewhere")
	l.wantData("elsewhere", sum)
}

// bootNode cuts the power of a node, starts it, and mounts its disk late, as a slow one.
func (l *localCluster) bootNode(n int) {
	l.t.Helper()
	l.powerCut(n)
	l.script("node.sh", "start", strconv.Itoa(n))
	if left := l.onDisk(n, ""); !slices.Equal(left, []string{noDisk}) {
		l.t.Errorf("without its disk, node %d has %q there", n, left)
	}
	l.mountDisk(n)
	l.daemonsReady()
	l.wantPoolOf(n, "Ready")
}

// gone fails while there is an object.
func (l *localCluster) gone(kind, name string) error {
	out, err := l.tryKubectl("", "get", kind, name, "--ignore-not-found", "-o", "name")
	if err == nil && out != "" {
		err = errors.New(out)
	}
	return err
}

// testGrows: a volume grows while a pod uses it. XFS grows also where root lacks CAP_SYS_RESOURCE. Where the kernel refuses
// that of ext4, the claim says so and keeps its size, and its pods go on.
func (l *localCluster) testGrows() {
	l.apply(strings.Replace(localClaim("grows", "300Mi", ""), "storageClassName: nvme", "storageClassName: nvme-xfs", 1),
		localPod{name: "grows", claim: "grows"}.String(),
		localClaim("ext4", "300Mi", ""), localPod{name: "ext4", claim: "ext4"}.String())
	l.running("grows", "ext4")
	l.exec("grows", write("/v/f", 200)+" && sync")
	sum := l.exec("ext4", write("/v/data", 100)+" && sync && sha256sum </v/data")
	for _, name := range []string{"grows", "ext4"} {
		l.kubectl("patch", "pvc", name, "-p", `{"spec": {"resources": {"requests": {"storage": "700Mi"}}}}`)
	}
	l.eventually("the pod has more room", func() error {
		if size := l.room("grows"); size < 600 {
			return fmt.Errorf("%d MiB", size)
		}
		return nil
	})
	l.exec("grows", write("/v/g", 300)+" && sync")

	volume := l.bound("ext4")
	refused := false
	l.eventually("ext4 has grown, or the claim says why not", func() error {
		events := l.kubectl("get", "events", "--field-selector=involvedObject.name=ext4,reason=VolumeResizeFailed", "-o",
			"jsonpath={.items[*].message}")
		refused = strings.Contains(events, volume)
		if size := l.room("ext4"); size < 600 && !refused {
			return fmt.Errorf("%d MiB, and its events are %q", size, events)
		}
		return nil
	})
	report("ext4 grows while a pod uses it", "%t", !refused)
	if refused { // it is tried again, and grows for the API once no pod uses it: then a pod waits until the kernel does it
		time.Sleep(10 * time.Second)
		for _, object := range [][]string{
			{"pvc", "ext4", "jsonpath={.status.capacity.storage}"}, {"pv", volume, "jsonpath={.spec.capacity.storage}"},
		} {
			if size := l.kubectl("get", object[0], object[1], "-o", object[2]); size != "300Mi" {
				l.t.Errorf("the %s has %s, and its file system has 300Mi", object[0], size)
			}
		}
	} else {
		l.kubectl("delete", "pod", "ext4", "--wait=true", "--timeout", patience.String())
		l.apply(localPod{name: "ext4", claim: "ext4"}.String())
		l.running("ext4")
	}
	l.wantData("ext4", sum)
}

// room is the size in MiB of a pod's volume, as the pod sees it.
func (l *localCluster) room(pod string) int {
	l.t.Helper()
	size, err := strconv.Atoi(l.exec(pod, "df -m /v | tail -n 1 | awk '{print $2}'"))
	if err != nil {
		l.t.Fatal(err)
	}
	return size
}

// testNodeLost: the pool of a node that lost its power is Unreachable, others take new volumes, and when the node is
// back, its pod finds its data.
func (l *localCluster) testNodeLost() {
	const node = 3
	l.apply(localClaim("stays", "300Mi", ""), localPod{name: "stays", claim: "stays", node: node}.String())
	l.running("stays")
	volume := l.bound("stays")
	sum := l.exec("stays", write("/v/data", 100)+" && sync && sha256sum </v/data")

	l.powerCut(node)
	started := false
	start := func() {
		l.script("node.sh", "start", strconv.Itoa(node))
		l.mountDisk(node)
		started = true
	}
	defer func() { // the scenarios after this one need the node
		if !started {
			start()
		}
	}()
	l.wantPoolOf(node, "Unreachable")
	pool := l.pools()[l.nodeName(node)]
	away := func(c struct{ Type, Status, Reason, Message string }) bool { return c.Reason == "NodeAway" }
	if !slices.ContainsFunc(pool.Status.Conditions, away) {
		l.t.Errorf("its conditions are %+v", pool.Status.Conditions)
	}
	for i := range 4 {
		name := "elsewhere-" + strconv.Itoa(i)
		l.apply(localPod{name: name, size: "400Mi"}.String())
		l.running(name)
		if l.nodeOf(name) == l.nodeName(node) {
			l.t.Errorf("%s is on the node that is away", name)
		}
	}
	if state := l.kubectl("get", "poolvolume", volume, "-o", "jsonpath={.status.state}"); state != "Ready" {
		l.t.Errorf("the volume of the node is %s", state)
	}

	start()
	l.daemonsReady()
	l.wantPoolOf(node, "Ready")
	l.eventually("the pod has its data", func() error {
		out, err := l.tryKubectl("", "exec", "stays", "--", "sh", "-c", "sha256sum </v/data")
		if err == nil && strings.TrimSpace(out) != sum {
			l.t.Fatalf("the data are %q, want %q", out, sum)
		}
		return err
	})
}

// testUninstalled: nothing on a disk goes with the overlay, the pod goes on, and what is installed again knows all.
func (l *localCluster) testUninstalled() {
	l.apply(localClaim("stays", "300Mi", ""), localPod{name: "stays", claim: "stays"}.String())
	l.running("stays")
	volume := l.bound("stays")
	l.exec("stays", "echo before >/v/f && sync")
	disks := func() map[int][]string {
		all := map[int][]string{}
		for n := 1; n <= nodesWithDisks; n++ {
			for _, part := range []string{"", "volumes", "records"} {
				for _, name := range l.onDisk(n, part) {
					all[n] = append(all[n], filepath.Join(part, name))
				}
			}
		}
		return all
	}
	before := disks()
	l.removed(func() { l.feed(l.poolsManifests(), "delete", "--wait", "--timeout", patience.String(), "-f", "-") })
	if after := disks(); fmt.Sprint(after) != fmt.Sprint(before) {
		l.t.Errorf("the disks have %v, had %v", after, before)
	}
	if got := l.exec("stays", "echo more >>/v/f && cat /v/f"); got != "before\nmore" {
		l.t.Errorf("the pod reads %q", got)
	}
	l.install()
	l.wantPools()
	if state := l.kubectl("get", "poolvolume", volume, "-o", "jsonpath={.status.state}"); state != "Ready" {
		l.t.Errorf("the volume is %s", state)
	}
	l.kubectl("delete", "pod", "stays", "--wait=true", "--timeout", patience.String())
}
