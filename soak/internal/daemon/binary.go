package daemon

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/clock"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/testbed"
)

const (
	// startLimit is how long the driver may take from its start to its first
	// "ready", with the recovery of everything it retains, unless the
	// configuration says otherwise.
	startLimit = 60 * time.Second
	// stopLimit is how long it may take to end after SIGTERM.
	stopLimit = 10 * time.Second
	// probeInterval is how often it is asked whether it is ready.
	probeInterval = 10 * time.Millisecond
)

// Config says what to run.
type Config struct {
	// Binary is the driver's program, Args its flags, Log the file that its
	// output is appended to.
	Binary string
	Args   []string
	Log    string
	// Socket is where it listens.
	Socket string
	// Records is the file of its records; needed for [Binary.Records] alone.
	Records string
	// Clock is the wall clock that it follows, if it was built to; nil is the
	// machine's.
	Clock *clock.Clock
	// StartLimit is how long it may take until it is ready; 0 is a minute.
	StartLimit time.Duration
}

// Binary is a [Driver] that is a program.
type Binary struct {
	config Config
	died   chan error
	used   consumption

	mu      sync.Mutex
	process *process
}

// New prepares a driver; Start starts it.
func New(c Config) *Binary { return &Binary{config: c, died: make(chan error, 1)} }

// Start is described at [Driver].
func (b *Binary) Start(ctx context.Context) error {
	cmd := exec.Command(b.config.Binary, b.config.Args...)
	if b.config.Clock != nil {
		cmd.Env = append(os.Environ(), b.config.Clock.Environment())
	}
	p, err := startProcess(cmd, b.config.Log)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.process = p
	b.mu.Unlock()
	b.used.follow(p)

	limit := cmp.Or(b.config.StartLimit, startLimit)
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for !b.ready(ctx) {
		select {
		case <-p.ended:
			return fmt.Errorf("the daemon ended before it was ready: %s\n%s", p.exit(), quoteEnd(b.config.Log))
		case <-deadline.C:
			return fmt.Errorf("the daemon is not ready after %s\n%s", limit, quoteEnd(b.config.Log))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(probeInterval):
		}
	}
	go func() {
		<-p.ended
		if !p.ordered.Load() {
			b.died <- fmt.Errorf("the daemon ended on its own: %s\n%s", p.exit(), quoteEnd(b.config.Log))
		}
	}()
	return nil
}

// ready asks once whether the driver is ready.
func (b *Binary) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := testbed.Dial(b.config.Socket)
	if err != nil {
		return false
	}
	defer conn.Close()
	answer, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{})
	return err == nil && answer.GetReady().GetValue()
}

// Kill is described at [Driver].
func (b *Binary) Kill() {
	if p := b.current(); p != nil {
		b.used.look() // its peak dies with it
		p.end(unix.SIGKILL)
		<-p.ended
	}
}

// Stop is described at [Driver].
func (b *Binary) Stop() error {
	p := b.current()
	if p == nil {
		return nil
	}
	b.used.look() // its peak dies with it
	p.end(unix.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopLimit):
		p.end(unix.SIGKILL)
		<-p.ended
		return fmt.Errorf("the daemon still ran %s after SIGTERM\n%s", stopLimit, quoteEnd(b.config.Log))
	}
	if p.err != nil {
		return fmt.Errorf("the daemon did not end with code 0 after SIGTERM: %w\n%s", p.err, quoteEnd(b.config.Log))
	}
	return nil
}

// Died is described at [Driver].
func (b *Binary) Died() <-chan error { return b.died }

// SetClock is described at [Driver]. It needs a Clock.
func (b *Binary) SetClock(offset time.Duration) { b.config.Clock.Set(offset) }

// Usage is described at [Driver].
func (b *Binary) Usage() (host.Usage, bool) { return b.used.look() }

// Descriptors is described at [Driver].
func (b *Binary) Descriptors() (int, bool) {
	p := b.current()
	if p == nil {
		return 0, false
	}
	n, err := host.Descriptors(p.cmd.Process.Pid)
	// It is ending, or the PID is that of a stranger already.
	return n, err == nil && !p.over()
}

// Total is described at [Driver].
func (b *Binary) Total() host.Usage { return b.used.total() }

// PID is the number of its process. It is false while there is none.
func (b *Binary) PID() (int, bool) {
	p := b.current()
	if p == nil || p.over() {
		return 0, false
	}
	return p.cmd.Process.Pid, true
}

func (b *Binary) current() *process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.process
}
