package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/store"
	"github.com/katbox/katbox/internal/volume"
)

const (
	manyRetained = 300
	// oldest of them are retained one after the other, and are large: one of them makes
	// enough room.
	oldest = 20
	// mostPublishes bounds the calls for which a full disk may have room, in space that is
	// allocated already.
	mostPublishes = 100
)

// diskNode is a daemon on a disk that fills up.
type diskNode struct {
	*daemon
	workingDisk
	next int
}

func newDiskNode(t *testing.T, w workingDisk, flags ...string) *diskNode {
	t.Helper()
	flags = append(flags, "--workdir", w.work, "--pruneinterval", "1h", "--afterlifespan", "1h")
	n := &diskNode{daemon: newDaemon(t, flags...), workingDisk: w}
	for i := range manyRetained + 4*mostPublishes {
		n.makePod(podName(i))
	}
	return n
}

func (n *diskNode) dataOf(i int) string { return filepath.Join(n.work, podName(i), volumeID(i)) }

// publishNext publishes new volumes, all at the same time, and returns the number of the
// first one.
func (n *diskNode) publishNext(count int) int {
	n.t.Helper()
	first := n.next
	n.next += count
	n.each(first, count, func(i int) error {
		_, err := n.node.NodePublishVolume(n.t.Context(), n.request(podName(i), volumeID(i)))
		if err == nil && i < oldest {
			err = writeFiles(n.dataOf(i), 20, 64<<10)
		}
		return err
	})
	return first
}

