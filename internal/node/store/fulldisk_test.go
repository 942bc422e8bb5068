package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// smallest is the size, in MiB, below which a file system is not made, or has no room for the
// reserve.
var smallest = map[string]int{"ext4": 128, "xfs": 300, "btrfs": 256}

// fillDisk writes files into dir until not even one byte fits.
func fillDisk(t *testing.T, dir string) {
	t.Helper()
	for i, size := range []int{1 << 20, 4096, 1} {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("filler-%d", i)))
		if err != nil {
			// Not even the name fits any more.
			return
		}
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("fill the disk: %v", err)
		}
		_ = f.Sync()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Bfree is not 0: it has the blocks that ext4 keeps for itself. XFS keeps some that it says are
	// available.
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Bavail > 64 {
		t.Fatalf("%d blocks are available (%v), want a full disk", fs.Bavail, err)
	}
}

// busyNode is a store with some volumes, and what should be in it.
type busyNode struct {
	s         *Store
	published []volume.ID
	retained  []volume.ID
	next      int
	evicted   int
}

func (n *busyNode) publish() volume.Change {
	r := example(n.next)
	n.next++
	r.Phase, r.Unpublished, r.Lifespan = volume.Published, time.Time{}, 0
	r.Targets = []volume.Target{{Path: "/var/lib/kubelet/pods/" + string(r.Pod) +
		"/volumes/kubernetes.io~csi/scratch/mount"}}
	n.published = append(n.published, r.ID)
	return put(r)
}

// unpublish retains the oldest published volume.
func (n *busyNode) unpublish() volume.Change {
	id := n.published[0]
	n.published = n.published[1:]
	n.retained = append(n.retained, id)
	return put(volume.Record{ID: id, Pod: "8f2c4f6e-0000-4000-8000-000000000000", Namespace: "batch", PodName: "job",
		Phase: volume.Retained, Unpublished: time.Now(), Lifespan: 12 * time.Hour})
}

// evict forgets the oldest retained volume, and leaves a tombstone.
func (n *busyNode) evict() volume.Change {
	id := n.retained[0]
	n.retained = n.retained[1:]
	n.evicted++
	return gone(volume.Record{ID: id, Pod: "8f2c4f6e-0000-4000-8000-000000000000", Namespace: "batch", PodName: "job",
		Phase: volume.Deleting, Unpublished: time.Now(), Lifespan: 12 * time.Hour})
}

func (n *busyNode) fill(t *testing.T, published, retained int) {
	t.Helper()
	for range (published + retained) / 100 {
		var changes []volume.Change
		for range 100 {
			changes = append(changes, n.publish())
		}
		commit(t, n.s, changes...)
	}
	for range retained / 100 {
		var changes []volume.Change
		for range 100 {
			changes = append(changes, n.unpublish())
		}
		commit(t, n.s, changes...)
	}
}

func (n *busyNode) check(t *testing.T) {
	t.Helper()
	records := load(t, n.s, time.Now())
	if len(records) != len(n.published)+len(n.retained) {
		t.Errorf("%d records, want %d published and %d retained", len(records), len(n.published), len(n.retained))
	}
	for _, id := range n.published {
		if records[id].Phase != volume.Published {
			t.Fatalf("%s is %v, want Published", id, records[id].Phase)
		}
	}
	for _, id := range n.retained {
		if records[id].Phase != volume.Retained {
			t.Fatalf("%s is %v, want Retained", id, records[id].Phase)
		}
	}
}

// fillRing evicts as many volumes as the store keeps tombstones, so that the ring grows no more.
func (n *busyNode) fillRing(t *testing.T, tombstones int) {
	t.Helper()
	for n.evicted < tombstones {
		n.fill(t, 0, 1000)
		var changes []volume.Change
		for range 1000 {
			changes = append(changes, n.evict())
		}
		commit(t, n.s, changes...)
	}
}

