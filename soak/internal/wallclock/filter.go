package wallclock

import "golang.org/x/sys/unix"

// The offsets in struct seccomp_data. An argument has 64 bits, and its lower
// half comes first on the architectures that are supported.
const (
	dataNumber        = 0
	dataArchitecture  = 4
	dataFirstArgument = 16
)

// questionFilter is the program for the kernel that turns each question for
// the wall clock's time into a notification and allows everything else.
func questionFilter() []unix.SockFilter {
	filter := []unix.SockFilter{
		// Another architecture, as of a 32-bit program, has other numbers.
		load(dataArchitecture),
		equal(auditArchitecture, 1, 0),
		end(unix.SECCOMP_RET_ALLOW),
		load(dataNumber),
	}
	for number := range wholeQuestions {
		filter = append(filter, equal(number, 0, 1), end(unix.SECCOMP_RET_USER_NOTIF))
	}
	return append(filter,
		// The first argument says which clock is meant. All others, above all
		// the monotonic one, are left alone.
		equal(unix.SYS_CLOCK_GETTIME, 0, 3),
		load(dataFirstArgument),
		equal(unix.CLOCK_REALTIME, 2, 0),
		equal(unix.CLOCK_REALTIME_COARSE, 1, 0),
		end(unix.SECCOMP_RET_ALLOW),
		end(unix.SECCOMP_RET_USER_NOTIF),
	)
}

// load makes 32 bits of struct seccomp_data the value to compare.
func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// equal leaves out as many of the next instructions, depending on whether the
// loaded value is the given one.
func equal(value uint32, leaveOutIf, leaveOutElse uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jt: leaveOutIf, Jf: leaveOutElse}
}

// end decides.
func end(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}
