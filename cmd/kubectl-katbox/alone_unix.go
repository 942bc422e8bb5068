//go:build !windows

package main

import (
	"os/exec"
	"syscall"
)

// runAlone makes a command the leader of a session without a terminal. When its context ends, its whole
// process group is killed.
func runAlone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endTogether is for systems without process groups.
func endTogether() {}
