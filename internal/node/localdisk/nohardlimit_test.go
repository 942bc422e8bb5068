package localdisk

import (
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestBtrfsHasNoHardLimit: a subvolume that a pod makes with a list of quota groups of its own choosing, an empty one,
// counts nowhere. The pool does not promise what does not hold.
func TestBtrfsHasNoHardLimit(t *testing.T) {
	p := newPool(t, onBtrfs)
	if p.Describe().HardLimit {
		t.Error("it promises a hard limit")
	}
	r := p.make(record("pvc-1", 16*mib))
	path := p.stage(r)
	dir, err := os.Open(path)
	must(t, err)
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: no other goroutine is to run as this user
		made <- asUser(roottest.PodUser, func() error { return makeUncounted(dir, "inner") })
	}()
	must(t, <-made)
	must(t, dir.Close())
	if out, err := roottest.AsPod(path, "dd", "if=/dev/zero", "of=inner/big", "bs=1M", "count=64", "conv=fsync"); err != nil {
		t.Errorf("the limit holds against this; local-pools.md says that it does not: %s", out)
	}
	p.unstage(r, path)
	p.delete(r)
	must(t, p.Erase(t.Context()))
}

// asUser makes the thread that of an ordinary user, and calls do.
func asUser(user uintptr, do func() error) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, user, user, user); errno != 0 {
		return errno
	}
	return do()
}

// makeUncounted makes a subvolume with an empty list of quota groups.
func makeUncounted(dir *os.File, name string) error {
	const create, inherit = 0x50009418, 1 << 2 // BTRFS_IOC_SUBVOL_CREATE_V2, BTRFS_SUBVOL_QGROUP_INHERIT
	none := struct {
		flags, groups, refCopies, exclCopies uint64
		limits                               [5]uint64
	}{}
	arguments := struct {
		fd                 int64
		transaction, flags uint64
		size               uint64
		groups             unsafe.Pointer
		_                  [2]uint64
		name               [4040]byte
	}{flags: inherit, size: uint64(unsafe.Sizeof(none)), groups: unsafe.Pointer(&none)}
	copy(arguments.name[:], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), create, uintptr(unsafe.Pointer(&arguments))); errno != 0 {
		return errno
	}
	return nil
}
