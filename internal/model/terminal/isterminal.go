package terminal

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether a reader or writer is a file that is a terminal.
func IsTerminal(stream any) bool {
	terminal := false
	err := onFile(stream, func(fd uintptr) { terminal = term.IsTerminal(int(fd)) })
	return err == nil && terminal
}

// usualColumns is how wide a terminal is that does not say.
const usualColumns = 80

// Columns returns how wide a terminal is at the moment.
func Columns(terminal any) int {
	columns := 0
	err := onFile(terminal, func(fd uintptr) {
		if width, _, err := term.GetSize(int(fd)); err == nil {
			columns = width
		}
	})
	if err != nil || columns <= 0 {
		return usualColumns
	}
	return columns
}

// onFile calls f with the handle of a file, which stays open meanwhile. The error says that the stream
// is not an open file.
func onFile(stream any, f func(fd uintptr)) error {
	file, ok := stream.(*os.File)
	if !ok {
		return os.ErrInvalid
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(f)
}
