package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// kernelVariable names, in the environment, the kernel that the test binary simulates
	// for the program in programVariable, which it becomes.
	kernelVariable  = "KATBOX_TEST_KERNEL"
	programVariable = "KATBOX_TEST_PROGRAM"
)

// fakeKernel is a kernel that a system call filter simulates.
type fakeKernel string

const (
	// oldKernel lacks the calls that came after Linux 4.9, and renameat2.
	oldKernel fakeKernel = "old"
	// oldRefusingKernel also refuses to change the flags of a mount.
	oldRefusingKernel fakeKernel = "old-refusing"
	// fullKernel has no room for another name in any directory.
	fullKernel fakeKernel = "full"
)

// refusal is how a system call fails.
type refusal struct {
	call  uintptr
	errno syscall.Errno
	// flag, of mount(2), is the flag of the calls that fail; 0 for all.
	flag uint32
}

func (k fakeKernel) refusals() []refusal {
	old := []refusal{
		{call: unix.SYS_OPEN_TREE, errno: unix.ENOSYS},
		{call: unix.SYS_MOVE_MOUNT, errno: unix.ENOSYS},
		{call: unix.SYS_MOUNT_SETATTR, errno: unix.ENOSYS},
		{call: unix.SYS_OPENAT2, errno: unix.ENOSYS},
		{call: unix.SYS_RENAMEAT2, errno: unix.ENOSYS},
		{call: unix.SYS_STATX, errno: unix.ENOSYS},
	}
	switch k {
	case oldKernel:
		return old
	case oldRefusingKernel:
		return append(old, refusal{call: unix.SYS_MOUNT, errno: unix.EPERM, flag: unix.MS_REMOUNT})
	case fullKernel:
		// Only the working directory needs this call.
		return []refusal{{call: unix.SYS_RENAMEAT2, errno: unix.ENOSPC}}
	}
	panic(fmt.Sprintf("no kernel %q", string(k)))
}

// filter returns the kernel as a program for seccomp(2).
func (k fakeKernel) filter() []unix.SockFilter {
	// The offsets in struct seccomp_data of the call's number and, on little-endian machines,
	// of the lower half of the fourth argument.
	const number, fourth = 0, 16 + 3*8
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	var program []unix.SockFilter
	for _, r := range k.refusals() {
		refuse := []unix.SockFilter{answer(unix.SECCOMP_RET_ERRNO | uint32(r.errno))}
		if r.flag != 0 {
			refuse = []unix.SockFilter{
				load(fourth),
				{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: r.flag, Jf: 1},
				refuse[0],
			}
		}
		program = append(program, load(number),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(r.call), Jf: uint8(len(refuse))})
		program = slices.Concat(program, refuse)
	}
	return append(program, answer(unix.SECCOMP_RET_ALLOW))
}

// execUnderFilter becomes the program, under the simulated kernel.
func execUnderFilter() {
	// The filter belongs to the thread, which becomes the process.
	runtime.LockOSThread()
	program := fakeKernel(os.Getenv(kernelVariable)).filter()
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)), 0, 0)
	if err == nil {
		binary := os.Getenv(programVariable)
		err = syscall.Exec(binary, append([]string{binary}, os.Args[1:]...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, "play another kernel:", err)
	os.Exit(2)
}
