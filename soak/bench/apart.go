package main

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/launch"
)

// runApart becomes another program, in a mount namespace of its own: the process
// stays the same, so that whoever started it can watch and end it.
func runApart(command []string) error {
	if len(command) == 0 {
		return fmt.Errorf("%w: %s needs a command", launch.ErrUsage, partApart)
	}
	// A namespace is entered by one thread, and exec goes on with that one alone.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := host.Privatise(); err != nil {
		return err
	}
	return fmt.Errorf("run %s: %w", command[0], unix.Exec(command[0], command, os.Environ()))
}
