package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// probeInterval is how often a process is asked whether it is ready.
const probeInterval = 10 * time.Millisecond

// Process is a program that was started.
type Process struct {
	cmd *exec.Cmd
	// ordered says that it was sent a signal.
	ordered atomic.Bool
	// ended is closed when it is gone; err is valid after that.
	ended chan struct{}
	err   error
}

// Start starts a command in a process group of its own. It dies with this process.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	// A group of its own keeps the terminal's Ctrl-C away from it: this program
	// ends it when it is time.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		// Pdeathsig acts when the thread that forked ends, so the thread has to
		// stay as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// Ready waits until a driver says at its socket that it is ready. It returns an error if it ends before, or the
// context does.
func (p *Process) Ready(ctx context.Context, socket string) error {
	for !ready(ctx, socket) {
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended before it was ready: %w", p.cmd.Path, p.Exit())
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(probeInterval):
		}
	}
	return nil
}

// ready asks once whether a driver is ready.
func ready(ctx context.Context, socket string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := Dial(socket)
	if err != nil {
		return false
	}
	defer conn.Close()
	answer, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{})
	return err == nil && answer.GetReady().GetValue()
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the process is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Over reports whether the process is gone.
func (p *Process) Over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Signal sends a signal. The error says that the process is gone already, which was
// not our doing.
func (p *Process) Signal(signal syscall.Signal) error {
	if p.Over() {
		return os.ErrProcessDone
	}
	p.ordered.Store(true)
	return p.cmd.Process.Signal(signal)
}

// Ordered reports whether the process was sent a signal: its end is our doing.
func (p *Process) Ordered() bool { return p.ordered.Load() }

// State waits for the end of the process, and says how it came and what the
// kernel charged for it. It is nil if that cannot be known.
func (p *Process) State() *os.ProcessState {
	<-p.ended
	return p.cmd.ProcessState
}

// Err waits for the end of the process, and is nil if its exit code is 0.
func (p *Process) Err() error {
	<-p.ended
	return p.err
}

// errExit0 is how a process ended that has not failed.
var errExit0 = errors.New("exit status 0")

// Exit waits for the end of the process, and says how it came, for an end that is a failure: with an [*exec.ExitError],
// unless the exit code is 0.
func (p *Process) Exit() error {
	if err := p.Err(); err != nil {
		return err
	}
	return errExit0
}
