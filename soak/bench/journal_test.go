package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestJournalKeepsEveryRecord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "records")
	j, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprintf("p volume-%d pod", i))
		wg.Go(func() {
			if err := j.append('p', fmt.Sprintf("volume-%d", i), "pod"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// What was answered is in the file before that is closed.
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimRight(string(text), "\n\x00"), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := j.close(); err != nil {
		t.Error(err)
	}
}

// TestJournalTakesNothingOfTheDisk checks what makes the floor one: a record changes neither the
// file's size nor its blocks, however many there were.
func TestJournalTakesNothingOfTheDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "records")
	j, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	var before, after unix.Stat_t
	if err := unix.Stat(path, &before); err != nil {
		t.Fatal(err)
	}
	if before.Size != journalSize || before.Blocks*512 < journalSize {
		t.Errorf("%d bytes and %d blocks at the start, want all of %d", before.Size, before.Blocks, journalSize)
	}
	long := strings.Repeat("x", journalSize/3)
	for range 4 {
		if err := j.append('p', long); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Stat(path, &after); err != nil {
		t.Fatal(err)
	}
	if after.Size != before.Size || after.Blocks != before.Blocks {
		t.Errorf("%d bytes and %d blocks became %d and %d", before.Size, before.Blocks, after.Size, after.Blocks)
	}
	if err := j.append('p', strings.Repeat("x", journalSize)); !errors.Is(err, errTooLong) {
		t.Errorf("a record as long as the file: %v, want %v", err, errTooLong)
	}
	if err := j.close(); err != nil {
		t.Error(err)
	}
}

func TestJournalTellsThatItFailed(t *testing.T) {
	t.Parallel()
	j, err := openJournal(filepath.Join(t.TempDir(), "records"))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.append('u', "volume"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v, want that the file is closed", err)
	}
	close(j.waiting)
}
