package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
)

// openJournalled opens a store whose journal is ready.
func openJournalled(t testing.TB, path string) *Store {
	t.Helper()
	s := openStore(t, path)
	if err := s.StartJournal(); err != nil {
		t.Fatal(err)
	}
	return s
}

// journalled takes changes over, and fails where one has to wait.
func journalled(t testing.TB, s *Store, changes ...volume.Change) {
	t.Helper()
	for _, c := range changes {
		if _, wait, err := s.Journal(c, time.Hour); wait != nil || err != nil {
			t.Fatalf("volume %s is not taken over: %v, %v", c.ID, err, wait)
		}
	}
}

// kill ends a store as the end of the process does: nothing more is written.
func kill(t testing.TB, s *Store) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.timer.Stop()
	if err := errors.Join(s.journal.close(), s.db.close()); err != nil {
		t.Fatal(err)
	}
}

// wantNames opens the store anew and compares the volumes that it knows.
func wantNames(t testing.TB, path, want string) *Store {
	t.Helper()
	s := openJournalled(t, path)
	if got := names(load(t, s, time.Now())); got != want {
		t.Fatalf("volumes %q, want %q", got, want)
	}
	return s
}

func TestJournalSurvivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openJournalled(t, path)
	commit(t, s, put(published("a")))
	now := time.Now()
	retained := published("a").Retain(now, time.Hour)
	journalled(t, s, put(published("b")), put(retained), put(published("c")), forget("b"))
	if s.Waiting().Before(now) {
		t.Errorf("waits since %v, want after %v", s.Waiting(), now)
	}
	kill(t, s)

	s = wantNames(t, path, "a c")
	if got := s.Found().Entries; got != 4 {
		t.Errorf("%d entries found, want 4", got)
	}
	if got := load(t, s, time.Now())["a"]; got.Phase != volume.Retained || got.Unpublished.Sub(now).Abs() > maxJitter ||
		got.Lifespan != time.Hour {
		t.Errorf("found %+v, want %+v", got, retained)
	}
	if !s.Waiting().IsZero() {
		t.Error("what the start found still waits")
	}
	// A second start finds nothing, and neither does one after a start that has written nothing.
	kill(t, s)
	s = wantNames(t, path, "a c")
	if got := s.Found().Entries; got != 0 {
		t.Errorf("%d entries found again", got)
	}
	journalled(t, s, put(published("d")))
	kill(t, s)
	kill(t, wantNames(t, path, "a c d"))
	wantNames(t, path, "a c d")
}

// TestCommitTakesWhatWaits: a change that waits for the disk never overtakes one of its volume that was answered before.
func TestCommitTakesWhatWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openJournalled(t, path)
	journalled(t, s, put(published("a")), put(published("b")))
	commit(t, s, forget("a"))
	if !s.Waiting().IsZero() {
		t.Error("changes wait that the commit has taken")
	}
	journalled(t, s, put(published("c")))
	kill(t, s)
	s = wantNames(t, path, "b c")
	if got := s.Found().Entries; got != 1 {
		t.Errorf("%d entries found, want 1", got)
	}
}

// TestFailedCommitKeepsWhatWaits, also when the process ends after it.
func TestFailedCommitKeepsWhatWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openJournalled(t, path)
	journalled(t, s, put(published("a")))
	s.db.commit = func(func(*bbolt.Tx) error) error { return unix.EIO }
	if err := s.Commit([]volume.Change{put(published("b"))}); !errors.Is(err, unix.EIO) {
		t.Fatalf("Commit = %v", err)
	}
	journalled(t, s, put(published("c")), forget("a"))
	kill(t, s)
	wantNames(t, path, "c")
}

// TestVolumeInDoubtWaits: after a commit that failed the disk may have a change that was answered with an error. A change
// that may lag behind what was recorded before may not lag behind that.
func TestVolumeInDoubtWaits(t *testing.T) {
	s := openJournalled(t, filepath.Join(t.TempDir(), "store.db"))
	whole := s.db.commit
	s.db.commit = func(func(*bbolt.Tx) error) error { return unix.EIO }
	if err := s.Commit([]volume.Change{put(published("a"))}); !errors.Is(err, unix.EIO) {
		t.Fatalf("Commit = %v", err)
	}
	s.db.commit = whole
	journalled(t, s, put(published("b")))
	if _, wait, _ := s.Journal(put(published("a")), time.Hour); wait == nil {
		t.Error("a change of a volume in doubt is taken over")
	}
	commit(t, s, put(published("b")))
	if _, wait, _ := s.Journal(put(published("a")), time.Hour); wait == nil {
		t.Error("the commit of another volume has ended the doubt")
	}
	commit(t, s, put(published("a")))
	journalled(t, s, put(published("a")))
}

