package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
)

const (
	// startLimit is how long the daemon may take from its start to its first
	// "ready", with the recovery of everything it retains.
	startLimit = 30 * time.Second
	// stopLimit is how long it may take to end after SIGTERM.
	stopLimit = 10 * time.Second
	// probeInterval is how often it is asked whether it is ready.
	probeInterval = 10 * time.Millisecond
)

// daemon is the Katbox daemon under test, over all its restarts.
type daemon struct {
	binary string
	args   []string
	socket string
	log    string
	// died is told when it ends on its own. It runs on a goroutine of its own.
	died func(error)
	// used is what its processes use.
	used consumption

	mu      sync.Mutex
	process *process
	outages []outage
}

// outage is a time in which calls may fail, because we killed the daemon. It
// ends when the next one is ready; until then its end is zero.
type outage struct {
	from, to time.Time
}

// newDaemon prepares a daemon; start starts it.
func newDaemon(binary string, l layout, lifespan time.Duration, died func(error)) *daemon {
	return &daemon{
		binary: binary,
		socket: l.socket,
		log:    l.log,
		died:   died,
		args: []string{
			"--endpoint", "unix://" + l.socket,
			"--nodeid", nodeName,
			"--workdir", l.work,
			"--kubelet-dir", l.kubelet,
			"--afterlifespan", lifespan.String(),
			// The disk of the machine that runs this may be full already, and
			// pressure would shorten the lifespans.
			"--headroom", "0",
			"--orphan-grace", "2s",
			"--log-level", "info",
		},
	}
}

// start starts the daemon and waits until it is ready.
func (d *daemon) start(ctx context.Context) error {
	p, err := startProcess(d.binary, d.args, d.log)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.process = p
	d.mu.Unlock()
	d.used.follow(p)

	deadline := time.NewTimer(startLimit)
	defer deadline.Stop()
	for !d.ready(ctx) {
		select {
		case <-p.ended:
			return fmt.Errorf("the daemon ended before it was ready: %s\n%s", exitOf(p), quoteEnd(d.log))
		case <-deadline.C:
			return fmt.Errorf("the daemon is not ready after %s\n%s", startLimit, quoteEnd(d.log))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(probeInterval):
		}
	}
	go func() {
		<-p.ended
		if !p.ordered.Load() {
			d.died(fmt.Errorf("the daemon ended on its own: %s\n%s", exitOf(p), quoteEnd(d.log)))
		}
	}()
	return nil
}

// ready asks once whether the daemon is ready.
func (d *daemon) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := dial(d.socket)
	if err != nil {
		return false
	}
	defer conn.Close()
	answer, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{})
	return err == nil && answer.GetReady().GetValue()
}

// kill ends the daemon as a crash would, and starts it again at once.
func (d *daemon) kill(ctx context.Context) error {
	d.mu.Lock()
	p := d.process
	d.outages = append(d.outages, outage{from: time.Now()})
	d.mu.Unlock()

	d.used.look() // its peak dies with it
	p.end(unix.SIGKILL)
	<-p.ended
	if err := d.start(ctx); err != nil {
		return fmt.Errorf("start after a kill: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outages[len(d.outages)-1].to = time.Now()
	return nil
}

// stop tells the daemon to end. The error says that it did not end as it should.
func (d *daemon) stop() error {
	d.mu.Lock()
	p := d.process
	d.mu.Unlock()
	d.used.look() // its peak dies with it
	p.end(unix.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopLimit):
		p.end(unix.SIGKILL)
		<-p.ended
		return fmt.Errorf("the daemon still ran %s after SIGTERM\n%s", stopLimit, quoteEnd(d.log))
	}
	if p.err != nil {
		return fmt.Errorf("the daemon did not end with code 0 after SIGTERM: %w\n%s", p.err, quoteEnd(d.log))
	}
	return nil
}

// abandon ends the daemon when the run is lost anyway.
func (d *daemon) abandon() {
	d.mu.Lock()
	p := d.process
	d.mu.Unlock()
	if p != nil {
		p.end(unix.SIGKILL)
		<-p.ended
	}
}

// down tells whether the daemon was down by our doing at any time between the
// two.
func (d *daemon) down(from, to time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.outages {
		if !o.from.After(to) && (o.to.IsZero() || !o.to.Before(from)) {
			return true
		}
	}
	return false
}

// marks are the kills and restarts so far, as seconds after the beginning.
func (d *daemon) marks(began time.Time) []mark {
	d.mu.Lock()
	defer d.mu.Unlock()
	marks := make([]mark, 0, len(d.outages))
	for _, o := range d.outages {
		m := mark{Killed: seconds(o.from.Sub(began))}
		if !o.to.IsZero() {
			ready := seconds(o.to.Sub(began))
			m.Ready = &ready
		}
		marks = append(marks, m)
	}
	return marks
}

// exitOf says how a process that has ended did so.
func exitOf(p *process) string {
	if p.err != nil {
		return p.err.Error()
	}
	return "exit status 0"
}
