//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// restartControlPlane kills etcd, API server, controller manager and scheduler in one moment, and starts them again.
// What the API server refuses until it has read its roles is no mistake.
func (l *localCluster) restartControlPlane() {
	l.t.Helper()
	const restart = `set -euo pipefail
. "$0/lib.sh"
names=(etcd apiserver controller-manager scheduler)
for name in "${names[@]}"; do cp "/proc/$(pidof_ "$name")/cmdline" "$RUN/$name.argv"; done
for name in "${names[@]}"; do kill -s KILL "$(pidof_ "$name")"; done
for name in "${names[@]}"; do
	stop "$name"
	mapfile -d '' -t argv <"$RUN/$name.argv"
	start "$name" "${argv[@]}"
done`
	l.removed(func() {
		if out, err := l.try("", "bash", "-c", restart, l.scripts); err != nil {
			l.t.Fatalf("%v\n%s", err, out)
		}
		l.eventually("the API server is ready", func() error {
			_, err := l.tryKubectl("", "get", "--raw", "/readyz")
			return err
		})
		l.eventually("the controllers go on", func() error {
			_, err := l.tryKubectl("", "-n", namespace, "rollout", "status", "deployment/katbox-controller", "--timeout=1s")
			return err
		})
	})
}

// daemonPod is the name and the UID of the daemon's pod on a node.
func (l *localCluster) daemonPod(n int) (name, uid string) {
	l.t.Helper()
	out := l.kubectl("-n", namespace, "get", "pods", "-l", "app.kubernetes.io/name=katbox", "--field-selector=spec.nodeName="+l.nodeName(n),
		"-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}`)
	fields := strings.Fields(out)
	if len(fields) != 2 {
		l.t.Fatalf("node %d has the daemons %q", n, out)
	}
	return fields[0], fields[1]
}

// processOf returns the process of a program in a pod, as the host sees it; 0 for none.
func (l *localCluster) processOf(program, uid string) int {
	l.t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, process := range processes {
		command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		groups, _ := os.ReadFile(filepath.Join(process, "cgroup"))
		if strings.HasPrefix(string(command), program+"\x00") && strings.Contains(string(groups), uid) {
			pid, err := strconv.Atoi(filepath.Base(process))
			if err != nil {
				l.t.Fatal(err)
			}
			return pid
		}
	}
	return 0
}

// killDaemon kills the process of a node's daemon, and returns once another one runs, in the same pod.
func (l *localCluster) killDaemon(n int) {
	l.t.Helper()
	_, uid := l.daemonPod(n)
	old := l.processOf("/katbox", uid)
	if old == 0 {
		l.t.Fatalf("node %d has no process of a daemon", n)
	}
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		l.t.Fatal(err)
	}
	l.eventually("the daemon is started again", func() error {
		if now := l.processOf("/katbox", uid); now == 0 || now == old {
			return fmt.Errorf("its process is %d", now)
		}
		return nil
	})
}

// registered fails unless the kubelet of a node has registered both drivers, that of local pools with the pool.
func (l *localCluster) registered(n int, pool string) error {
	out, err := l.tryKubectl("", "get", "csinode", l.nodeName(n), "-o",
		`jsonpath={range .spec.drivers[*]}{.name} {.topologyKeys}{"\n"}{end}`)
	if err != nil {
		return err
	}
	if !strings.Contains(out, localDriver+"/"+pool) || !strings.Contains(out, driverName) {
		return errors.New("CSINode has " + out)
	}
	return nil
}

// testRegisteredAgain: a daemon that is killed or replaced, and a kubelet that is, register the second driver again,
// whatever the API server knew of it. The pod that uses a volume goes on, and one that comes then has its volume too.
func (l *localCluster) testRegisteredAgain() {
	const node = 2
	pool := l.pools()[l.nodeName(node)].Spec.Local.UUID
	l.apply(localPod{name: "goes-on", size: "200Mi", node: node}.String())
	l.running("goes-on")
	sum := l.exec("goes-on", write("/v/data", 50)+" && sync && sha256sum </v/data")
	for i, restart := range []struct {
		of  string
		now func()
	}{
		{"the daemon is killed", func() { l.killDaemon(node) }},
		{"the daemon is replaced", func() {
			name, _ := l.daemonPod(node)
			l.kubectl("-n", namespace, "delete", "pod", name, "--wait=true")
		}},
		{"the kubelet is killed", func() { l.script("kubelet.sh", "crash", strconv.Itoa(node)) }},
	} {
		l.kubectl("patch", "csinode", l.nodeName(node), "--type=json", "-p", `[{"op": "replace", "path": "/spec/drivers", "value": []}]`)
		restart.now()
		l.eventually("both drivers are registered after "+restart.of, func() error { return l.registered(node, pool) })
		l.daemonsReady()
		l.wantPoolOf(node, "Ready")
		name := "comes-" + strconv.Itoa(i)
		l.apply(localPod{name: name, size: "100Mi", node: node}.String())
		l.running(name)
		if got := l.exec("goes-on", "sha256sum </v/data && echo more >>/v/more && sync"); got != sum {
			l.t.Errorf("after %s the data are %q, want %q", restart.of, got, sum)
		}
	}
}
