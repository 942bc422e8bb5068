//go:build e2e

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// mountOf returns the line of the node's mount table for the volume name of a
// pod, "" if nothing is mounted there. It begins with an ID that is the mount's own, so
// an equal line is the same mount and no new one.
func (c *cluster) mountOf(uid, name string) string {
	c.t.Helper()
	target := filepath.Join(c.kubeletDir(), "pods", uid, "volumes/kubernetes.io~csi", name, "mount")
	found := ""
	for _, line := range c.mountTable() {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == target {
			if found != "" {
				c.t.Errorf("mounted twice: %s", target)
			}
			found = line
		}
	}
	return found
}

// mounts counts the mounts of all pods' volumes that a CSI driver made.
func (c *cluster) mounts() int {
	c.t.Helper()
	n := 0
	for _, line := range c.mountTable() {
		if strings.Contains(line, c.kubeletDir()+"/pods/") && strings.Contains(line, "/volumes/kubernetes.io~csi/") {
			n++
		}
	}
	return n
}

func (c *cluster) mountTable() []string {
	c.t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.Split(string(table), "\n")
}

// wantNoMounts waits until nothing of any pod is mounted.
func (c *cluster) wantNoMounts() {
	c.t.Helper()
	c.eventually("no mount of any pod", func() error {
		if c.mounts() > 0 {
			return errors.New(strings.Join(c.mountTable(), "\n"))
		}
		return nil
	})
}
