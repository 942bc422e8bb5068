package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/model/volume"
)

// wellUsed returns the bytes of a store with a tree of several levels, a free list with something
// in it, and a bucket that is inline.
func wellUsed(t testing.TB, n int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "well-used.db")
	s := graveyard(t, path, 100)
	fill(t, s, n)
	for i := range n / 3 {
		commit(t, s, gone(example(3*i)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// use opens a file that may be damaged and works with it as a daemon does. It fails for a panic, a
// crash, a hang, an error that is not ErrDamaged, and a record that could do harm.
func use(t testing.TB, path string) (opened bool) {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
			t.Errorf("Open = %v, want ErrDamaged", err)
		}
		return false
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}()
	s.KeepTombstones(3)
	now := time.Now()
	records, damaged, err := loadAll(s, now)
	if err != nil {
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("Load = %v, want ErrDamaged", err)
		}
		return true
	}
	var changes []volume.Change
	for i, r := range records {
		checkUsable(t, r, now)
		if i%5 == 0 {
			changes = append(changes, put(example(1_000_000+i)), gone(r))
		}
	}
	for _, d := range damaged {
		changes = append(changes, forget(d.ID))
	}
	if err := s.Commit(changes); err != nil && !errors.Is(err, ErrDamaged) {
		t.Errorf("Commit = %v, want ErrDamaged", err)
	}
	for pages, selection := 0, all(2); ; pages++ {
		page, err := s.Gone(selection)
		if err != nil && !errors.Is(err, ErrDamaged) || pages > 3 {
			t.Errorf("page %d: Gone = %v, want ErrDamaged", pages, err)
		}
		if selection.Below = page.Next; page.Next == 0 || err != nil {
			return true
		}
	}
}

func TestEmptyFileIsDamaged(t *testing.T) {
	path := writeFile(t, nil)
	for range 2 {
		_, err := Open(path)
		want := path + " is damaged (it is empty); move it aside and start again: data directories without" +
			" a record are then adopted as retained for a full lifespan, nothing is deleted"
		if !errors.Is(err, ErrDamaged) || err.Error() != want {
			t.Errorf("Open = %v\n  want %s", err, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("the file was changed: %v, %v", info, err)
	}
}

func TestNotAStore(t *testing.T) {
	foreign := filepath.Join(t.TempDir(), "foreign.db")
	db, err := bbolt.Open(foreign, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "store.db")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := writeFile(t, bytes.Repeat([]byte("text "), 10_000))
	for _, path := range []string{foreign, text} {
		if _, err := Open(path); !errors.Is(err, ErrDamaged) {
			t.Errorf("Open(%s) = %v, want ErrDamaged", path, err)
		}
	}
	if _, err := Open(dir); err == nil {
		t.Error("Open of a directory succeeded")
	}
}

func TestTruncatedFile(t *testing.T) {
	data := wellUsed(t, 2000)
	for _, size := range []int{1, 100, 4095, 4096, 8192, 12288, len(data) / 4, len(data) / 2, len(data) - 1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			use(t, writeFile(t, data[:size]))
		})
	}
	if use(t, writeFile(t, data[:len(data)/4])) {
		t.Error("a quarter of the file was accepted")
	}
}

