package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// process is one run of the driver's binary.
type process struct {
	cmd *exec.Cmd
	// ordered says that its end is our doing.
	ordered atomic.Bool
	// ended is closed when it is gone; err is valid after that.
	ended chan struct{}
	err   error
}

// startProcess starts the command with its output appended to the log.
func startProcess(cmd *exec.Cmd, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the daemon's log: %w", err)
	}
	defer out.Close()
	p := &process{cmd: cmd, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// A group of its own keeps the terminal's Ctrl-C away from it: this program
	// ends it when it is time.
	p.cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}

	started := make(chan error)
	go func() {
		// Pdeathsig acts when the thread that forked ends, so the thread has to
		// stay as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the daemon: %w", err)
	}
	return p, nil
}

// over tells whether the process is gone.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// cpu is the CPU time of a process that has ended: what the kernel charged in
// the end, however it died. It is 0 before.
func (p *process) cpu() time.Duration {
	if !p.over() {
		return 0
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// end sends a signal that is meant to end the process.
func (p *process) end(signal unix.Signal) {
	if p.over() {
		return // it was faster, and that was not our doing
	}
	p.ordered.Store(true)
	// It fails only when the process is gone already, which is what is wanted.
	_ = p.cmd.Process.Signal(signal)
}

// exit says how a process that has ended did so.
func (p *process) exit() string {
	if p.err != nil {
		return p.err.Error()
	}
	return "exit status 0"
}
