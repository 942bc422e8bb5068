//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Of deletedPods that are deleted while they run, lostOf may lose their last word: the kubelet may remove a container's log
// before it unpublishes the volume.
const lostOf, deletedPods = 5, 1000

// TestLogs: what the containers of pods said is read after the pods are gone, as kubectl logs had it.
func TestLogs(t *testing.T) {
	if os.Getenv("KATBOX_E2E_LOGS") == "" {
		t.Skip("the cluster is another: \"make e2e SUITE=logs\" runs this")
	}
	c := newCluster(t)
	c.helm(c.values()+fmt.Sprintf("logs: {enabled: true, dir: %q}\n", filepath.Join(c.state, "podlogs")),
		"install", "katbox", charts.now, "--values", "-", "--create-namespace")
	c.rolledOut()
	for _, test := range []struct {
		name string
		run  func(*cluster)
	}{
		{"ends", (*cluster).logsOfEnds},
		{"restarts", (*cluster).logsOfRestarts},
		{"rotated", (*cluster).rotatedLogs},
		{"deleted while they run", (*cluster).logsOfDeleted},
		{"off", (*cluster).logsOff},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(c.in(t)) })
	}
}

// wantLogs waits until the verb logs writes what kubectl logs did.
func (c *cluster) wantLogs(want string, args ...string) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("katbox logs %q", args), func() error {
		got, err := c.tryKatbox(append([]string{"logs"}, args...)...)
		if err == nil && got != want {
			err = fmt.Errorf("%.300q, want %.300q", got, want)
		}
		return err
	})
}

// logsOfEnds: each container's, of a pod that succeeds and of one that fails.
func (c *cluster) logsOfEnds() {
	for name, code := range map[string]string{"succeeds": "0", "fails": "3"} {
		c.create(pod{Name: name, Scripts: []string{"echo to out; echo to err >&2; seq 1000; exit " + code, `printf 'no line end'`}})
		c.wantPhase(name, map[string]string{"0": "Succeeded", "3": "Failed"}[code])
		first, second := c.kubectl("logs", name, "-c", "c0"), c.kubectl("logs", name, "-c", "c1")
		c.end(name)
		c.wantLogs(first, "default/"+name, "-c", "c0")
		c.wantLogs(second, "default/"+name, "-c", "c1")
		c.wantLogs(strings.Join(strings.SplitAfter(first, "\n")[999:1002], ""), "default/"+name, "-c", "c0", "--tail", "3")
	}
}

// logsOfRestarts: those of the container that runs and of the one before, which is all that the kubelet has.
func (c *cluster) logsOfRestarts() {
	c.feed(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: again}, spec: {restartPolicy: OnFailure, hostNetwork: true,
  automountServiceAccountToken: false, containers: [{name: main, image: %q, volumeMounts: [{name: scratch, mountPath: /scratch}],
  command: [sh, -c, "echo x >>/scratch/runs; n=$(wc -l </scratch/runs); echo run $n; exit $((3 - n))"]}],
  volumes: [{name: scratch, csi: {driver: %s}}]}}`, c.busybox(), driverName), "create", "-f", "-")
	c.wantPhase("again", "Succeeded")
	c.end("again")
	c.wantLogs("run 3\n", "default/again")
	c.wantLogs("run 2\n", "default/again", "--previous") // kubectl logs says of a pod that has ended that this is gone
}

// rotatedLogs: what kubectl logs shows is the end of them.
func (c *cluster) rotatedLogs() {
	const script = `i=0
while [ $i -lt 12 ]; do
	awk -v i=$i 'BEGIN { for (n = 1; n <= 1000; n++) printf "%d %0100d\n", i, n }'
	sleep 1
	i=$((i+1))
