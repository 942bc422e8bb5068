package store

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestJournalOnAFullDisk: with not a byte free, changes go on being answered before they are on the disk, across
// the end of the process. The journal takes no block that it did not have.
func TestJournalOnAFullDisk(t *testing.T) {
	for _, fstype := range []string{"ext4", "xfs", "btrfs"} {
		if roottest.LeftOut(fstype) {
			continue
		}
		t.Run(fstype, func(t *testing.T) {
			dir := roottest.FileSystem(t, fstype, smallest[fstype])
			path := filepath.Join(dir, "store.db")
			n := &busyNode{s: openJournalled(t, path)}
			n.fill(t, 100, 900)
			fillDisk(t, dir)
			blocks := func() (all int64) {
				for _, suffix := range journalSuffixes {
					var st unix.Stat_t
					if err := unix.Stat(path+suffix, &st); err != nil {
						t.Fatal(err)
					}
					all += st.Blocks
				}
				return all
			}
			before := blocks()
			for range 3 {
				for i := range 3000 {
					journalled(t, n.s, n.publish(), n.unpublish())
					if i%500 == 0 {
						commit(t, n.s, n.evict(), n.evict())
					}
				}
				kill(t, n.s)
				n.s = openJournalled(t, path)
				n.check(t)
				for range 10 {
					for range 294 {
						commit(t, n.s, n.evict())
					}
				}
			}
			if after := blocks(); after != before {
				t.Errorf("the journal has %d blocks, had %d", after, before)
			}
		})
	}
}

// TestJournalOnADiskThatTurnsReadOnly: on a file system that has become read-only nothing is taken over, so that no
// call succeeds of which the kernel has nothing.
func TestJournalOnADiskThatTurnsReadOnly(t *testing.T) {
	dir := roottest.FileSystem(t, "ext4", smallest["ext4"])
	s := openJournalled(t, filepath.Join(dir, "store.db"))
	journalled(t, s, put(published("a")))
	// As the kernel does after an error of the disk; a remount is refused while a file is open for writing.
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "abort"); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		_, wait, err := s.Journal(put(published("b")), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if wait != nil {
			break
		}
		if i == 1000 {
			t.Fatal("changes are taken over that no disk will have")
		}
	}
}

// TestJournalOnADiskThatHangs: what asks how far the disk is behind gets an answer while a write to the journal hangs; a
// scrape of the metrics asks, and /readyz does.
func TestJournalOnADiskThatHangs(t *testing.T) {
	for _, before := range []string{"nothing waits", "a change waits"} {
		t.Run(before, func(t *testing.T) {
			dir := roottest.FileSystem(t, "ext4", smallest["ext4"])
			s := openJournalled(t, filepath.Join(dir, "store.db"))
			began := time.Now()
			if before == "a change waits" {
				journalled(t, s, put(published("a")))
			}
			waited := s.Waiting()
			thaw := freeze(t, dir)
			written := make(chan error, 1)
			go func() {
				_, wait, err := s.Journal(put(published("b")), time.Hour)
				written <- errors.Join(wait, err)
			}()
			for s.journal.mu.TryLock() { // until the write has it
				s.journal.mu.Unlock()
				runtime.Gosched()
			}
			answer := make(chan time.Time, 1)
			go func() { answer <- s.Waiting() }()
			select {
			case since := <-answer:
				if since.Before(began) || !waited.IsZero() && !since.Equal(waited) {
					t.Errorf("waits since %v, want %v or after %v", since, waited, began)
				}
				if writing := s.Writing(); writing.Before(began) {
					t.Errorf("writes since %v, want after %v", writing, began)
				}
			case <-time.After(time.Minute):
				t.Error("no answer while the disk hangs")
			}
			thaw()
			if err := <-written; err != nil {
				t.Error(err)
			}
			if !s.Writing().IsZero() {
				t.Error("it still writes after the disk hung")
			}
			commit(t, s)
			if !s.Waiting().IsZero() {
				t.Error("changes wait that the commit has taken")
			}
		})
	}
}

// freeze lets all writes to a file system hang until thaw, which the end of the test calls too.
func freeze(t *testing.T, dir string) (thaw func()) {
	const fifreeze, fithaw = 0xc0045877, 0xc0045878 // <linux/fs.h>
	f, err := os.Open(dir)
	if err == nil {
		err = unix.IoctlSetInt(int(f.Fd()), fifreeze, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	thaw = sync.OnceFunc(func() {
		if err := errors.Join(unix.IoctlSetInt(int(f.Fd()), fithaw, 0), f.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(thaw)
	return thaw
}
