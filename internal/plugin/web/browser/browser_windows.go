package browser

import (
	"path/filepath"
	"syscall"

	"golang.org/x/sys/windows"
)

// opener returns the command that opens a file.
func opener() ([]string, error) {
	// Not by its name alone: another rundll32 may be found first.
	dir, err := windows.GetSystemDirectory()
	return []string{filepath.Join(dir, "rundll32.exe"), "url.dll,FileProtocolHandler"}, err
}

// display reports whether the user sits in front of the machine.
func display(env func(string) string) bool { return env("SSH_CONNECTION") == "" }

// apart keeps Ctrl-C in the terminal from the browser.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}
