//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// crashesInRound is how often the daemon dies in a round. The more, the fewer rounds; but the kubelet waits
	// twice as long for a volume after each call that has failed, at last for two minutes.
	crashesInRound = 12
	// chances is in how many rounds the daemon may miss a point.
	chances = 4
)

// testCrashPoints: the daemon is killed before and after each change that it makes to the node, while volumes
// of all kinds come and go, and others are written to and grow. All go on, and nothing is left of them.
func (a *arrayCluster) testCrashPoints() {
	k := a.newKiller()
	writers := a.written()
	n := 0
	k.come(n)
	k.play("volumes come while others go", func() {
		k.leave(n, func() { k.come(n + 1) })
		n++
	})
	k.leave(n, nil)
	for _, w := range writers {
		w.wantGoesOn("after the crashes")
	}
	gib := 1
	k.play("volumes grow", func() {
		gib++
		k.grow(writers, gib)
	})
	for _, w := range writers {
		w.finish()
	}
	// With the first volume of the array the session comes, and it goes with the last.
	k.play("the only volumes come and go", func() {
		k.come(0)
		k.leave(0, nil)
	})
	k.end()
}

// killer lets the daemon die at the points that it passes.
type killer struct {
	*arrayCluster
	// dir is where the daemon says which points it passes, and reads at which it dies.
	dir string
	// trace is how much of the daemon's trace was read.
	trace int
	// left are the points at which the daemon has not died yet, died is at how many it has.
	left []string
	died int
	// calm are the points that were passed in rounds without a crash, missed is in how many rounds a
	// point was not reached.
	calm   map[string]bool
	missed map[string]int
}

// attachRooms begin the names of the points at which a volume of an array is changed on its node.
var attachRooms = []string{"attach.", "disk.", "host.", "iscsi.", "mount.", "nfs.", "staged."}

// newKiller installs a daemon that can be killed at each point.
func (a *arrayCluster) newKiller() *killer {
	a.t.Helper()
	k := &killer{
		arrayCluster: a, dir: filepath.Join(a.socketDir(), "crashpoints"), calm: map[string]bool{}, missed: map[string]int{},
	}
	if err := os.MkdirAll(k.dir, 0o755); err != nil {
		a.t.Fatal(err)
	}
	a.daemonWith(a.image + "-crashpoints")
	return k
}

// end installs the daemon as it was. Each point that it passes without a crash is one at which it has died.
func (k *killer) end() {
	k.t.Helper()
	k.daemonWith(k.image)
	if err := os.RemoveAll(k.dir); err != nil {
		k.t.Error(err)
	}
	chance := 0
	for point, missed := range k.missed {
		switch {
		case missed < chances:
		case k.calm[point]:
			k.t.Errorf("the daemon passes %q, and has never died there", point)
		default:
			chance++
			k.t.Logf("after a crash the daemon has passed %q, and never again", point)
		}
	}
	if k.died < 60 {
		k.t.Errorf("the daemon has died at %d points only", k.died)
	}
	report("points at which the daemon has died", "%d", k.died)
	report("points that it passed once, by chance", "%d", chance)
}

// play plays a round without a crash, and then again until the daemon has died at all points that it passed.
func (k *killer) play(name string, round func()) {
	k.t.Helper()
	began := time.Now()
	round()
	k.learn(true)
	k.t.Logf("%s, without a crash: %.0f s, %d new points", name, time.Since(began).Seconds(), len(k.left))
	for n := 1; len(k.left) > 0; n++ {
		began := time.Now()
		armed := k.arm()
		round()
		died := k.disarm(armed)
		k.learn(false)
		k.t.Logf("%s, round %d: %.0f s, %d crashes of %d, %d points are left",
			name, n, time.Since(began).Seconds(), died, len(armed), len(k.left))
	}
}

// learn reads which points the daemon has passed.
func (k *killer) learn(calm bool) {
	k.t.Helper()
	content, err := os.ReadFile(filepath.Join(k.dir, "trace"))
	if err != nil {
		k.t.Fatal(err)
	}
	fresh := string(content[k.trace:])
	fresh = fresh[:strings.LastIndexByte(fresh, '\n')+1] // the last line may be half written
	k.trace += len(fresh)
	for line := range strings.Lines(fresh) {
		point := strings.TrimSpace(line)
		_, name, _ := strings.Cut(point, " ")
		if !slices.ContainsFunc(attachRooms, func(room string) bool { return strings.HasPrefix(name, room) }) {
			continue
		}
		if calm {
			k.calm[point] = true
		}
		// What was given up in another play is tried again where this one passes it for sure: sessions come and go in the last one only.
		if missed, known := k.missed[point]; !known || calm && missed >= chances {
			k.missed[point] = 0
			k.left = append(k.left, point)
		}
	}
}

// arm tells the daemon at which points it dies next: some from the whole way of a volume, and all that it has missed.
func (k *killer) arm() (points []string) {
	k.t.Helper()
	var fresh []string
	for _, point := range k.left {
		if k.missed[point] > 0 {
			points = append(points, point)
		} else {
			fresh = append(fresh, point)
		}
	}
	n := min(crashesInRound, len(fresh))
	for i := range n {
		points = append(points, fresh[i*len(fresh)/n])
	}
	var text strings.Builder
	for _, point := range points {
		fmt.Fprintln(&text, point, 1)
	}
	path := filepath.Join(k.dir, "kill")
	err := os.WriteFile(path+".all", []byte(text.String()), 0o600)
	if err = errors.Join(err, os.Rename(path+".all", path)); err != nil {
		k.t.Fatal(err)
	}
	return points
}

