package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestFullDiskWithoutEviction: if no volume may go early, an unpublish still succeeds and is
// durable, and a publish is refused until there is room.
func TestFullDiskWithoutEviction(t *testing.T) {
	onFullDisks(t, func(t *testing.T, w workingDisk) {
		const published = 5
		n := newDiskNode(t, w, "--headroom", "0")
		n.start()
		n.retainNext(manyRetained)
		first := n.publishNext(published)
		n.fillUp()
		refused := n.publishUntilRefused()
		t.Logf("%d publishes succeeded", refused-first-published)
		before := time.Now()
		for i := first; i < refused; i++ {
			n.unpublish(podName(i), volumeID(i))
		}
		after := time.Now()

		records := n.kill()
		for range 2 {
			if len(records) != refused {
				t.Errorf("%d records, want %d", len(records), refused)
			}
			for i := first; i < refused; i++ {
				r := records[volumeID(i)]
				// A load finds the time by another clock than it was taken by.
				const clocks = 5 * time.Second
				if r.Phase != volume.Retained || r.Lifespan != time.Hour ||
					r.Unpublished.Before(before.Add(-clocks)) || r.Unpublished.After(after.Add(clocks)) {
					t.Errorf("volume %d is %v since %v for %v, want Retained between %v and %v", i, r.Phase, r.Unpublished, r.Lifespan, before, after)
				}
			}
			n.start()
			records = n.kill()
		}
		n.start()
		n.publishUntilRefused()
		for i := range refused {
			if !exists(n.dataOf(i)) {
				t.Errorf("volume %d of %d is gone", i, refused)
			}
		}

		n.empty()
		n.publish(podName(refused), volumeID(refused))
		n.writeMarker(podName(refused))
		n.unpublish(podName(refused), volumeID(refused))
		for i := refused + 1; i < n.next; i++ {
			if err := n.tryUnpublish(podName(i), volumeID(i)); err != nil {
				t.Error(err)
			}
		}
		n.expireAll(0)
	})
}

// TestFullDiskMakesRoom: a call that finds the disk full makes the daemon free space at
// once. The trash goes first, then the oldest volumes, and no more of them than the headroom needs.
func TestFullDiskMakesRoom(t *testing.T) {
	onFullDisks(t, func(t *testing.T, w workingDisk) {
		const published = 5
		n := newDiskNode(t, w, "--headroom", "0.02")
		n.start()
		n.retainNext(manyRetained)
		first := n.publishNext(published)
		n.signal(syscall.SIGKILL)
		leftover := filepath.Join(n.work, ".trash", "leftover")
		must(t, os.Mkdir(leftover, 0o700))
		must(t, writeFiles(leftover, 500, 32<<10))
		n.fillUp()
		n.start()
		n.eventually("the trash empty", func() bool { return len(trashOf(t, n.work)) == 0 })
		if gone := n.goneOf(manyRetained); gone > 0 {
			t.Errorf("%d volumes are gone, though the trash made room", gone)
		}

		// Awake it would go on making room for what fills the disk.
		n.asleep(n.fillUp)
		// It may find the full disk before a call does.
		refused, ok := n.publishUntil(func() bool { return !exists(n.dataOf(0)) })
		switch {
		case !ok && !n.names:
			t.Errorf("%d publishes on a full disk, none was refused and no volume went", mostPublishes)
		case n.names:
			// No call meets the full disk; a start measures it.
			n.kill()
			n.start()
		}
		n.eventually("the oldest volume gone", func() bool { return !exists(n.dataOf(0)) })
		n.eventually("room for a volume", func() bool {
			_, err := n.node.NodePublishVolume(t.Context(), n.request(podName(refused), volumeID(refused)))
			if err != nil && !n.refuses(err) {
				t.Fatal(err)
			}
			return err == nil
		})
		for i := range 20 {
			// Each call gives time for an eviction too many.
			n.unpublish(podName(first), volumeID(first))
			if _, err := n.node.NodePublishVolume(t.Context(), n.request(podName(first), volumeID(first))); err != nil {
				if !n.refuses(err) {
					t.Errorf("publish %d: %v, want success or ResourceExhausted", i, err)
				}
			}
		}
		gone := n.goneOf(manyRetained)
		t.Logf("%d of %d volumes went early", gone, manyRetained)
		if gone > n.most {
			t.Errorf("%d volumes went early, want at most %d", gone, n.most)
		}
		n.empty()
		n.kill()
		if t.Failed() {
			t.Logf("%s", n.stdout)
		}
		n.start()
		for i := first; i < n.next; i++ {
			if err := n.tryUnpublish(podName(i), volumeID(i)); err != nil {
				t.Error(err)
			}
		}
		n.expireAll(0)
	})
}

// TestFirstStartOnAFullDisk: it reports what is wrong, and leaves nothing that prevents the
// next start.
func TestFirstStartOnAFullDisk(t *testing.T) {
	onFullDisks(t, func(t *testing.T, w workingDisk) {
		n := newDiskNode(t, w)
		// In a cluster the full directory exists already.
		must(t, os.MkdirAll(filepath.Join(n.work, ".trash"), 0o700))
		n.fillUp()
		line := n.fails()
		t.Log(line)
		if !strings.Contains(line, "no space left on device") || !strings.Contains(line, n.work) {
			t.Errorf("%q does not say what is full", line)
		}
		n.empty()
		n.start()
		n.publish(testPod, volumeID(1))
	})
}

// TestTrashWithoutRoom: if the trash has no room for another name, a volume is erased in
// its place.
func TestTrashWithoutRoom(t *testing.T) {
	n := newDiskNode(t, newWorkingDisk(t, fullDisks["ext4 bytes"]), "--headroom", "0.2", "--http-endpoint", httpEndpoint())
	n.start()
	n.retainNext(manyRetained)
	n.signal(syscall.SIGKILL)
	n.fillUp()
	// A file with a mount on it cannot be erased. The names of those files use up the one
	// block that the directory has.
	var names []string
	for _, length := range []int{200, 26} {
		for {
			name := strings.Repeat("n", length-3) + podName(100 + len(names))[4:]
			path := filepath.Join(n.work, ".trash", name)
			f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, syscall.ENOSPC) {
				break
			}
			must(t, err, f.Close(), syscall.Mount("/dev/null", path, "", syscall.MS_BIND, ""))
			names = append(names, path)
		}
	}
	n.start()
	n.eventually("the oldest volume gone", func() bool { return !exists(n.dataOf(0)) })
	n.eventually("that and the trash are counted", func() bool {
		got := n.metrics()
		return got["katbox_erased_volumes_total"] > 0 && got["katbox_trash_set_aside_entries"] == float64(len(names))
	})
	n.signal(syscall.SIGTERM)
	if !strings.Contains(n.stdout.String(), "erasing a volume where it is") {
		t.Errorf("the trash had room\n%s", n.stdout)
	}
	for _, path := range names {
		must(t, syscall.Unmount(path, 0))
	}
	n.empty()
	n.start()
	n.expireAll(0)
}
