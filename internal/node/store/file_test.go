package store

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// irregular makes files that are not regular, by their kind.
var irregular = map[string]func(t *testing.T, path string){
	"named pipe": func(t *testing.T, path string) {
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	},
	"link to a named pipe": func(t *testing.T, path string) {
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.Symlink(pipe, path)); err != nil {
			t.Fatal(err)
		}
	},
	"socket": func(t *testing.T, path string) {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	},
	"device": func(t *testing.T, path string) {
		if err := os.Symlink("/dev/zero", path); err != nil {
			t.Fatal(err)
		}
	},
}

// answers returns what fn does, and fails if it waits: nothing here waits for another process.
func answers(t *testing.T, fn func() error) error {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- fn() }()
	select {
	case err := <-result:
		return err
	case <-time.After(time.Minute):
		t.Fatal("it waits for ever")
		return nil
	}
}

func TestOnlyARegularFileIsOpened(t *testing.T) {
	for kind, create := range irregular {
		for _, test := range []struct{ name, file, advice string }{
			{"the records", "store.db", "move it aside and start again"},
			{"unfinished records", "store.db" + newSuffix, "remove it"},
			{"the old driver's database", "old.db", "move it aside and start again"},
			{"the journal", "store.db" + journalSuffixes[1], "remove it and start again"},
		} {
			t.Run(kind+" as "+test.name, func(t *testing.T) {
				// The path of a socket has to be short.
				dir, err := os.MkdirTemp("", "store")
				if err != nil {
					t.Fatal(err)
				}
				defer os.RemoveAll(dir)
				path := filepath.Join(dir, test.file)
				create(t, path)
				err = answers(t, func() error {
					s, err := Open(filepath.Join(dir, "store.db"))
					if err != nil {
						return err
					}
					_, err = s.ImportLegacy(filepath.Join(dir, "old.db"), dir, time.Now())
					return errors.Join(err, s.Close())
				})
				if !errors.Is(err, errNotRegular) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), test.advice) {
					t.Errorf("%v, want that %s is not a regular file, and %q", err, path, test.advice)
				}
			})
		}
	}
}
