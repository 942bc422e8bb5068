package wallclock

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// trapped is CLD_TRAPPED of waitid(2): a traced process has stopped.
const trapped = 4

// startBlind starts cmd so that the program does not find the vDSO, and returns
// a pidfd of it. The calling thread traces it for a moment, so it has to be
// locked. After an error there is no process.
func startBlind(cmd *exec.Cmd) (pidfd int, err error) {
	given := cmd.SysProcAttr
	defer func() { cmd.SysProcAttr = given }()
	traced := syscall.SysProcAttr{}
	if given != nil {
		traced = *given
	}
	// The program stops before its first instruction.
	traced.Ptrace = true
	cmd.SysProcAttr = &traced
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid := cmd.Process.Pid
	pidfd, err = unix.PidfdOpen(pid, 0)
	if err == nil {
		err = blind(pid)
	}
	if err == nil {
		return pidfd, nil
	}
	err = fmt.Errorf("keep %s (process %d) from the vDSO: %w", cmd.Path, pid, err)
	if pidfd >= 0 {
		unix.Close(pidfd)
	}
	// Killed is the one thing that a stopped process can be. How it ended is no
	// news.
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return 0, err
}

// blind takes the address of the vDSO away from a program that is stopping
// before its first instruction, and lets it run.
func blind(pid int) error {
	ended, err := waitForStop(pid)
	if err != nil || ended {
		return err
	}
	if err := hideVDSO(pid); err != nil {
		return err
	}
	if err := unix.PtraceDetach(pid); err != nil {
		return fmt.Errorf("let it run: %w", err)
	}
	return nil
}

// waitForStop waits until the traced process has stopped. Somebody may have
// ended it before; that is left for cmd.Wait to find.
func waitForStop(pid int) (ended bool, err error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case err == nil:
			return info.Code != trapped, nil
		case !errors.Is(err, unix.EINTR):
			return false, fmt.Errorf("wait for it to stop: %w", err)
		}
	}
}
