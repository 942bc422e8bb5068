//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticks are those in which the kernel counts a process's time, in a second.
const ticks = 100

// testMeasure: what the daemon takes while nothing happens, after all the pods.
func (c *cluster) testMeasure() {
	for _, object := range c.images() {
		for _, name := range object.Names {
			if strings.Contains(name, c.image) {
				report("image, compressed (wanted: under 30 MB)", "%.1f MB", float64(object.SizeBytes)/1e6)
				if object.SizeBytes > 30e6 {
					c.t.Errorf("the image has %d bytes", object.SizeBytes)
				}
			}
		}
	}
	const minute = time.Minute
	pid := c.daemon().pid
	before := c.cpu(pid)
	time.Sleep(minute)
	used := c.cpu(pid) - before
	memory := c.memory(pid)
	report("retained volumes, while idle", "%d", c.volumes())
	report("memory while idle (wanted: under 40 MiB)", "%.1f MiB", memory/(1<<20))
	report("CPU while idle (wanted: under 2 mCPU)", "%.2f mCPU", 1000*used.Seconds()/minute.Seconds())
	if memory > 40<<20 {
		c.t.Errorf("the idle daemon takes %.0f bytes of memory", memory)
	}
	// Twice of what is wanted: a collection of garbage may just fall into the minute.
	if used > minute*4/1000 {
		c.t.Errorf("the idle daemon took %s of CPU time in a minute", used)
	}
}

// image is an image on the node.
type image struct {
	Names     []string
	SizeBytes int64
}

func (c *cluster) images() []image {
	c.t.Helper()
	var node struct{ Status struct{ Images []image } }
	c.get(&node, "node", c.node())
	return node.Status.Images
}

// busybox is what the cluster's container runtime calls the image of that name,
// which it has from the beginning.
func (c *cluster) busybox() string {
	c.t.Helper()
	var found string
	c.eventually("an image busybox on the node", func() error {
		for _, image := range c.images() {
			for _, name := range image.Names {
				if strings.Contains(name, "/busybox:") {
					found = name
					return nil
				}
			}
		}
		return errors.New("the node tells of none")
	})
	return found
}

// pidOf returns the process of a container.
func (c *cluster) pidOf(container string) int {
	c.t.Helper()
	out, err := c.try("", filepath.Join(c.state, "deb/usr/bin/ctr"), "--address", filepath.Join(c.state, "containerd/containerd.sock"),
		"--namespace", "k8s.io", "tasks", "list")
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == container {
			pid, err := strconv.Atoi(fields[1])
			if err != nil {
				c.t.Fatal(err)
			}
			return pid
		}
	}
	c.t.Fatalf("container %s does not run:\n%s", container, out)
	return 0
}

// cpu is the CPU time that a process has had.
func (c *cluster) cpu(pid int) time.Duration {
	c.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		c.t.Fatal(err)
	}
	// After the name, which may have spaces: user and system time are the 12th and 13th.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	total := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			c.t.Fatal(err)
		}
		total += n
	}
	return time.Duration(total) * time.Second / ticks
}

// memory are the bytes that a process has in memory.
func (c *cluster) memory(pid int) float64 {
	c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, err := strconv.Atoi(fields[1])
			if err != nil {
				c.t.Fatal(err)
			}
			return float64(kib) * 1024
		}
	}
	c.t.Fatalf("no VmRSS in the status of process %d", pid)
	return 0
}
