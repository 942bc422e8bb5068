//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// testStoppedWaiting: a daemon that is stopped while the kernel waits for a disk of an array that is away ends
// when the array is back. The next one goes on with what it did.
func (a *arrayCluster) testStoppedWaiting() {
	c := claim{name: "ext4", class: "ext4"}
	a.apply(c.String(), container{name: "ext4", script: "echo hello >/v/from && sync && echo durable && exec sleep 99999", claim: c}.String())
	// A pod that still writes when the array goes away does not end before the disk has failed.
	a.eventually("the pod has written", func() error {
		out, err := a.tryKubectl("", "logs", "ext4")
		if out = strings.TrimSpace(out); err == nil && out != "durable" {
			err = fmt.Errorf("the pod's log is %q", out)
		}
		return err
	})
	daemon := a.daemonProcess()
	a.order("POST", "away", `{"how":"network"}`)
	defer a.order("POST", "back", "") // whatever happens: the next scenario needs it
	away := time.Now()
	a.kubectl("delete", "pod", "ext4", "--wait=false")
	a.eventually("the daemon waits for the disk", func() error { return waitsInKernel(daemon) })
	a.kubectl("-n", namespace, "delete", "pods", "-l", "app.kubernetes.io/name=katbox", "--wait=false")
	time.Sleep(time.Until(away.Add(75 * time.Second))) // longer than the pod's and the daemon's times to end
	if err := waitsInKernel(daemon); err != nil {
		a.t.Errorf("a daemon that was stopped while it waits: %v", err)
	}
	a.order("POST", "back", "")
	back := time.Now()
	a.eventually("the daemon has ended", func() error {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", daemon)); err == nil {
			return errors.New("it is still there")
		}
		return nil
	})
	a.t.Logf("the daemon has ended %.0f s after the array was back", time.Since(back).Seconds())
	a.eventually("there is another daemon", func() error {
		out, err := a.tryKubectl("", "-n", namespace, "get", "daemonset", "katbox", "-o", "jsonpath={.status.numberReady}")
		if err == nil && (out != "1" || len(a.daemonProcesses()) != 1) {
			err = fmt.Errorf("%s are ready", out)
		}
		return err
	})
	a.kubectl("wait", "--for=delete", "--timeout", patience.String(), "pod/ext4")
	if out := a.answer(c, "cat /v/from"); out != "hello" {
		a.t.Errorf("the volume has the content %q", out)
	}
	a.kubectl("delete", "pvc", c.name, "--wait=true", "--timeout", patience.String())
}

// waitsInKernel returns no error if a thread of a process waits in the kernel, and cannot be ended.
func waitsInKernel(process int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", process))
	if err != nil {
		return err
	}
	states := map[string]int{}
	for range 2 { // a thread that waits for a moment only is something else
		for _, thread := range threads {
			content, _ := os.ReadFile(thread)
			if _, rest, ok := strings.Cut(string(content), ") "); ok && strings.HasPrefix(rest, "D ") {
				states[thread]++
			}
		}
		time.Sleep(time.Second)
	}
	for _, times := range states {
		if times == 2 {
			return nil
		}
	}
	return fmt.Errorf("no one of its %d threads waits in the kernel", len(threads))
}
