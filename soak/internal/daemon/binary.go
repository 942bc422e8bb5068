package daemon

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

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
	process *testbed.Process
	// before is how long the log was when the process began, in bytes.
	before int64
}

// New prepares a driver; Start starts it.
func New(c Config) *Binary { return &Binary{config: c, died: make(chan error, 1)} }

// Start is described at [Driver].
func (b *Binary) Start(ctx context.Context) error {
	cmd := exec.Command(b.config.Binary, b.config.Args...)
	if b.config.Clock != nil {
		cmd.Env = append(os.Environ(), b.config.Clock.Environment())
	}
	out, err := os.OpenFile(b.config.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the daemon's log: %w", err)
	}
	defer out.Close()
	info, err := out.Stat()
	if err != nil {
		return fmt.Errorf("look at the daemon's log: %w", err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	p, err := testbed.Start(cmd)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.process, b.before = p, info.Size()
	b.mu.Unlock()
	b.used.follow(p)

	limit := cmp.Or(b.config.StartLimit, startLimit)
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the daemon is not ready after %s", limit))
	defer cancel()
	if err := p.Ready(limited, b.config.Socket); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		does := stuck(p)
		return fmt.Errorf("%w\n%s%s", err, does, b.quote())
	}
	go func() {
		<-p.Ended()
		if !p.Ordered() {
			b.died <- fmt.Errorf("the daemon ended on its own: %w\n%s", p.Exit(), quoteEnd(b.config.Log, info.Size()))
		}
	}()
	return nil
}

// Kill is described at [Driver].
func (b *Binary) Kill() {
	if p := b.current(); p != nil {
		b.used.look()              // its peak dies with it
		_ = p.Signal(unix.SIGKILL) // or it is gone already
		<-p.Ended()
	}
}

// Stop is described at [Driver].
func (b *Binary) Stop() error {
	p := b.current()
	if p == nil {
		return nil
	}
	b.used.look()              // its peak dies with it
	_ = p.Signal(unix.SIGTERM) // or it is gone already
	select {
	case <-p.Ended():
	case <-time.After(stopLimit):
		does := stuck(p)
		return fmt.Errorf("the daemon still ran %s after SIGTERM\n%s%s", stopLimit, does, b.quote())
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("the daemon did not end with code 0 after SIGTERM: %w\n%s", err, b.quote())
	}
	return nil
}

// quote is what the process said last.
func (b *Binary) quote() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return quoteEnd(b.config.Log, b.before)
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
	n, err := host.Descriptors(p.PID())
	// It is ending, or the PID is that of a stranger already.
	return n, err == nil && !p.Over()
}

// Total is described at [Driver].
func (b *Binary) Total() host.Usage { return b.used.total() }

// PID is the number of its process. It is false while there is none.
func (b *Binary) PID() (int, bool) {
	p := b.current()
	if p == nil || p.Over() {
		return 0, false
	}
	return p.PID(), true
}

func (b *Binary) current() *testbed.Process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.process
}
