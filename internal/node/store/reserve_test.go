package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
)

func TestReserve(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"))
	if err := s.ReserveError(); err != nil {
		t.Fatalf("set TMPDIR to a directory on a file system with fallocate(2): %v", err)
	}
	for i := range 20 {
		var changes []volume.Change
		for j := range 1000 {
			changes = append(changes, put(published(fmt.Sprintf("csi-%064d", i*1000+j))))
		}
		commit(t, s, changes...)
		var st unix.Stat_t
		if err := unix.Fstat(int(s.db.file.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		if blocks := st.Blocks * 512; blocks < st.Size+reserveAhead {
			t.Fatalf("file of %d bytes has blocks for %d, want %d more than its size", st.Size, blocks, reserveAhead)
		}
	}
}

func TestReserveErrors(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"))
	var failure error
	calls := 0
	kernel.Inject(t, func(call, _ string) error {
		if call != "Fallocate" {
			return nil
		}
		calls++
		return failure
	})
	fail := func(err error) {
		dropReserve(t, s)
		failure = err
	}

	fail(unix.ENOSPC)
	commit(t, s, put(published("a")))
	if err := s.ReserveError(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("ReserveError = %v, want ENOSPC", err)
	}
	fail(nil)
	commit(t, s, put(published("b")))
	if err := s.ReserveError(); err != nil {
		t.Errorf("ReserveError = %v once there is room again", err)
	}

	fail(unix.EOPNOTSUPP)
	calls = 0
	commit(t, s, put(published("c")))
	commit(t, s, put(published("d")))
	if err := s.ReserveError(); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("ReserveError = %v, want EOPNOTSUPP", err)
	}
	if calls != 1 {
		t.Errorf("fallocate was called %d times on a file system without it, want 1", calls)
	}
}

// dropReserve gives the reserved blocks back, as if there had been no room.
func dropReserve(t testing.TB, s *Store) {
	t.Helper()
	var st unix.Stat_t
	err := unix.Fstat(int(s.db.file.Fd()), &st)
	if err == nil {
		err = unix.Ftruncate(int(s.db.file.Fd()), st.Size)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.db.reserve.until = 0
}