// TestFullDisk makes room on a disk that has none.
func TestFullDisk(t *testing.T) {
	for _, size := range []struct {
		fstype              string
		published, retained int
		tombstones          int
	}{{"ext4", 100, 900, 1000}, {"ext4", 1000, 5_000, 10_000}, {"ext4", 1000, 10_000, 0}, {"xfs", 100, 900, 1000}, {"btrfs", 100, 900, 1000}} {
		if roottest.LeftOut(size.fstype) {
			continue
		}
		t.Run(fmt.Sprintf("%s %d", size.fstype, size.published+size.retained), func(t *testing.T) {
			dir := roottest.FileSystem(t, size.fstype, smallest[size.fstype])
			path := filepath.Join(dir, "store.db")
			n := &busyNode{s: graveyard(t, path, size.tombstones)}
			n.fillRing(t, size.tombstones)
			n.fill(t, size.published, size.retained)
			if err := n.s.ReserveError(); err != nil {
				t.Fatal(err)
			}
			fillDisk(t, dir)

			step := func(name string, change func() volume.Change, calls, group int) {
				t.Helper()
				started := time.Now()
				for i := range calls {
					var changes []volume.Change
					for range group {
						changes = append(changes, change())
					}
					if err := n.s.Commit(changes); err != nil {
						t.Fatalf("%s: commit %d of %d changes: %v", name, i, group, err)
					}
				}
				t.Logf("%s: %d commits of %d changes in %v", name, calls, group, time.Since(started))
			}
			restart := func() {
				t.Helper()
				if err := n.s.Close(); err != nil {
					t.Fatal(err)
				}
				n.s = graveyard(t, path, size.tombstones)
				n.check(t)
				if got, want := len(buried(t, n.s, all(1000))), min(n.evicted, size.tombstones); got != want {
					t.Errorf("%d tombstones of %d volumes, want %d", got, n.evicted, want)
				}
			}
			step("unpublish", n.unpublish, size.published/4, 1)
			step("evict", n.evict, 300, 1)
			restart()
			step("publish", n.publish, 300, 1)
			step("unpublish in groups", n.unpublish, 3, 100)
			step("evict in groups", n.evict, 8, len(n.retained)/10)
			restart()
			step("publish and evict", func() volume.Change {
				commit(t, n.s, n.publish(), n.unpublish())
				return n.evict()
			}, 200, 1)
			restart()
			if err := n.s.ReserveError(); err != nil {
				t.Errorf("the reserve is gone after little growth: %v", err)
			}
		})
	}
}

// TestFullDiskWithoutReserve shows that TestFullDisk can fail, and that a commit without room harms
// nothing.
func TestFullDiskWithoutReserve(t *testing.T) {
	dir := roottest.FileSystem(t, "ext4", 64)
	path := filepath.Join(dir, "store.db")
	n := &busyNode{s: openStore(t, path)}
	n.s.db.reserve.unsupported = true
	dropReserve(t, n.s)
	n.fill(t, 500, 1000)
	fillDisk(t, dir)

	var err error
	lost := 0
	for err == nil && n.next < 100_000 {
		before := *n
		var changes []volume.Change
		for range 50 {
			changes = append(changes, n.publish())
		}
		if err = n.s.Commit(changes); err != nil {
			*n, lost = before, len(changes)
		}
	}
	if !errors.Is(err, unix.ENOSPC) || !errors.Is(err, volume.ErrNoSpace) {
		t.Fatalf("Commit on a full disk = %v, want ENOSPC and ErrNoSpace", err)
	}
	t.Logf("%d changes refused: %v", lost, err)
	n.check(t)
	for i := range 3 {
		if err := os.RemoveAll(filepath.Join(dir, fmt.Sprintf("filler-%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, n.s, n.publish(), n.unpublish(), n.evict())
	n.check(t)
	if err := n.s.Close(); err != nil {
		t.Fatal(err)
	}
	n.s = openStore(t, path)
	n.check(t)
}

// TestReserveReturns: the reserve is renewed once there is room again.
func TestReserveReturns(t *testing.T) {
	dir := roottest.FileSystem(t, "ext4", 64)
	n := &busyNode{s: openStore(t, filepath.Join(dir, "store.db"))}
	dropReserve(t, n.s)
	fillDisk(t, dir)
	commit(t, n.s, n.publish())
	if err := n.s.ReserveError(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("ReserveError = %v on a full disk, want ENOSPC", err)
	}
	if err := os.Remove(filepath.Join(dir, "filler-0")); err != nil {
		t.Fatal(err)
	}
	commit(t, n.s, n.publish())
	if err := n.s.ReserveError(); err != nil {
		t.Errorf("ReserveError = %v with room again", err)
	}
}

// TestPodFillsDiskMeanwhile writes like a pod until the disk is full, while volumes come and go.
func TestPodFillsDiskMeanwhile(t *testing.T) {
	dir := roottest.FileSystem(t, "ext4", 128)
	n := &busyNode{s: openStore(t, filepath.Join(dir, "store.db"))}
	done := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		f, err := os.Create(filepath.Join(dir, "pod-data"))
		if err != nil {
			done <- err
			return
		}
		defer f.Close()
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
				if _, err := f.Write(make([]byte, 256<<10)); err != nil {
					_, _ = f.Write(make([]byte, 1))
					time.Sleep(time.Millisecond)
				}
			}
		}
	}()
	n.fill(t, 1000, 1000)
	for range 500 {
		commit(t, n.s, n.unpublish())
		commit(t, n.s, n.evict())
	}
	close(stop)
	if err := <-done; err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	n.check(t)
}

// TestCopiedOnWrite: ReserveError reports it, before a full disk shows it.
func TestCopiedOnWrite(t *testing.T) {
	path := filepath.Join(roottest.FileSystem(t, "btrfs", smallest["btrfs"]), "store.db")
	s := openStore(t, path)
	if err := s.ReserveError(); err != nil {
		t.Errorf("ReserveError = %v of a file that was created here", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err == nil {
		err = errors.Join(os.Remove(path), os.WriteFile(path, content, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := openStore(t, path).ReserveError(); !errors.Is(err, errCopies) {
		t.Errorf("ReserveError = %v of a copy without the flag, want %v", err, errCopies)
	}
}