done`
	uid := c.create(pod{Name: "talks", Scripts: []string{script}})
	c.wantPhase("talks", "Succeeded")
	files, err := filepath.Glob(filepath.Join(c.state, "podlogs", "default_talks_"+uid, "c0", "*"))
	if err != nil || len(files) < 3 {
		c.t.Fatalf("the kubelet has the files %q, %v", files, err)
	}
	shown := c.kubectl("logs", "talks")
	c.end("talks")
	c.eventually("the rotated logs", func() error {
		got, err := c.tryKatbox("logs", "default/talks")
		switch {
		case err != nil:
			return err
		case !strings.HasSuffix(got, shown) || len(got) < 2*len(shown):
			return fmt.Errorf("%d bytes, kubectl logs has the last %d", len(got), len(shown))
		}
		lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		for i := 1; i < len(lines); i++ { // none is missing between the first and the last
			if number(lines[i]) != number(lines[i-1])%1000+1 {
				return fmt.Errorf("line %d is %.40q after %.40q", i, lines[i], lines[i-1])
			}
		}
		return nil
	})
}

// number is that of a line of rotatedLogs.
func number(line string) int {
	_, digits, _ := strings.Cut(line, " ")
	n, _ := strconv.Atoi(strings.TrimLeft(digits, "0"))
	return n
}

// logsOfDeleted: of pods that are deleted while they write, at most a few lose their last word. What counts are those that said
// it before the kubelet killed them, which their volume tells.
func (c *cluster) logsOfDeleted() {
	const atOnce = 50
	const script = "trap 'echo the last word; echo >/scratch/said; exit 0' TERM; while :; do echo something; sleep 0.5; done"
	pods := deletedPods
	if n, err := strconv.Atoi(os.Getenv("KATBOX_E2E_DELETED")); err == nil {
		pods = n
	}
	began, uids, image := time.Now(), map[string]bool{}, c.busybox()
	for first := 0; first < pods; first += atOnce {
		names, manifests := []string{}, &strings.Builder{}
		for n := first; n < min(first+atOnce, pods); n++ {
			p := pod{Name: fmt.Sprintf("talker-%d", n), Scripts: []string{script}}
			names = append(names, p.Name)
			p.write(manifests, c.t, image)
		}
		c.feed(manifests.String(), "create", "-f", "-")
		c.kubectl(append([]string{"wait", "--for=condition=Ready", "--timeout", patience.String(), "pod"}, names...)...)
		var running struct{ Items []status }
		c.get(&running, "pods")
		for _, p := range running.Items {
			uids[p.Metadata.UID] = false
		}
		c.kubectl(append([]string{"delete", "--wait", "--timeout", patience.String(), "pod"}, names...)...)
	}
	if len(uids) != pods {
		c.t.Fatalf("%d pods ran, want %d", len(uids), pods)
	}
	var said, kept int
	c.eventually("the last words", func() error {
		said, kept = 0, 0
		for uid := range uids {
			if !c.left(uid, "said") {
				continue
			}
			said++
			if uids[uid] = uids[uid] || c.left(uid, "c0/0.log", "the last word\n"); uids[uid] {
				kept++
			}
		}
		if lost := said - kept; lost*deletedPods > lostOf*said || said < len(uids)/2 {
			return fmt.Errorf("%d of %d are lost, of %d pods", lost, said, len(uids))
		}
		return nil
	})
	report("pods deleted while they ran, with their last word", "%d of %d", kept, said)
	c.t.Logf("%s for %d pods", time.Since(began).Round(time.Second), len(uids))
	c.callTimes("with logs")
}

// left reports whether a file is in one of the volumes that a pod has left, with each of the texts.
func (c *cluster) left(uid, name string, texts ...string) bool {
	files, err := filepath.Glob(filepath.Join(c.workdir(), uid, "*", name))
	if err != nil || len(files) != 1 {
		return false
	}
	content, err := os.ReadFile(files[0])
	for _, text := range texts {
		if err == nil && !strings.Contains(string(content), text) {
			return false
		}
	}
	return err == nil
}

// callTimes reports how long the calls of this daemon took.
func (c *cluster) callTimes(which string) {
	c.t.Helper()
	for _, method := range []string{"NodePublishVolume", "NodeUnpublishVolume"} {
		labels := fmt.Sprintf(`{code="OK",method=%q}`, method)
		sum, err := c.metric("katbox_csi_operation_duration_seconds_sum" + labels)
		if err != nil {
			c.t.Fatal(err)
		}
		count, err := c.metric("katbox_csi_operation_duration_seconds_count" + labels)
		if err != nil {
			c.t.Fatal(err)
		}
		report(method+" "+which+", mean", "%.1f ms of %.0f calls", 1000*sum/count, count)
	}
}

// logsOff: an upgrade that turns them off keeps no more, and the daemon has no mount of their directory. What was kept stays.
func (c *cluster) logsOff() {
	c.helm("", "upgrade", "katbox", charts.now, "--reuse-values", "--set", "logs.enabled=false")
	c.rolledOut()
	if mounts := c.kubectl("-n", namespace, "get", "daemonset", "katbox", "-o", "yaml"); strings.Contains(mounts, "podlogs") {
		c.t.Errorf("the DaemonSet still has the directory:\n%s", mounts)
	}
	uid := c.create(pod{Name: "silent", Scripts: []string{"echo not kept"}})
	c.wantPhase("silent", "Succeeded")
	c.end("silent")
	c.wantNoMounts()
	c.eventually("its volume is retained", func() error {
		_, err := c.tryKatbox("ls", "default/silent:")
		return err
	})
	if dirs := c.data(uid); len(dirs) != 1 {
		c.t.Errorf("the pod has left %q", dirs)
	}
	c.wantIn(c.katbox("logs", "default/fails", "-c", "c0"), "to out")
}