// TestRoomIsMadeBeforeWhatWaits: where there is no room for what was answered before, a deletion goes on, unless the
// journal has an older change of the volume.
func TestRoomIsMadeBeforeWhatWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openJournalled(t, path)
	commit(t, s, put(published("old")), put(published("other")))
	journalled(t, s, put(published("new")), put(published("old").Retain(time.Now(), time.Hour)))
	whole := s.db.commit
	s.db.commit = func(fn func(*bbolt.Tx) error) error {
		return whole(func(tx *bbolt.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			if tx.Bucket(volumesBucket).Get([]byte("new")) != nil {
				return unix.ENOSPC
			}
			return nil
		})
	}
	for id, want := range map[volume.ID]bool{"new": true, "old": true, "other": false, "unknown": false} {
		if got := s.Journalled(id); got != want {
			t.Errorf("a change of %s waits: %t, want %t", id, got, want)
		}
	}
	if err := s.Commit([]volume.Change{forget("old"), forget("other")}); !volume.IsNoSpace(err) {
		t.Errorf("a volume is forgotten of which an older change waits: %v", err)
	}
	commit(t, s, forget("other"))
	if err := s.Commit(nil); !volume.IsNoSpace(err) {
		t.Errorf("a commit of what waits = %v", err)
	}
	kill(t, s)
	wantNames(t, path, "new old")
}

// TestOpenWithoutRoom: a start that finds no room for the journal's entries, or for new records, says where to free some. What
// was answered is there afterwards.
func TestOpenWithoutRoom(t *testing.T) {
	for _, change := range []string{"Update", "CreateIn"} {
		t.Run(change, func(t *testing.T) {
			dir := t.TempDir()
			path, want := filepath.Join(dir, "store.db"), ""
			if change == "Update" {
				s := openJournalled(t, path)
				journalled(t, s, put(published("a")))
				kill(t, s)
				want = "a"
			}
			full := true
			kernel.Inject(t, func(call, _ string) error {
				if full && call == change {
					return unix.ENOSPC
				}
				return nil
			})
			_, err := Open(path)
			if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "free some space on the file system of "+dir) {
				t.Errorf("Open without room = %v, want what to do", err)
			}
			full = false
			wantNames(t, path, want)
		})
	}
}

// TestJournalTurns: entries far beyond both files, with commits between, and what no commit has taken.
func TestJournalTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openJournalled(t, path)
	r := published("x")
	for i := range 50_000 {
		r.PodName = example(i).PodName
		journalled(t, s, put(r))
		if i%3000 == 2999 {
			commit(t, s)
		}
	}
	kill(t, s)
	s = wantNames(t, path, "x")
	if got := load(t, s, time.Now())["x"].PodName; got != r.PodName {
		t.Errorf("pod %q, want %q", got, r.PodName)
	}
}

// TestFullJournal: when both files are full, changes wait until a commit has succeeded; what is in them is not lost.
func TestFullJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openJournalled(t, path)
	r := published("x")
	var wait error
	n := 0
	for ; wait == nil; n++ {
		r.PodName = example(n).PodName
		var err error
		if _, wait, err = s.Journal(put(r), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if n < 2*journalSize/1000 {
		t.Errorf("full after %d entries", n)
	}
	want := example(n - 2).PodName
	kill(t, s)
	s = wantNames(t, path, "x")
	if got := load(t, s, time.Now())["x"].PodName; got != want {
		t.Errorf("pod %q, want %q", got, want)
	}
	journalled(t, s, put(published("y")))
}

// TestJournalIsPatient: while the disk takes no commit, changes are taken over for that long.
func TestJournalIsPatient(t *testing.T) {
	s := openJournalled(t, filepath.Join(t.TempDir(), "store.db"))
	first := func(c volume.Change) bool {
		first, wait, err := s.Journal(c, time.Hour)
		if wait != nil || err != nil {
			t.Fatalf("not taken over: %v, %v", wait, err)
		}
		return first
	}
	if !first(put(published("a"))) || first(put(published("b"))) {
		t.Error("not the first one alone asks for a commit")
	}
	if _, wait, _ := s.Journal(put(published("c")), 0); wait == nil {
		t.Error("taken over though the oldest one waits longer than it may")
	}
	commit(t, s)
	if !first(put(published("d"))) {
		t.Error("the first one after a commit asks for none")
	}
}

// TestEntryThatCannotBeWritten: its change has to wait, and none is taken over before a commit. Whether the bytes of the
// entry are in the file, whole or in part, it does not come back, and hides none that follows.
func TestEntryThatCannotBeWritten(t *testing.T) {
	for name, written := range map[string]float64{"nothing": 0, "a part": 0.5, "all": 1} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			s := openJournalled(t, path)
			commit(t, s, put(published("a")))
			journalled(t, s, put(published("b")))
			j := s.journal
			lost := entry{number: j.newest + 1, id: "lost"}
			lost.value, _ = encodeRecord(put(published("lost")), s.clock.writing())
			content := lost.encode(j.journalState)
			kernel.Inject(t, func(call, path string) error {
				if call != "Pwrite" {
					return nil
				}
				f := j.files[j.current]
				if _, err := f.file.WriteAt(content[:int(written*float64(len(content)))], f.end); err != nil {
					t.Error(err)
				}
				return unix.EIO
			})
			if _, wait, err := s.Journal(put(published("lost")), time.Hour); !errors.Is(wait, unix.EIO) || err != nil {
				t.Fatalf("waits because of %v, %v", wait, err)
			}
			kernel.Inject(t, func(string, string) error { return nil })
			if _, wait, _ := s.Journal(put(published("c")), time.Hour); wait == nil {
				t.Fatal("the journal goes on behind an entry that may be torn")
			}
			commit(t, s) // the change itself is withdrawn
			journalled(t, s, put(published("d")))
			kill(t, s)
			wantNames(t, path, "a b d")
		})
	}
}

