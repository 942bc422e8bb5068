package disk

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestMountOfAFileSystemThatWasShutDown: XFS then refuses to say anything about its files. What is mounted is found
// all the same.
func TestMountOfAFileSystemThatWasShutDown(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, fsType string) {
		d, staging := formatted(t, fsType, small), target(t)
		first, second := published(t), published(t)
		mustMount(t, d.path, staging, fsType, false)
		if err := quiet.Bind(staging, first, nil, false); err != nil {
			t.Fatal(err)
		}
		number, err := blockDevice(d.path)
		if err != nil {
			t.Fatal(err)
		}
		roottest.ShutDown(t, staging)
		for _, path := range []string{staging, first} {
			if at, err := attach.Look(path); err != nil || at != (attach.Point{Mounted: true, Directory: true, Device: number}) {
				t.Errorf("a look at %s: %+v, %v", path, at, err)
			}
		}
		if err := quiet.Mount(d.path, staging, fsType, nil, false); err != nil {
			t.Errorf("mounted already: %v", err)
		}
		if err := quiet.Bind(staging, first, nil, false); err != nil {
			t.Errorf("bound already: %v", err)
		}
		err = quiet.Bind(staging, second, nil, false)
		if err != nil && !errors.Is(err, unix.EIO) {
			t.Errorf("for another pod: %v", err)
		}
		if _, statErr := os.Lstat(second); err != nil && !errors.Is(statErr, os.ErrNotExist) {
			t.Errorf("its target was left: %v", statErr)
		}
	})
}