// TestFlippedBytes damages a file in many ways: at random, and in the numbers that hold its
// structure together.
func TestFlippedBytes(t *testing.T) {
	data := wellUsed(t, 500)
	const pageSize = 4096
	variants := 600
	if testing.Short() {
		variants = 60
	}
	rng := rand.New(rand.NewPCG(3, 4))
	path := writeFile(t, data)
	opened := 0
	for range variants {
		bad := bytes.Clone(data)
		for range 1 + rng.IntN(8) {
			at := rng.IntN(len(bad)/pageSize) * pageSize
			switch rng.IntN(3) {
			case 0: // anywhere in the page
				bad[at+rng.IntN(pageSize)] ^= byte(1 << rng.IntN(8))
			case 1: // header and the first elements
				bad[at+rng.IntN(64)] = byte(rng.Uint32())
			case 2: // a whole page from elsewhere
				from := rng.IntN(len(bad)/pageSize) * pageSize
				copy(bad[at:at+pageSize], bad[from:from+pageSize])
			}
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if use(t, path) {
			opened++
		}
	}
	t.Logf("%d of %d damaged files could be opened", opened, variants)
}

// TestFlippedValueNeverChangesARecord flips each bit of a stored value.
func TestFlippedValueNeverChangesARecord(t *testing.T) {
	r := example(1)
	value, err := encodeValue(r, moment{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(value) * 8 {
		bad := bytes.Clone(value)
		bad[i/8] ^= 1 << (i % 8)
		if got, err := decodeValue([]byte(r.ID), bad, moment{now: time.Now()}); err == nil {
			t.Errorf("bit %d: read as %+v", i, got)
		}
	}
}

func TestOtherPageSizes(t *testing.T) {
	for _, size := range []int{1024, 16 << 10, 64 << 10} {
		path := filepath.Join(t.TempDir(), "store.db")
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: size})
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket(volumesBucket)
			return err
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		for _, damageFirstMeta := range []bool{false, true} {
			if damageFirstMeta {
				f, err := os.OpenFile(path, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.WriteAt([]byte("damage"), 20); err != nil {
					t.Fatal(err)
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			}
			d, err := openDatabase(path, os.O_RDONLY, ourDaemon)
			if err != nil {
				t.Errorf("page size %d, first meta page damaged %v: %v", size, damageFirstMeta, err)
				continue
			}
			if err := d.close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFileTruncatedWhileOpen makes bbolt touch memory behind the end of the file, which the kernel
// answers with SIGBUS.
func TestFileTruncatedWhileOpen(t *testing.T) {
	path := writeFile(t, wellUsed(t, 2000))
	s := openStore(t, path)
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	if _, _, err := loadAll(s, time.Now()); !errors.Is(err, ErrDamaged) {
		t.Errorf("Load = %v, want ErrDamaged", err)
	}
	for range 2 {
		err := s.Commit([]volume.Change{put(published("a"))})
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "move it aside") {
			t.Errorf("Commit = %v, want ErrDamaged", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	// The lock is free although bbolt could not be asked to give it back.
	shorten(t, 50*time.Millisecond)
	if _, err := Open(path); !errors.Is(err, ErrDamaged) {
		t.Errorf("Open = %v, want ErrDamaged", err)
	}
}

func TestCommitOnFileTruncatedWhileOpen(t *testing.T) {
	path := writeFile(t, wellUsed(t, 2000))
	s := openStore(t, path)
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit([]volume.Change{put(published("a"))}); !errors.Is(err, ErrDamaged) {
		t.Errorf("Commit = %v, want ErrDamaged", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}

func TestBitFlippedPhaseIsNotARecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	commit(t, s, put(published("victim")))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Field 4 is the phase: published becomes deleting.
	from, to := []byte{4, byte(volume.Published)}, []byte{4, byte(volume.Deleting)}
	if !bytes.Contains(data, from) {
		t.Fatal("the phase is not where it should be")
	}
	s = openStore(t, writeFile(t, bytes.ReplaceAll(data, from, to)))
	records, damaged, err := loadAll(s, time.Now())
	if err != nil || len(records) != 0 || len(damaged) != 1 || damaged[0].ID != "victim" {
		t.Errorf("Load = %v, %v, %v; want the victim damaged", records, damaged, err)
	}
}

// TestPanicOfACallerIsNotDamage: the file is good, and no error advises to move it aside.
func TestPanicOfACallerIsNotDamage(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"))
	fill(t, s, 10)
	const fault = "no memory"
	func() {
		defer func() {
			if reason := recover(); reason != fault {
				t.Errorf("panic %v, want %v", reason, fault)
			}
		}()
		_, err := s.Load(time.Now(), func(volume.Record) { panic(fault) })
		t.Errorf("Load returned %v", err)
	}()
	if n := len(load(t, s, time.Now())); n != 10 {
		t.Errorf("%d records afterwards, want 10", n)
	}
}
