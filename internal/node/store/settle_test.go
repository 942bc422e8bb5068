package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/store/boltfile"
)

// failingLastSync makes the next commit fail as it does when the disk refuses the sync of the meta
// page: the page cache has the commit, the disk has not.
func failingLastSync(t testing.TB, db *database) {
	t.Helper()
	whole := db.commit
	db.commit = func(fn func(*bbolt.Tx) error) error {
		db.commit = whole
		if err := whole(fn); err != nil {
			t.Errorf("commit: %v", err)
		}
		return unix.EIO
	}
}

// onSync calls sync before the meta page is synced once more, which fails if sync does.
func onSync(t testing.TB, sync func() error) {
	kernel.Inject(t, func(call, _ string) error {
		if call != "Fdatasync" {
			return nil
		}
		return sync()
	})
}

// newestMeta returns the newest meta page of a file and its offset.
func newestMeta(t testing.TB, path string) (page []byte, at int64) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := boltfile.Newest(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return data[m.At : m.At+int64(m.PageSize)], m.At
}

// TestCommitThatMayNotBeOnDisk: the disk refuses the last sync of a commit, and then every sync.
// Until one succeeds the machine may lose power with the meta page before that commit on its disk,
// so no page that this one refers to may be overwritten.
func TestCommitThatMayNotBeOnDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	fill(t, s, 500)
	commit(t, s, put(published("before")))
	metas := make([]byte, 2*os.Getpagesize()) // as they are on disk from now on
	if _, err := s.db.file.ReadAt(metas, 0); err != nil {
		t.Fatal(err)
	}

	broken := true
	onSync(t, func() error {
		if broken {
			return unix.EIO
		}
		return nil
	})
	failingLastSync(t, s.db)
	if err := s.Commit([]volume.Change{put(published("lost"))}); !errors.Is(err, unix.EIO) {
		t.Errorf("Commit = %v, want EIO", err)
	}
	for i := range 5 {
		if err := s.Commit([]volume.Change{put(example(i)), put(published("refused"))}); !errors.Is(err, unix.EIO) {
			t.Errorf("Commit = %v while the last one may not be on disk, want EIO", err)
		}
	}

	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(data, metas)
	lost := load(t, openStore(t, writeFile(t, data)), time.Now())
	if len(lost) != 501 || lost["before"].ID == "" {
		t.Errorf("after a power cut there are %d records, want 501", len(lost))
	}

	broken = false
	commit(t, s, put(published("after")))
	got := load(t, s, time.Now())
	if len(got) != 503 || got["lost"].ID == "" || got["after"].ID == "" {
		t.Errorf("%d records once the disk syncs again, want 503 with both commits", len(got))
	}
}

// TestCommitIsRepairedAtOnce: the last sync of a commit fails once. It is made good before the
// commit returns, so that it has succeeded.
func TestCommitIsRepairedAtOnce(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"))
	syncs := 0
	onSync(t, func() error { syncs++; return nil })
	failingLastSync(t, s.db)
	commit(t, s, put(published("a")))
	if syncs != 1 {
		t.Errorf("%d syncs, want one for the meta page", syncs)
	}
	if got := names(load(t, s, time.Now())); got != "a" {
		t.Errorf("loaded %q, want a", got)
	}
}

// TestCommitThatFailsEarlierIsNotInDoubt: what fails before the meta page is written has changed
// nothing.
func TestCommitThatFailsEarlierIsNotInDoubt(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"))
	onSync(t, func() error { t.Error("a sync though nothing is in doubt"); return nil })
	whole := s.db.commit
	s.db.commit = func(fn func(*bbolt.Tx) error) error {
		s.db.commit = whole
		return whole(func(tx *bbolt.Tx) error { return errors.Join(fn(tx), unix.EIO) })
	}
	if err := s.Commit([]volume.Change{put(published("a"))}); !errors.Is(err, unix.EIO) {
		t.Errorf("Commit = %v, want EIO", err)
	}
	commit(t, s, put(published("b")))
	if got := names(load(t, s, time.Now())); got != "b" {
		t.Errorf("loaded %q, want b", got)
	}
}

// TestOpenSettlesWhatTheLastRunLeft: a process that is killed between the write of a meta page and
// its sync leaves a commit that only the page cache has.
func TestOpenSettlesWhatTheLastRunLeft(t *testing.T) {
	path := writeFile(t, wellUsed(t, 500))
	page, at := newestMeta(t, path)
	db, err := openDatabase(path, os.O_RDWR, ourDaemon)
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	var order []string
	kernel.Inject(t, func(call, _ string) error {
		switch call {
		case "Fdatasync":
			order = append(order, "sync")
		case "Update":
			order = append(order, "commit")
		}
		return nil
	})
	for range 2 {
		if err := db.update(func(*bbolt.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(order) != 3 || order[0] != "sync" || order[1] != "commit" || order[2] != "commit" {
		t.Errorf("%v, want one sync before the first commit", order)
	}
	data := make([]byte, len(page))
	if _, err := db.file.ReadAt(data, at); err != nil {
		t.Fatal(err)
	}
	if m, err := boltfile.Newest(bytes.NewReader(data), int64(len(data))); err != nil || m.Transaction == 0 {
		t.Errorf("the meta page is not valid afterwards: %+v, %v", m, err)
	}
}
