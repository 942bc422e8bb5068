//go:build linux || darwin

package browser

import "syscall"

// apart keeps Ctrl-C in the terminal from the browser.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
