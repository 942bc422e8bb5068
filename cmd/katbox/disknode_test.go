package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/store"
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

// refuses reports whether a publish was refused because the disk is full. btrfs may have no
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

// mayStay reports whether a pod's directory may outlive its last volume: the removal of a name takes
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

// triedToDelete reports whether the daemon has begun to delete a volume.
func (n *diskNode) triedToDelete(id string) bool {
	return n.logged("erasing a volume where it is", id) || n.logged("deleting without a record", id) || n.logged("cannot be deleted", id)
}
