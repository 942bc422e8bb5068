package terminal

import "golang.org/x/sys/windows"

// takesEscapes reports whether a terminal takes escape sequences. A console of Windows
// prints them until a program asks it to take them, and before Windows 10 it cannot.
func takesEscapes(stream any) bool {
	takes := false
	err := onFile(stream, func(fd uintptr) {
		var mode uint32
		if windows.GetConsoleMode(windows.Handle(fd), &mode) != nil {
			return
		}
		takes = windows.SetConsoleMode(windows.Handle(fd), mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
	})
	return err == nil && takes
}
