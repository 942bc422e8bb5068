package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestDamagedJournal: a start takes over what comes before the damage, and ends for none.
func TestDamagedJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openJournalled(t, path)
	commit(t, s, put(published("a")))
	journalled(t, s, put(published("b")), put(published("c")), put(published("d")))
	f := s.journal.files[s.journal.current]
	name, end := f.file.Name(), f.end
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(path), name)
	}
	kill(t, s)
	database, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(journalHeader); at < end; at += 7 {
		content := bytes.Clone(whole)
		content[at] ^= 1 << (at % 8)
		if err := errors.Join(os.WriteFile(path, database, 0o600), os.WriteFile(name, content, 0o600)); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, path)
		got := names(load(t, s, time.Now()))
		// Nothing tells the last entry from one that was being written when the process ended.
		if lost, ok := map[string]int{"a": 3, "a b": 2, "a b c": 0}[got]; !ok || s.Found().Lost != lost {
			t.Fatalf("damage at %d: volumes %q, and %d changes are told to be lost, want %d", at, got, s.Found().Lost, lost)
		}
		kill(t, s)
	}
}

// TestDamagedHeader: the entries of a file whose header is damaged are taken over all the same.
func TestDamagedHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openJournalled(t, path)
	commit(t, s, put(published("a")))
	journalled(t, s, put(published("b")), put(published("c")))
	kill(t, s)
	for _, suffix := range journalSuffixes {
		content, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		copy(content, "garbage garbage garbage garbage")
		if err := os.WriteFile(path+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = wantNames(t, path, "a b c")
	if got := s.Found(); got.Lost != 0 || got.Entries != 2 {
		t.Errorf("found %+v", got)
	}
	journalled(t, s, put(published("d")))
	kill(t, s)
	wantNames(t, path, "a b c d")
}

// TestGapAfterAPowerCut: what a power cut has taken is not told to be damage.
func TestGapAfterAPowerCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openJournalled(t, path)
	commit(t, s, put(published("a")))
	journalled(t, s, put(published("b")), put(published("c")))
	f := s.journal.files[s.journal.current]
	if _, err := f.file.WriteAt(make([]byte, entryHeader), journalHeader); err != nil {
		t.Fatal(err)
	}
	kill(t, s)
	clock := kernelClock()
	clock.boot++
	clock.boottime = func() (int64, error) { return int64(time.Second), nil }
	s, err := open(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Found(); got.Lost != 0 || got.Entries != 0 {
		t.Errorf("found %+v after a reboot", got)
	}
}

// TestJournalsThatAreSetAside all stay, however often records are moved.
func TestJournalsThatAreSetAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	kill(t, openJournalled(t, path))
	var journals [2][]byte
	for i, suffix := range journalSuffixes {
		var err error
		if journals[i], err = os.ReadFile(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]bool{}
	for range 3 {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		for i, suffix := range journalSuffixes {
			if err := os.WriteFile(path+suffix, journals[i], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := wantNames(t, path, "")
		for _, file := range s.Found().Aside {
			files[file] = true
		}
		kill(t, s)
	}
	for file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
	if len(files) != 6 {
		t.Errorf("%d files are set aside, want 6: %v", len(files), files)
	}
}

// TestJournalOfAnotherDatabase: where the database was moved aside or replaced, its journal stays as it is, under
// another name.
func TestJournalOfAnotherDatabase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	s := openJournalled(t, path)
	journalled(t, s, put(published("a")))
	kill(t, s)
	if err := os.Rename(path, path+".aside"); err != nil {
		t.Fatal(err)
	}
	s = wantNames(t, path, "")
	aside := s.Found().Aside
	if len(aside) != 2 {
		t.Fatalf("set aside: %q", aside)
	}
	journalled(t, s, put(published("b")))
	kill(t, s)
	kill(t, wantNames(t, path, "b"))

	// The first one is restored with its journal.
	for i, suffix := range journalSuffixes {
		if err := os.Rename(aside[i], path+suffix); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(path+".aside", path); err != nil {
		t.Fatal(err)
	}
	wantNames(t, path, "a")
}

// TestRestoredDatabase: an older copy of the database takes nothing from a journal that has gone on since.
func TestRestoredDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openJournalled(t, path)
	commit(t, s, put(published("a")))
	kill(t, s)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s = wantNames(t, path, "a")
	journalled(t, s, put(published("b")))
	kill(t, s)
	s = wantNames(t, path, "a b")
	journalled(t, s, put(published("c")))
	kill(t, s)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	wantNames(t, path, "a")
}

// TestEntriesThatAPowerCutTook: the entries behind a gap do not count, then and later.
func TestEntriesThatAPowerCutTook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openJournalled(t, path)
	commit(t, s, put(published("a"))) // the entries are in the second file from now on
	journalled(t, s, put(published("b")))
	s.journal.turn() // and the next ones in the first one
	journalled(t, s, put(published("c")), put(published("d")))
	kill(t, s)
	// The file with the entry of b did not reach the disk.
	for _, suffix := range journalSuffixes {
		content, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if e, _, ok := s.journal.decode(content[journalHeader:]); ok && e.id == "b" {
			clear(content[journalHeader:])
			if err := os.WriteFile(path+suffix, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	s = wantNames(t, path, "a")
	journalled(t, s, put(published("e"))) // it has the number that b had
	kill(t, s)
	wantNames(t, path, "a e")
}
