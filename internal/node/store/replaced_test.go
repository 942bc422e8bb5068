package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// openTimes is how often this process has a file open.
func openTimes(t *testing.T, file os.FileInfo) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if info, err := os.Stat("/proc/self/fd/" + e.Name()); err == nil && os.SameFile(info, file) {
			n++
		}
	}
	return n
}

// TestOpenWaitsForTheFileThatHasTheName: a daemon waits for the lock on a file that a compaction of
// another one replaces meanwhile. Once it has the lock it goes on with what has the name.
func TestOpenWaitsForTheFileThatHasTheName(t *testing.T) {
	shorten(t, time.Minute)
	path := filepath.Join(t.TempDir(), "store.db")
	first := openStore(t, path)
	commit(t, first, put(published("old")))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		s   *Store
		err error
	}
	opened := make(chan result)
	before := openTimes(t, info)
	go func() {
		s, err := Open(path)
		opened <- result{s, err}
	}()
	for openTimes(t, info) == before {
		time.Sleep(time.Millisecond)
	}
	first.mu.Lock()
	first.beginCompaction(1)
	first.mu.Unlock()
	first.background.Wait()
	if first.last == nil || first.last.Err != nil {
		t.Fatalf("compaction %+v", first.last)
	}
	commit(t, first, put(published("new")))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := <-opened
	if second.err != nil {
		t.Fatal(second.err)
	}
	defer second.s.Close()
	if got := names(load(t, second.s, time.Now())); got != "new old" {
		t.Errorf("the second daemon has %q, want new and old", got)
	}
}

// TestCompactionKeepsTheLock: no other process gets the store, by its name or with the file that
// was replaced.
func TestCompactionKeepsTheLock(t *testing.T) {
	shorten(t, 50*time.Millisecond)
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	replaced, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer replaced.Close()
	s.mu.Lock()
	s.beginCompaction(1)
	s.mu.Unlock()
	s.background.Wait()
	if _, err := Open(path); !errors.Is(err, ErrLocked) {
		t.Errorf("Open = %v, want ErrLocked", err)
	}
	// An older version, which does not compare, finds nothing to go on with.
	if info, err := replaced.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("the replaced file has %d bytes, %v; want it empty", info.Size(), err)
	}
}

// TestNameThatIsNotDurable: as long as the disk may have the name for the replaced file, that is
// kept, and no commit succeeds.
func TestNameThatIsNotDurable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	s := openStore(t, path)
	commit(t, s, put(published("a")))
	other := filepath.Join(dir, "replaced.db")
	if err := os.WriteFile(other, wellUsed(t, 10), 0o600); err != nil {
		t.Fatal(err)
	}
	old, err := openDatabase(other, os.O_RDWR, ourDaemon)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	s.db.unsettled.dir, s.db.unsettled.replaced = closed, old
	for range 2 {
		err := s.Commit([]volume.Change{put(published("b"))})
		if err == nil || !strings.Contains(err.Error(), "the name of "+path) {
			t.Errorf("Commit = %v, want that the name is not durable", err)
		}
	}
	if info, err := os.Stat(other); err != nil || info.Size() == 0 {
		t.Errorf("the replaced file is gone: %v, %v", info, err)
	}
	if s.db.unsettled.dir, err = os.Open(dir); err != nil {
		t.Fatal(err)
	}
	commit(t, s, put(published("b")))
	if info, err := os.Stat(other); err != nil || info.Size() != 0 {
		t.Errorf("the replaced file has %v bytes, %v; want it empty", info.Size(), err)
	}
	if got := names(load(t, s, time.Now())); got != "a b" {
		t.Errorf("records %q, want a and b", got)
	}
}

// TestLeftoverOfACompaction: the next start removes what an interrupted compaction left.
func TestLeftoverOfACompaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	commit(t, s, put(published("a")))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+newSuffix, wellUsed(t, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, path)
	if _, err := os.Lstat(path + newSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the leftover is still there: %v", err)
	}
	if got := names(load(t, s, time.Now())); got != "a" {
		t.Errorf("records %q, want a", got)
	}
}

// TestCompactionBehindALink: an administrator has the records elsewhere.
func TestCompactionBehindALink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target.db"), filepath.Join(dir, "store.db")
	if err := openStore(t, target).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	s := afterPeak(t, link, smallPeak, 10)
	if result := compacted(t, s); result.Err != nil {
		t.Fatal(result.Err)
	}
	if to, err := os.Readlink(link); err != nil || to != target {
		t.Errorf("the link leads to %q, %v; want %q", to, err, target)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(load(t, openStore(t, target), time.Now())); got != 10 {
		t.Errorf("%d records, want 10", got)
	}
}

// TestCompactionOnAFullDisk: without room for a copy the store goes on with what it has, and its
// reserve. Once there is room the copy is made, with a reserve of its own.
func TestCompactionOnAFullDisk(t *testing.T) {
	for fstype, megabytes := range smallest {
		if roottest.LeftOut(fstype) {
			continue
		}
		t.Run(fstype, func(t *testing.T) {
			dir := roottest.FileSystem(t, fstype, megabytes)
			path := filepath.Join(dir, "store.db")
			s := afterPeak(t, path, smallPeak, 10)
			fillDisk(t, dir)
			s.notBefore = time.Time{}
			for range 100 {
				commit(t, s, put(example(smallPeak)), forget(example(smallPeak).ID))
				s.background.Wait()
			}
			if s.last != nil || s.notBefore.IsZero() {
				t.Errorf("compaction %+v on a full disk, tried %v; want that it was tried and is no news", s.last, !s.notBefore.IsZero())
			}
			if err := s.ReserveError(); err != nil {
				t.Errorf("ReserveError = %v on the full disk", err)
			}
			if _, err := os.Lstat(path + newSuffix); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("something is left of the copy: %v", err)
			}
			for i := range 3 {
				if err := os.RemoveAll(filepath.Join(dir, fmt.Sprintf("filler-%d", i))); err != nil {
					t.Fatal(err)
				}
			}
			if err := unix.Syncfs(int(s.db.file.Fd())); err != nil {
				t.Fatal(err)
			}
			if result := compacted(t, s); result.Err != nil || result.After >= result.Before {
				t.Errorf("compaction %+v with room again", result)
			}
			if err := s.ReserveError(); err != nil {
				t.Errorf("ReserveError = %v of the copy", err)
			}
			fillDisk(t, dir)
			for range 100 {
				commit(t, s, put(example(smallPeak)), forget(example(smallPeak).ID))
			}
			if got := len(load(t, s, time.Now())); got != 10 {
				t.Errorf("%d records, want 10", got)
			}
		})
	}
}
