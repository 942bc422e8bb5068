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
	got := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
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
