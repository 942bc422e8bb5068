package wallclock

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// listen puts the calling thread, and what it forks from now on, under the
// filter. It returns the descriptor where the notifications arrive, which hangs
// up when the last process and thread under the filter is gone.
func listen() (int, error) {
	filter := questionFilter()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Older kernels slow a process with a filter down, against attacks by
	// speculation, unless told not to. The program is no stranger in a sandbox.
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return 0, fmt.Errorf("install a seccomp filter with a listener: %w; %s", errno, advice(errno))
	}
	// There is no notification to answer yet. A kernel that knows the flag says
	// just that.
	err := send(int(fd), &response{flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
	if !errors.Is(err, errGone) {
		unix.Close(int(fd))
		return 0, fmt.Errorf("try to let a system call continue after a seccomp notification: %w; use Linux 5.9 or newer", err)
	}
	// Who asks and who answers never run at the same time, so they do better on
	// one CPU. Kernels before 6.6 do not know that.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return int(fd), nil
}

// advice says what to do about a refused filter.
func advice(errno unix.Errno) string {
	switch errno {
	case unix.EACCES, unix.EPERM:
		return "run it as root, or as root of a user namespace (unshare --user --map-root-user), " +
			"and in a container with CAP_SYS_ADMIN and a seccomp profile that allows seccomp(2)"
	case unix.EBUSY:
		return "a process can have only one listener, and the container that this one is in has set one: run it outside"
	default:
		return "use Linux 5.9 or newer, with CONFIG_SECCOMP_FILTER"
	}
}

// notification is struct seccomp_notif.
type notification struct {
	id     uint64
	thread uint32 // as seen from here, whatever namespace it is in
	flags  uint32
	// The rest is struct seccomp_data.
	number       int32
	architecture uint32
	instruction  uint64
	args         [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32 // negative, as the kernel has it
	flags uint32
}

// errGone: nobody waits for this answer any more, because the thread has ended
// or was interrupted by a signal. In that case it will ask again.
var errGone = errors.New("nobody waits for the answer to a seccomp notification")

// receive takes the next notification.
func receive(listener int) (notification, error) {
	// The kernel insists on zeroes.
	var n notification
	err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n))
	return n, err
}

// send answers a notification, and its thread goes on.
func send(listener int, r *response) error {
	return ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(r))
}

// stillWaits returns nil while the thread waits for the answer.
func stillWaits(listener int, id uint64) error {
	return ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id))
}

func ioctl(fd int, request uint, argument unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(argument))
		switch {
		case errno == 0:
			return nil
		case errno == unix.ENOENT:
			return errGone
		case !again(errno):
			return errno
		}
	}
}
