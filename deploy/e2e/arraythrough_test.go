//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// written are volumes of each kind that are written to.
func (a *arrayCluster) written() (writers []*steadyWriter) {
	a.t.Helper()
	for _, c := range kindsOfVolumes() {
		writers = append(writers, a.startWriting(c))
	}
	for _, w := range writers {
		a.running(w.claim.name)
	}
	return writers
}

// testThroughout: writers on volumes of each kind go on without an error, and what they wrote is there,
// while the volumes grow, and whatever happens to Katbox and to the array.
func (a *arrayCluster) testThroughout() {
	writers := a.written()
	for _, disturbance := range []struct {
		name string
		do   func()
	}{
		{"from the beginning", func() {}},
		{"while its volume grows", func() {
			for i, w := range writers {
				w.grow(2 + i%2)
			}
		}},
		{"after SIGKILL of the daemon", a.killDaemon},
		{"after a restart of the kubelet", a.restartKubelet},
		{"after the overlay was deleted and installed again", func() {
			a.deleteOverlay()
			for _, w := range writers {
				w.wantGoesOn("without Katbox")
			}
			a.reinstall()
		}},
		{"after the access key was revoked", a.revokeKey},
		{"after the array's address has changed", func() {
			a.order("PATCH", "settings", `{"bothPortals":true}`)
			a.order("POST", "switch", "")
		}},
		{"after the array was away for a minute", func() {
			a.order("POST", "away", `{"how":"network"}`)
			time.Sleep(30 * time.Second)
			a.killDaemon()
			time.Sleep(30 * time.Second)
			a.order("POST", "back", "")
		}},
	} {
		began := time.Now()
		disturbance.do()
		for _, w := range writers {
			w.wantGoesOn(disturbance.name)
		}
		a.t.Logf("%s: %.0f s", disturbance.name, time.Since(began).Seconds())
	}
	a.wantDriver()
	a.wantPool("Ready")
	for _, w := range writers {
		w.finish()
	}
	a.order("PATCH", "settings", `{"bothPortals":false}`)
}

// killDaemon ends the daemon's process, and waits until it is there again.
func (a *arrayCluster) killDaemon() {
	a.t.Helper()
	pid := a.daemonProcess()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		a.t.Fatal(err)
	}
	a.daemonReady()
}

// daemonProcess is the PID of the daemon.
func (a *arrayCluster) daemonProcess() int {
	a.t.Helper()
	processes := a.daemonProcesses()
	if len(processes) != 1 {
		a.t.Fatalf("the processes of the daemon are %d", processes)
	}
	return processes[0]
}

// daemonProcesses are those with its name.
func (a *arrayCluster) daemonProcesses() (pids []int) {
	a.t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		a.t.Fatal(err)
	}
	for _, process := range processes {
		command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		if strings.HasPrefix(string(command), "/katbox\x00") {
			pid, err := strconv.Atoi(filepath.Base(process))
			if err != nil {
				a.t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// daemonReady waits until the pod of the DaemonSet is ready, after it was restarted.
func (a *arrayCluster) daemonReady() {
	a.t.Helper()
	time.Sleep(time.Second) // what the kubelet tells of the container may be old
	a.kubectl("-n", namespace, "rollout", "status", "daemonset/katbox", "--timeout", patience.String())
}

// deleteOverlay deletes daemon and controller, and checks that no volume is touched by that.
func (a *arrayCluster) deleteOverlay() {
	a.t.Helper()
	began := time.Now()
	attached := len(a.onArray("servers"))
	a.feed(a.poolsManifests(), "delete", "--wait", "--timeout", patience.String(), "-f", "-")
	a.removals = append(a.removals, removal{began, time.Now()})
	if now := len(a.onArray("servers")); now != attached {
		a.t.Errorf("the array had %d servers, and has %d without Katbox", attached, now)
	}
}

// revokeKey lets the array refuse Katbox's access key, kills the daemon meanwhile, and takes the key again.
func (a *arrayCluster) revokeKey() {
	a.t.Helper()
	a.order("PATCH", "settings", `{"token":"another"}`)
	a.wantPool("Unreachable")
	a.killDaemon()
	a.order("PATCH", "settings", `{"token":"token"}`)
	a.wantPool("Ready")
}

// testTakenOver: what an older daemon has staged, of which there is no record, is taken over: pods go on,
// volumes grow, and nothing is left of them when they are deleted.
func (a *arrayCluster) testTakenOver() {
	writers := a.written()
	for _, w := range writers {
		w.wantGoesOn("from the beginning")
	}
	a.deleteOverlay()
	records, err := filepath.Glob(filepath.Join(a.socketDir(), "staged", "*"))
	if err != nil {
		a.t.Fatal(err)
	}
	if len(records) != len(writers) {
		a.t.Errorf("%d volumes are staged, and the records are %q", len(writers), records)
	}
	for _, record := range records {
		if err := os.Remove(record); err != nil {
			a.t.Fatal(err)
		}
	}
	a.reinstall()
	a.wantDriver()
	a.wantPool("Ready")
	for i, w := range writers {
		w.grow(2 + i%2)
		w.wantGoesOn("with another daemon")
	}
	for _, w := range writers {
		w.finish()
	}
}
