package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTooManyMounts: where a mount namespace is full of mounts, the error says so, and what to do; it is not that of a full disk.
func TestTooManyMounts(t *testing.T) {
	source, target := dirs(t)
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never given back: the namespace ends with the thread, and its mounts with that
		failed <- fillNamespace(source)
		for _, old := range []bool{false, true} {
			m := New()
			m.oldMountCalls.Store(old)
			failed <- m.Mount(source, target, "", []string{"bind"})
		}
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-failed; !errors.Is(err, ErrTooMany) || !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "fs.mount-max") {
			t.Errorf("mount: %v, want it to say that there are too many mounts", err)
		}
	}
}

// fillNamespace gives the thread a mount namespace of its own, and makes as many mounts in it as it may have.
func fillNamespace(dir string) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make all private: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("tmpfs: %w", err)
	}
	bind := func(from, name string) error {
		onto := filepath.Join(dir, name)
		if err := os.Mkdir(onto, 0o700); err != nil {
			return err
		}
		return unix.Mount(from, onto, "", unix.MS_BIND|unix.MS_REC, "")
	}
	// Each has all that were before: 1, 2, 4 ... mounts.
	var trees []string
	for {
		name := "tree" + strconv.Itoa(len(trees))
		if err := bind(dir, name); errors.Is(err, unix.ENOSPC) {
			break
		} else if err != nil {
			return fmt.Errorf("bind all at %s: %w", name, err)
		}
		trees = append(trees, filepath.Join(dir, name))
	}
	// What is left is filled with smaller and smaller ones.
	for n, more := len(trees)-1, 0; n >= 0; more++ {
		if err := bind(trees[n], "more"+strconv.Itoa(more)); errors.Is(err, unix.ENOSPC) {
			n--
		} else if err != nil {
			return fmt.Errorf("bind %s: %w", trees[n], err)
		}
	}
	return nil
}
