package browser

import (
	"os"
	"path/filepath"
	"syscall"
)

// opener is the command that opens a file.
var opener = []string{filepath.Join(os.Getenv("SYSTEMROOT"), "System32", "rundll32.exe"), "url.dll,FileProtocolHandler"}

// display reports whether the user sits in front of the machine.
func display(env func(string) string) bool { return env("SSH_CONNECTION") == "" }

// apart keeps Ctrl-C in the terminal from the browser.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
