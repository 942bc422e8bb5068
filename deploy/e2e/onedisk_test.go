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
	"time"

	"golang.org/x/sys/unix"
)

const (
	// finished pods leave a volume of payload MiB each, which fill a disk of 12 GB up
	// to a third.
	finished, payload = 8, 1000
	// idle pods hold a volume and do nothing.
	idle = 5
	// The writer writes a chunk of MiB each second, more in the end than is free above
	// the kubelet's line.
	chunk, chunks = 100, 45
	// line is the kubelet's own where the images are on the same disk, as a share.
	line = 0.15
	// settled is how long the node is watched after the writer has ended. The kubelet
	// looks at its disk every ten seconds.
	settled = 40 * time.Second
)

// TestOneDisk fills a node whose kubelet, containers and volumes share one disk, under
// the kubelet's own eviction thresholds: what is retained has to go before a pod does.
// That the test can fail is shown by the same pods with --kubelet-line=none.
func TestOneDisk(t *testing.T) {
	if os.Getenv("KATBOX_E2E_DISK") == "" {
		t.Skip("the node's disk is the machine's: this is run by \"make e2e SUITE=disk\"")
	}
	c := newCluster(t)
	c.deploy()
	t.Run("auto", func(t *testing.T) {
		c := c.in(t)
		c.wantMetric("katbox_pressure_ratio", 1)
		seen := c.cascade()
		if len(seen.evicted) > 0 || seen.pressure {
			t.Errorf("the kubelet evicted %q; disk pressure: %t", seen.evicted, seen.pressure)
		}
		if seen.least < line {
			t.Errorf("%.1f %% of the disk were free at the least, below the kubelet's line", 100*seen.least)
		}
		left := seen.left()
		if len(left) == 0 || len(left) == finished {
			t.Errorf("%d of %d retained volumes are left, want some to be gone", len(left), finished)
		}
		if oldest := seen.retained[len(seen.retained)-len(left):]; !slices.Equal(left, oldest) {
			t.Errorf("the volumes %v are left, want the last ones of %v", left, seen.retained)
		}
		t.Logf("%d of %d retained volumes went; at least %.1f %% of the disk were free, the kubelet's line is %.0f %%",
			finished-len(left), finished, 100*seen.least, 100*line)
		c.clear()
	})
	t.Run("none", func(t *testing.T) {
		c := c.in(t)
		c.kubectl("-n", namespace, "patch", "daemonset/katbox", "--type=json", "-p",
			`[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--kubelet-line=none"}]`)
		c.rolledOut()
		seen := c.cascade()
		if len(seen.evicted) == 0 || !seen.pressure {
			t.Errorf("the kubelet evicted %q; disk pressure: %t: this test proves nothing", seen.evicted, seen.pressure)
		}
		t.Logf("the kubelet evicted %q; at least %.1f %% of the disk were free", seen.evicted, 100*seen.least)
	})
}

// cascade is what is seen while a pod fills the disk.
type cascade struct {
	*cluster
	// retained are the UIDs of the finished pods, the oldest first.
	retained []string
	// least is the smallest share of the disk that was free.
	least   float64
	evicted []string
	// pressure: the node had the condition DiskPressure.
	pressure bool
}

// cascade lets pods leave their volumes, others idle and one write.
func (c *cluster) cascade() cascade {
	c.t.Helper()
	seen := cascade{cluster: c, least: 1}
	for i := range finished {
		p := pod{Name: fmt.Sprintf("finished-%d", i), Scripts: []string{
			fmt.Sprintf("dd if=/dev/zero of=/scratch/payload bs=1M count=%d 2>/dev/null", payload),
		}}
		seen.retained = append(seen.retained, c.create(p))
		c.wantPhase(p.Name, "Succeeded")
	}
	c.wantMetric(`katbox_volumes{phase="Retained"}`, finished)
	for i := range idle {
		name := fmt.Sprintf("idle-%d", i)
		c.create(pod{Name: name, Scripts: []string{"echo idle > /scratch/log; exec sleep 3600"}})
		c.wantPhase(name, "Running")
	}
	c.create(pod{Name: "writer", Scripts: []string{fmt.Sprintf(
		"i=0; while [ $i -lt %d ]; do sleep 1 & dd if=/dev/zero of=/scratch/$i bs=1M count=%d 2>/dev/null; "+
			"wait; i=$((i+1)); done; touch /scratch/done; exec sleep 3600",
		chunks, chunk)}})
	seen.watch()
	return seen
}

// watch looks at disk and pods until the writer has ended and the kubelet had time to
// look at what it left.
func (s *cascade) watch() {
	s.t.Helper()
	deadline := time.Now().Add(2*chunks*time.Second + patience)
	var ended time.Time
	for next := time.Now(); ended.IsZero() || time.Since(ended) < settled; {
		s.least = min(s.least, s.free())
		if time.Now().After(deadline) {
			s.t.Fatalf("the writer has not ended within %s", 2*chunks*time.Second+patience)
		}
		time.Sleep(50 * time.Millisecond)
		if time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(time.Second)
		s.look()
		if ended.IsZero() && (slices.Contains(s.evicted, "writer") || s.wrote()) {
			ended = time.Now()
		}
	}
}

// free is the share of the node's disk that is free, as the kubelet counts it.
func (s *cascade) free() float64 {
	s.t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(s.state, &fs); err != nil {
		s.t.Fatal(err)
	}
	return float64(fs.Bavail) / float64(fs.Blocks)
}

// look notes the pods that are evicted, and the node's condition.
func (s *cascade) look() {
	s.t.Helper()
	var pods struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct{ Reason string }
		}
	}
	s.get(&pods, "pods")
	for _, p := range pods.Items {
		if p.Status.Reason == "Evicted" && !slices.Contains(s.evicted, p.Metadata.Name) {
			s.evicted = append(s.evicted, p.Metadata.Name)
		}
	}
	condition := s.kubectl("get", "node", s.node(), "-o", `jsonpath={.status.conditions[?(@.type=="DiskPressure")].status}`)
	taints := s.kubectl("get", "node", s.node(), "-o", "jsonpath={.spec.taints[*].key}")
	s.pressure = s.pressure || condition == "True" || strings.Contains(taints, "disk-pressure")
}

// wrote reports whether the writer has written all.
func (s *cascade) wrote() bool {
	s.t.Helper()
	done, err := filepath.Glob(filepath.Join(s.workdir(), s.status("writer").Metadata.UID, "*", "done"))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(done) > 0
}

// left are the UIDs of the finished pods whose volumes are still there.
func (s *cascade) left() []string {
	s.t.Helper()
	var left []string
	for _, uid := range s.retained {
		switch _, err := os.Stat(filepath.Join(s.workdir(), uid)); {
		case err == nil:
			left = append(left, uid)
		case !errors.Is(err, os.ErrNotExist):
			s.t.Fatal(err)
		}
	}
	return left
}

// clear ends all pods and frees the disk: Katbox is removed, and what it kept.
func (c *cluster) clear() {
	c.t.Helper()
	c.kubectl("delete", "pods", "--all", "--wait", "--timeout", patience.String())
	c.remove()
	if err := os.RemoveAll(c.workdir()); err != nil {
		c.t.Fatal(err)
	}
	c.deploy()
}
