package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// descriptors is how many files this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestNoDescriptorStaysOpen: a store that is closed has nothing open any more, nor has one that could
// not be opened.
func TestNoDescriptorStaysOpen(t *testing.T) {
	good := wellUsed(t, 50)
	damaged := append([]byte(nil), good...)
	for i := range damaged {
		damaged[i] ^= 0x55
	}
	openAndClose := func(path string) error {
		s, err := Open(path)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	for _, test := range []struct {
		name string
		call func(dir string) error
		ok   bool
	}{
		{"a new store", func(dir string) error { return openAndClose(filepath.Join(dir, "new.db")) }, true},
		{"a store", func(string) error { return openAndClose(writeFile(t, good)) }, true},
		{"a damaged store", func(string) error { return openAndClose(writeFile(t, damaged)) }, false},
		{"an empty file", func(string) error { return openAndClose(writeFile(t, nil)) }, false},
		{"a directory", openAndClose, false},
		{"no directory", func(dir string) error { return openAndClose(filepath.Join(dir, "none", "new.db")) }, false},
		{"a locked store", func(dir string) error {
			path := filepath.Join(dir, "new.db")
			s, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			err = openAndClose(path)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			return err
		}, false},
		{"a damaged database of the archived driver", func(dir string) error {
			s, err := Open(filepath.Join(dir, "new.db"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.ImportLegacy(writeFile(t, damaged), dir, time.Now())
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			return err
		}, false},
	} {
		before := descriptors(t)
		for range 3 {
			if err := test.call(t.TempDir()); (err == nil) != test.ok {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		if after := descriptors(t); after != before {
			t.Errorf("%s: %d descriptors are open after three times, and %d were before", test.name, after, before)
		}
	}
}