func writeFiles(dir string, count, size int) error {
	for i := range count {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%d", i)), make([]byte, size), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// each calls f for a number of volumes at the same time.
func (n *diskNode) each(first, count int, f func(i int) error) {
	n.t.Helper()
	var all sync.WaitGroup
	errs := make([]error, count)
	for i := range count {
		all.Go(func() { errs[i] = f(first + i) })
	}
	all.Wait()
	must(n.t, errs...)
}

// retainNext retains volumes, the first few one after the other.
func (n *diskNode) retainNext(count int) {
	n.t.Helper()
	first := n.publishNext(count)
	for i := range oldest {
		n.unpublish(podName(first+i), volumeID(first+i))
	}
	n.each(first+oldest, count-oldest, func(i int) error { return n.tryUnpublish(podName(i), volumeID(i)) })
}

// publishUntilRefused returns the number of the volume for which the full disk had no room,
// if any. Those before it can be used.
func (n *diskNode) publishUntilRefused() int {
	n.t.Helper()
	refused, ok := n.publishUntil(func() bool { return false })
	if !ok && !n.names {
		n.t.Errorf("%d publishes on a full disk and none refused", mostPublishes)
	}
	return refused
}

// publishUntil publishes until the full disk refuses a volume, done returns true, or mostPublishes were
// made. It returns the number of the volume that was refused, else of one that was not asked for, and
// whether it ended before mostPublishes.
func (n *diskNode) publishUntil(done func() bool) (int, bool) {
	n.t.Helper()
	for range mostPublishes {
		if done() {
			n.next++
			return n.next - 1, true
		}
		i := n.next
		n.next++
		_, err := n.node.NodePublishVolume(n.t.Context(), n.request(podName(i), volumeID(i)))
		switch {
		case err == nil:
			if !n.mounted(n.target(podName(i))) {
				n.t.Fatalf("volume %d is published, and not mounted", i)
			}
		case status.Code(err) == codes.ResourceExhausted:
			n.wantNothing(i)
			return i, true
		case n.refuses(err):
			n.next-- // the kubelet repeats it
		default:
			n.t.Fatalf("publish on a full disk: %v, want ResourceExhausted", err)
		}
	}
	n.next++
	return n.next - 1, false
}

// refuses tells whether a publish was refused because the disk is full. btrfs may have no
// room either to take the record back, and then the daemon reports that it is not certain.
func (n *diskNode) refuses(err error) bool {
	code := status.Code(err)
	return code == codes.ResourceExhausted || code == codes.Aborted && n.fstype == "btrfs"
}

func (n *diskNode) wantNothing(i int) {
	n.t.Helper()
	for _, path := range []string{n.dataOf(i), n.target(podName(i))} {
		if exists(path) {
			n.t.Errorf("a publish that was refused left %s", path)
		}
	}
	if dir := filepath.Dir(n.dataOf(i)); exists(dir) && !n.mayStay(dir) {
		n.t.Errorf("a publish that was refused left %s", dir)
	}
}

// mayStay tells whether a pod's directory may outlive its last volume: the removal of a name takes
// room in the trees of btrfs, and an empty directory does no harm.
func (n *diskNode) mayStay(dir string) bool {
	entries, err := os.ReadDir(dir)
	return n.fstype == "btrfs" && err == nil && len(entries) == 0
}

// pods returns the directories of pods, except those that may stay.
func (n *diskNode) pods() []string {
	n.t.Helper()
	return slices.DeleteFunc(podsOf(n.t, n.work), func(name string) bool { return n.mayStay(filepath.Join(n.work, name)) })
}

// kill ends the daemon and returns its records.
func (n *diskNode) kill() map[string]volume.Record {
	n.t.Helper()
	n.signal(syscall.SIGKILL)
	var found map[string]volume.Record
	n.records(func(_ *store.Store, records map[string]volume.Record) { found = records })
	return found
}

func (n *diskNode) records(f func(*store.Store, map[string]volume.Record)) {
	n.t.Helper()
	s, err := store.Open(filepath.Join(n.work, recordsFile))
	must(n.t, err)
	byID := map[string]volume.Record{}
	damaged, err := s.Load(time.Now(), func(r volume.Record) { byID[string(r.ID)] = r })
	must(n.t, err)
	if len(damaged) > 0 {
		n.t.Errorf("records that cannot be read: %v", damaged)
	}
	f(s, byID)
	must(n.t, s.Close())
}

// expireAll lets every retained volume expire, and wants nothing left of them.
func (n *diskNode) expireAll(published int) {
	n.t.Helper()
	n.signal(syscall.SIGKILL)
	n.records(func(s *store.Store, records map[string]volume.Record) {
		var changes []volume.Change
		for _, r := range records {
			if r.Phase == volume.Retained {
				r.Lifespan = time.Millisecond
				changes = append(changes, volume.Change{ID: r.ID, Record: &r})
			}
		}
		must(n.t, s.Commit(changes))
	})
	n.start()
	n.eventually("all expired", func() bool { return len(n.pods()) == published })
	n.eventually("the trash empty", func() bool { return len(trashOf(n.t, n.work)) == 0 })
	n.signal(syscall.SIGTERM)
	n.records(func(_ *store.Store, records map[string]volume.Record) {
		if len(records) != published {
			n.t.Errorf("%d records at the end, want %d", len(records), published)
		}
	})
}

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
// once. The trash goes first, then the oldest volumes, and no more of them than needed.
func TestFullDiskMakesRoom(t *testing.T) {
	onFullDisks(t, func(t *testing.T, w workingDisk) {
		const published = 5
		n := newDiskNode(t, w, "--headroom", "0.2")
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

		n.fillUp()
		// Near the floor the daemon measures again after a second, so it may find the full disk before a call does.
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

// goneOf returns how many of the first volumes are gone. They must be the oldest, except one that
// did not go when its turn came: to remove names takes room in the trees of btrfs, and the next volume
// goes then.
func (n *diskNode) goneOf(count int) int {
	n.t.Helper()
	gone, kept := 0, -1
	for i := range count {
		switch {
		case !exists(n.dataOf(i)):
			if gone++; kept >= 0 && i < oldest {
				n.t.Errorf("volume %d is gone, and volume %d, an older one, is not", i, kept)
			}
		case kept < 0 && (n.fstype != "btrfs" || !n.triedToDelete(volumeID(i))):
			kept = i
		}
	}
	return gone
}

// triedToDelete tells whether the daemon has begun to delete a volume.
func (n *diskNode) triedToDelete(id string) bool {
	return n.logged("erasing a volume where it is", id) || n.logged("deleting without a record", id) || n.logged("cannot be deleted", id)
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
