package registration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/duration"
	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/socket"
)

// Config is what a Registrar works with. All fields are required.
type Config struct {
	// Dir is where the kubelet looks for sockets.
	Dir string
	// Name is the driver's name.
	Name string
	// Endpoint is the path of the CSI socket as the kubelet sees it.
	Endpoint string
	Log      logr.Logger
	// Metrics are told whether the driver is registered.
	Metrics *metrics.Metrics
}

// path is that of the socket. node-driver-registrar gives it the same name, so
// that there cannot be two that register the driver.
func (c Config) path() string { return filepath.Join(c.Dir, c.Name+"-reg.sock") }

// Check says which field is not acceptable, and why.
func (c Config) Check() error {
	if !filepath.IsAbs(c.Dir) {
		return fmt.Errorf("registration directory %q is not an absolute path", c.Dir)
	}
	if err := socket.CheckPath(c.path()); err != nil {
		return fmt.Errorf("registration socket %w", err)
	}
	if !filepath.IsAbs(c.Endpoint) {
		return fmt.Errorf("CSI socket for the kubelet %q (--kubelet-registration-path) is not an absolute path", c.Endpoint)
	}
	if err := socket.CheckPath(c.Endpoint); err != nil {
		return fmt.Errorf("CSI socket for the kubelet (--kubelet-registration-path) %w", err)
	}
	return nil
}

// pace is how fast the Registrar goes on by itself.
type pace struct {
	// look is how often the socket is looked for.
	look time.Duration
	// first and most bound how long it is waited after a refusal.
	first, most time.Duration
	// patience is how long the kubelet may be silent before the log tells of it.
	patience time.Duration
}

var usualPace = pace{look: 5 * time.Second, first: 5 * time.Second, most: 2 * time.Minute, patience: time.Minute}

// after returns the wait after so many refusals in a row.
func (p pace) after(refusals int) time.Duration {
	wait := p.first
	for range refusals - 1 {
		if wait >= p.most {
			break
		}
		wait *= 2
	}
	return min(wait, p.most)
}

// Registrar keeps the driver registered. A nil one stands for a driver that
// somebody else registers.
type Registrar struct {
	Config
	pace
	// said is why the kubelet refuses the driver, nil when it has registered it.
	said  chan error
	stop  context.CancelFunc
	ended chan struct{}

	mu sync.Mutex
	// missing is why the driver is not registered; nil when it is.
	missing error
}

// errNotAsked: nothing is wrong, but the kubelet was not there yet.
var errNotAsked = errors.New("the kubelet has not registered the driver yet")

// Start opens the registration socket. The CSI socket has to be served already,
// for the kubelet calls it at once.
func Start(cfg Config) (*Registrar, error) { return start(cfg, usualPace) }

func start(cfg Config, p pace) (*Registrar, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Registrar{Config: cfg, pace: p, said: make(chan error), stop: stop, ended: make(chan struct{})}
	o, err := r.open()
	if err != nil {
		stop()
		return nil, err
	}
	cfg.Log.Info("waiting for the kubelet to register the driver", "socket", cfg.path(), "endpoint", cfg.Endpoint)
	go r.run(ctx, o)
	return r, nil
}

// Registered returns nil when the kubelet has registered the driver, and else
// why not.
func (r *Registrar) Registered() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing
}

func (r *Registrar) setMissing(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing = err
	r.Metrics.Registered(err == nil)
}

// Stop removes the socket, so that the kubelet unregisters the driver. It is to
// be called once.
func (r *Registrar) Stop() {
	if r == nil {
		return
	}
	r.stop()
	<-r.ended
}

// run has the socket open until ctx ends.
func (r *Registrar) run(ctx context.Context, o *opening) {
	defer close(r.ended)
	refusals := 0
	for o != nil {
		refusals = r.attend(ctx, o, refusals)
		o.close()
		o = r.reopen(ctx)
	}
	r.setMissing(errors.New("the daemon is stopping"))
}

// attend returns when the socket has to be made anew, or ctx has ended. It counts
// the refusals in a row.
func (r *Registrar) attend(ctx context.Context, o *opening, refusals int) int {
	look := time.NewTicker(r.look)
	defer look.Stop()
	silent := time.After(r.patience)
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return refusals
		case err := <-r.said:
			silent = nil
			switch {
			case err == nil:
				r.Log.Info("registered with the kubelet", "socket", r.path())
				again, refusals = nil, 0
			case again == nil: // it may try again by itself, which is the same refusal
				refusals++
				wait := r.after(refusals)
				r.Log.Error(err, "not registered, making the socket anew", "socket", r.path(), "in", duration.Format(wait))
				again = time.After(wait)
			}
		case <-again:
			return refusals
		case <-silent:
			r.Log.Error(errNotAsked, "is this the kubelet's directory plugins_registry, and mounted into the container?", "directory", r.Dir)
		case err := <-o.failed:
			r.Log.Error(err, "making the registration socket anew", "socket", r.path())
			return refusals
		case <-look.C:
			if !o.InPlace() {
				r.Log.Error(errGone, "making the registration socket anew", "socket", r.path())
				return refusals
			}
		}
	}
}

var errGone = errors.New("somebody has removed the registration socket")

// reopen makes the socket anew, as soon as that can be done; nil when ctx ends
// before.
func (r *Registrar) reopen(ctx context.Context) *opening {
	look := time.NewTicker(r.look)
	defer look.Stop()
	reported := ""
	for ctx.Err() == nil {
		o, err := r.open()
		if err == nil {
			return o
		}
		r.setMissing(err)
		if err.Error() != reported { // one line says it all
			reported = err.Error()
			r.Log.Error(err, "not registered, trying again until it can be done", "interval", duration.Format(r.look))
		}
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
	return nil
}
