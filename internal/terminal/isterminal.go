package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// IsTerminal reports whether a reader or writer is a file that is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return false
	}
	terminal := false
	err = raw.Control(func(fd uintptr) {
		_, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
		terminal = err == nil
	})
	return err == nil && terminal
}