// disarm lets the daemon live, and returns at how many of the points it has died.
func (k *killer) disarm(armed []string) (died int) {
	k.t.Helper()
	path := filepath.Join(k.dir, "kill")
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.t.Fatal(err)
	}
	for _, point := range armed {
		switch {
		case !strings.Contains(string(content), point+" "):
			died++
		case k.missed[point]+1 < chances:
			k.missed[point]++
			continue
		default:
			k.missed[point] = chances
		}
		k.left = slices.DeleteFunc(k.left, func(other string) bool { return other == point })
	}
	k.died += died
	return died
}

// kindsOfVolumes is a volume of each kind.
func kindsOfVolumes() []claim {
	return []claim{
		{name: "nfs", class: "nfs"}, {name: "ext4", class: "ext4"}, {name: "xfs", class: "xfs"}, {name: "block", class: "ext4", mode: "Block"},
	}
}

// passing are the n-th volumes that come and go, the pod that uses them all, and the names of these objects.
func passing(n int) (text string, pod string, names []string) {
	pod = fmt.Sprintf("passing-%d", n)
	names = append(names, "pod/"+pod)
	var script, mounts, devices, volumes strings.Builder
	for _, c := range kindsOfVolumes() {
		kind := c.name
		c.name = pod + "-" + kind
		names = append(names, "pvc/"+c.name)
		text += c.String()
		fmt.Fprintf(&volumes, "  - {name: %s, persistentVolumeClaim: {claimName: %s}}\n", kind, c.name)
		if c.mode == "Block" {
			fmt.Fprintf(&devices, "    - {name: %s, devicePath: /dev/%[1]s}\n", kind)
			fmt.Fprintf(&script, "echo hello | dd of=/dev/%s bs=4096 count=1 conv=sync,fsync && ", kind)
		} else {
			fmt.Fprintf(&mounts, "    - {name: %s, mountPath: /%[1]s}\n", kind)
			fmt.Fprintf(&script, "echo hello >/%s/from && ", kind)
		}
	}
	return text + fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  hostNetwork: true
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: "localhost/realkubelet/busybox:1"
    imagePullPolicy: Never
    command: [sh, -c, %q]
    volumeMounts:
%s    volumeDevices:
%s  volumes:
%s`, pod, script.String()+"sync && "+sleep, &mounts, &devices, &volumes), pod, names
}

// come makes volumes, and a pod that writes to them, and waits for that.
func (a *arrayCluster) come(n int) {
	a.t.Helper()
	text, pod, _ := passing(n)
	a.apply(text)
	// After a dozen crashes the kubelet tries again every two minutes only.
	longer := (2 * patience).String()
	if _, err := a.tryKubectl("", "wait", "--for=jsonpath={.status.phase}=Running", "--timeout", longer, "pod/"+pod); err != nil {
		a.running(pod) // says why
	}
}

// leave deletes them, and waits until they are gone; what is done meanwhile may be nil.
func (a *arrayCluster) leave(n int, meanwhile func()) {
	a.t.Helper()
	_, _, names := passing(n)
	gone := slices.Clone(names)
	for volume := range strings.FieldsSeq(a.kubectl(append([]string{"get", "-o", "jsonpath={.items[*].spec.volumeName}"}, names...)...)) {
		gone = append(gone, "pv/"+volume)
	}
	a.kubectl(append([]string{"delete", "--wait=false"}, names...)...)
	if meanwhile != nil {
		meanwhile()
	}
	a.kubectl(append([]string{"wait", "--for=delete", "--timeout", (2 * patience).String()}, gone...)...)
}

// grow makes all volumes larger that are written to, and waits until they are.
func (a *arrayCluster) grow(writers []*steadyWriter, gib int) {
	a.t.Helper()
	size := fmt.Sprintf("%dGi", gib)
	wait := []string{"wait", "--for=jsonpath={.status.capacity.storage}=" + size, "--timeout", (2 * patience).String()}
	for _, w := range writers {
		a.kubectl("patch", "pvc", w.claim.name, "-p", `{"spec":{"resources":{"requests":{"storage":"`+size+`"}}}}`)
		wait = append(wait, "pvc/"+w.claim.name)
	}
	a.kubectl(wait...)
	for _, w := range writers {
		a.wantSize(w.claim.name, w.claim, gib)
	}
}

// daemonWith lets the DaemonSet run an image, which talks through a directory beside the socket if it can.
func (a *arrayCluster) daemonWith(image string) {
	a.t.Helper()
	container := fmt.Sprintf(`{"name":"katbox","image":%q,"env":[{"name":"KATBOX_CRASHPOINTS","value":"/array/crashpoints"}]}`, image)
	a.kubectl("-n", namespace, "patch", "daemonset", "katbox", "-p", `{"spec":{"template":{"spec":{"containers":[`+container+`]}}}}`)
	a.daemonReady()
}
