//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// testCrashPoints: the daemon is killed before and after each change that it makes to the node, while volumes
// of all kinds come and go; all go on, and nothing is left of them. Others are written to meanwhile.
func (a *arrayCluster) testCrashPoints() {
	writers := a.written()
	talk := filepath.Join(a.socketDir(), "crashpoints")
	if err := os.MkdirAll(talk, 0o755); err != nil {
		a.t.Fatal(err)
	}
	a.daemonWith(a.image + "-crashpoints")
	defer os.RemoveAll(talk)

	up, down := a.pointsOf(talk)
	a.t.Logf("%d points of staging, %d of unstaging", len(up), len(down))
	if len(up) < 10 || len(down) < 10 {
		a.t.Fatalf("the daemon has told too few points: %q, %q", up, down)
	}
	for i := range max(len(up), len(down)) {
		began := time.Now()
		kill := func(points []string) {
			if i >= len(points) {
				return
			}
			if err := os.WriteFile(filepath.Join(talk, "kill"), []byte(points[i]+" 1\n"), 0o600); err != nil {
				a.t.Fatal(err)
			}
		}
		killed := func(points []string) {
			if i >= len(points) {
				return
			}
			a.eventually("the daemon dies "+points[i], func() error {
				if _, err := os.Stat(filepath.Join(talk, "kill")); err == nil {
					return errors.New("it has not come there")
				}
				return nil
			})
			a.newDaemon()
		}
		kill(up)
		a.come(func() { killed(up) })
		kill(down)
		a.leave(func() { killed(down) })
		for _, w := range writers {
			w.wantGoesOn(fmt.Sprintf("after round %d", i))
		}
		a.t.Logf("round %d: %.0f s", i, time.Since(began).Seconds())
	}
	a.daemonWith(a.image)
	for _, w := range writers {
		w.finish()
	}
}

// passing are volumes that come and go.
func passing() (claims []claim) {
	for _, c := range []claim{
		{name: "nfs", class: "nfs"}, {name: "ext4", class: "ext4"}, {name: "xfs", class: "xfs"}, {name: "block", class: "ext4", mode: "Block"},
	} {
		c.name = "passing-" + c.name
		claims = append(claims, c)
	}
	return claims
}

// come makes the volumes and pods that write to them; what is done meanwhile.
func (a *arrayCluster) come(meanwhile func()) {
	a.t.Helper()
	for _, c := range passing() {
		script := "echo hello >/v/from && sync && exec sleep 99999"
		if c.mode == "Block" {
			script = "echo hello | dd of=/dev/v bs=4096 count=1 conv=sync,fsync && exec sleep 99999"
		}
		a.apply(c.String(), container{name: c.name, script: script, claim: c}.String())
	}
	meanwhile()
	for _, c := range passing() {
		a.running(c.name)
	}
}

// leave deletes them, and waits until nothing is left.
func (a *arrayCluster) leave(meanwhile func()) {
	a.t.Helper()
	for _, c := range passing() {
		a.kubectl("delete", "pod/"+c.name, "pvc/"+c.name, "--wait=false")
	}
	meanwhile()
	for _, c := range passing() {
		a.kubectl("wait", "--for=delete", "--timeout", patience.String(), "pod/"+c.name, "pvc/"+c.name)
	}
	a.eventually("the volumes are gone", func() error {
		out, err := a.tryKubectl("", "get", "pv", "-o", "jsonpath={.items[*].spec.claimRef.name}")
		if err == nil && strings.Contains(out, "passing") {
			err = errors.New(out)
		}
		return err
	})
}

// pointsOf lets the volumes come and go once, and returns at which points the daemon came by.
func (a *arrayCluster) pointsOf(talk string) (up, down []string) {
	a.t.Helper()
	trace := filepath.Join(talk, "trace")
	read := func() (points []string) {
		content, err := os.ReadFile(trace)
		if err != nil {
			a.t.Fatal(err)
		}
		if err := os.Remove(trace); err != nil {
			a.t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if point := strings.TrimSpace(line); !slices.Contains(points, point) {
				points = append(points, point)
			}
		}
		return points
	}
	a.come(func() {})
	up = read()
	a.leave(func() {})
	return up, read()
}

// newDaemon takes the pod away, so that the kubelet does not wait ever longer before it starts the daemon again.
func (a *arrayCluster) newDaemon() {
	a.t.Helper()
	a.kubectl("-n", namespace, "delete", "pod", "-l", "app.kubernetes.io/name=katbox", "--grace-period=0", "--force", "--wait=true")
	a.daemonReady()
}

// daemonWith lets the DaemonSet run an image, which talks through a directory beside the socket if it can.
func (a *arrayCluster) daemonWith(image string) {
	a.t.Helper()
	container := fmt.Sprintf(`{"name":"katbox","image":%q,"env":[{"name":"KATBOX_CRASHPOINTS","value":"/array/crashpoints"}]}`, image)
	a.kubectl("-n", namespace, "patch", "daemonset", "katbox", "-p", `{"spec":{"template":{"spec":{"containers":[`+container+`]}}}}`)
	a.daemonReady()
}
