package scratch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// Of the protocol of FUSE.
const (
	fuseForget  = 2
	fuseInit    = 26
	fuseOpenDir = 27

	fuseHeader = 16
)

// mountFUSE mounts a file system that refuses all that it is asked for, and returns what that was
// when the function is called.
func mountFUSE(t *testing.T, dir string) (asked func() []uint32) {
	t.Helper()
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		roottest.Lacks(t, "/dev/fuse", err)
	}
	var opcodes []uint32
	done := make(chan struct{})
	roottest.Mount(t, "katbox-test", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device))
	go func() {
		defer close(done)
		defer unix.Close(device)
		request := make([]byte, 128<<10)
		for {
			n, err := unix.Read(device, request)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil || n < fuseHeader {
				return // it is not mounted any more
			}
			opcode := binary.NativeEndian.Uint32(request[4:])
			reply := make([]byte, fuseHeader)
			refused := -int32(unix.EIO)
			binary.NativeEndian.PutUint32(reply[4:], uint32(refused))
			switch opcode {
			case fuseForget:
				continue
			case fuseInit:
				reply = make([]byte, fuseHeader+64)
				binary.NativeEndian.PutUint32(reply[fuseHeader:], 7)
				binary.NativeEndian.PutUint32(reply[fuseHeader+4:], 31)
			default:
				opcodes = append(opcodes, opcode)
			}
			binary.NativeEndian.PutUint32(reply, uint32(len(reply)))
			copy(reply[8:16], request[8:16])
			_, _ = unix.Write(device, reply)
		}
	}()
	return func() []uint32 {
		t.Helper()
		must(t, unix.Unmount(dir, unix.MNT_DETACH))
		<-done
		return opcodes
	}
}

// TestMountedFileSystemIsNotAsked: one that hangs and is mounted on a data directory, or inside a
// volume, holds up no deletion.
func TestMountedFileSystemIsNotAsked(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		roottest.Need(t)
		dir := create(t, d, here)
		asked := mountFUSE(t, dir)
		if _, err := d.Exists(here); !errors.Is(err, ErrNotOurs) {
			t.Errorf("Exists: %v", err)
		}
		if _, err := d.Discard(here); !errors.Is(err, ErrNotOurs) {
			t.Errorf("Discard: %v", err)
		}
		if got := asked(); len(got) > 0 {
			t.Errorf("the file system was asked for %d, want nothing; to open is %d", got, fuseOpenDir)
		}
	})
}