// TestFormatOneIsRewritten, and an earlier version refuses the database from then on.
func TestFormatOneIsRewritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	err := s.db.update(func(tx *bbolt.Tx) error {
		return errors.Join(tx.Bucket(metaBucket).Put(formatKey, []byte("1")), tx.Bucket(metaBucket).Delete(journalKey),
			tx.Bucket(volumesBucket).Put([]byte("a"), must(encodeValue(published("a"), s.clock.writing()))))
	})
	if err != nil {
		t.Fatal(err)
	}
	kill(t, s)
	s = wantNames(t, path, "a")
	err = s.db.view(func(tx *bbolt.Tx) error {
		if got := tx.Bucket(metaBucket).Get(formatKey); string(got) != "2" {
			t.Errorf("format %q", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCloseLeavesNothingInTheJournal: so a daemon that was stopped in order needs it no more.
func TestCloseLeavesNothingInTheJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openJournalled(t, path)
	journalled(t, s, put(published("a")))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range journalSuffixes {
		if err := os.Remove(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	wantNames(t, path, "a")
}

// TestNoRoomForAJournal: changes wait, nothing is left of the files, and they are made once there is room.
func TestNoRoomForAJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	full := true
	kernel.Inject(t, func(call, at string) error {
		if full && call == "WriteAt" && filepath.Ext(at) == ".journal-1" {
			return unix.ENOSPC
		}
		return nil
	})
	if err := s.StartJournal(); !volume.IsNoSpace(err) {
		t.Fatalf("StartJournal = %v", err)
	}
	if _, wait, _ := s.Journal(put(published("a")), time.Hour); !volume.IsNoSpace(wait) {
		t.Error("taken over without a file")
	}
	if info, err := os.Stat(path + journalSuffixes[1]); err == nil && info.Size() > 0 {
		t.Errorf("%d bytes are left where there is no room", info.Size())
	}
	full = false
	commit(t, s)
	if _, wait, _ := s.Journal(put(published("a")), time.Hour); wait == nil {
		t.Error("tried again at once")
	}
	s.journal.lookedAt = s.journal.lookedAt.Add(-journalPause)
	commit(t, s)
	journalled(t, s, put(published("a")))
}

// TestCompactionBesideAJournal: the copy that takes the database's place knows what the journal still has.
func TestCompactionBesideAJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openJournalled(t, path)
	fill(t, s, 2000)
	journalled(t, s, put(published("a")), forget(example(0).ID))
	s.mu.Lock()
	s.beginCompaction(1)
	s.mu.Unlock()
	journalled(t, s, put(published("b")))
	s.background.Wait()
	if s.last == nil || s.last.Err != nil {
		t.Fatalf("compaction: %+v", s.last)
	}
	journalled(t, s, put(published("c")))
	kill(t, s)
	records := load(t, openJournalled(t, path), time.Now())
	for _, id := range []volume.ID{"a", "b", "c"} {
		if _, ok := records[id]; !ok {
			t.Errorf("volume %s is lost", id)
		}
	}
	if _, ok := records[example(0).ID]; ok {
		t.Error("a volume that was forgotten is back")
	}
}

func FuzzJournal(f *testing.F) {
	state := newState()
	one := entry{number: 1, id: "csi-1", value: []byte("value")}
	two := entry{number: 2, id: "csi-2"}
	f.Add(append(one.encode(state), two.encode(state)...))
	f.Add(two.encode(state)[:20])
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, e := range state.after([][]entry{state.run(content), state.run(content)}) {
			got, length, ok := state.decode(e.encode(state))
			if !ok || length != len(e.encode(state)) || got.id != e.id || !bytes.Equal(got.value, e.value) ||
				(got.value == nil) != (e.value == nil) {
				t.Errorf("%+v is read as %+v (%t)", e, got, ok)
			}
		}
	})
}
