package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/model/duration"
)

// RegistrarConfig is what a Registrar works with. All fields are required.
type RegistrarConfig struct {
	Dir      string // where the kubelet looks for sockets
	Name     string // the driver's
	Endpoint string // path of the CSI socket as the kubelet sees it
	Log      logr.Logger
	// Registered hears whether the kubelet has registered the driver, each time that this may have changed.
	Registered func(bool)
}

// path returns the path of the registration socket. node-driver-registrar uses the same name, so
// only one of both can register the driver.
func (c RegistrarConfig) path() string { return filepath.Join(c.Dir, c.Name+"-reg.sock") }

// CheckDir returns why the driver cannot be registered in dir.
func (c RegistrarConfig) CheckDir() error {
	if !filepath.IsAbs(c.Dir) {
		return fmt.Errorf("registration directory %q is not an absolute path", c.Dir)
	}
	if err := socket.CheckPath(c.path()); err != nil {
		return fmt.Errorf("registration socket %w", err)
	}
	return nil
}

// CheckEndpoint returns why the kubelet cannot call the CSI socket at its path.
func (c RegistrarConfig) CheckEndpoint() error {
	if !filepath.IsAbs(c.Endpoint) {
		return fmt.Errorf("CSI socket for the kubelet %q is not an absolute path", c.Endpoint)
	}
	if err := socket.CheckPath(c.Endpoint); err != nil {
		return fmt.Errorf("CSI socket for the kubelet %w", err)
	}
	return nil
}

// pace sets the intervals of a Registrar.
type pace struct {
	look     time.Duration // between two looks at the socket
	refusals retry.Backoff
	patience time.Duration // how long the kubelet may be silent before the log mentions it
}

var usualPace = pace{
	look: 5 * time.Second, refusals: retry.Backoff{First: 5 * time.Second, Longest: 2 * time.Minute}, patience: time.Minute,
}

// Registrar keeps the driver registered, and answers the kubelet. A nil one stands for a driver
// that a sidecar registers.
type Registrar struct {
	registerapi.UnimplementedRegistrationServer
	cfg  RegistrarConfig
	pace pace
	// said delivers why the kubelet refuses the driver, nil when it has registered it.
	said  chan error
	stop  context.CancelFunc
	ended chan struct{}
	// anew asks for a new socket.
	anew chan struct{}

	mu      sync.Mutex
	missing error // why the driver is not registered; nil when it is
}

var (
	// errNotAsked: nothing is wrong, but the kubelet has not come yet.
	errNotAsked = errors.New("the kubelet has not registered the driver yet")
	errGone     = errors.New("the registration socket was removed")
)

// Register opens the registration socket. The CSI socket must be served already, because the
// kubelet calls it at once.
func Register(cfg RegistrarConfig) (*Registrar, error) { return register(cfg, usualPace) }

func register(cfg RegistrarConfig, p pace) (*Registrar, error) {
	if err := errors.Join(cfg.CheckDir(), cfg.CheckEndpoint()); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Registrar{cfg: cfg, pace: p, said: make(chan error), stop: stop, ended: make(chan struct{}), anew: make(chan struct{}, 1)}
	o, err := r.open()
	if err != nil {
		stop()
		return nil, err
	}
	cfg.Log.Info("waiting for the kubelet to register the driver", "socket", cfg.path(), "endpoint", cfg.Endpoint)
	go r.run(ctx, o)
	return r, nil
}

// Registered returns nil when the kubelet has registered the driver, else why not.
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
	r.cfg.Registered(err == nil)
}

// Again makes the kubelet register the driver anew, and so ask for what has changed: it asks a driver what it is, and
// where its volumes can be, only then. It does not wait for that.
func (r *Registrar) Again() {
	if r == nil {
		return
	}
	select {
	case r.anew <- struct{}{}:
	default: // it will be made anew anyway
	}
}

// Stop removes the socket, so that the kubelet unregisters the driver. Call it once.
func (r *Registrar) Stop() {
	if r == nil {
		return
	}
	r.stop()
	<-r.ended
}

// run keeps the socket open until ctx ends.
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

// attend returns when the socket must be made anew or ctx ends. It counts refusals in a row.
func (r *Registrar) attend(ctx context.Context, o *opening, refusals int) int {
	log := r.cfg.Log.WithValues("socket", r.cfg.path())
	look := time.NewTicker(r.pace.look)
	defer look.Stop()
	silent := time.After(r.pace.patience)
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return refusals
		case err := <-r.said:
			silent = nil
			switch {
			case err == nil:
				log.Info("registered with the kubelet")
				again, refusals = nil, 0
			case again == nil: // the kubelet may retry by itself: that is the same refusal
				refusals++
				wait := r.pace.refusals.After(refusals)
				log.Error(err, "not registered, making the socket anew", "in", duration.Format(wait))
				again = time.After(wait)
			}
		case <-again:
			return refusals
		case <-r.anew:
			log.Info("making the registration socket anew, for the kubelet to ask again what the driver is")
			return refusals
		case <-silent:
			log.Error(errNotAsked, "check that this is the kubelet's directory plugins_registry, and mounted into the container",
				logkeys.Directory, r.cfg.Dir)
		case err := <-o.failed:
			log.Error(err, "making the registration socket anew")
			return refusals
		case <-look.C:
			if !o.InPlace() {
				log.Error(errGone, "making the registration socket anew")
				return refusals
			}
		}
	}
}

// reopen makes the socket anew as soon as that is possible; it returns nil when ctx ends first.
func (r *Registrar) reopen(ctx context.Context) *opening {
	look := time.NewTicker(r.pace.look)
	defer look.Stop()
	reported := ""
	for ctx.Err() == nil {
		o, err := r.open()
		if err == nil {
			return o
		}
		r.setMissing(err)
		if err.Error() != reported { // each cause is logged once
			reported = err.Error()
			r.cfg.Log.Error(err, "not registered, trying again until it works", logkeys.Interval, duration.Format(r.pace.look))
		}
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
	return nil
}

// versions are the driver's versions of CSI. The kubelet reads the major number alone.
var versions = []string{"1.0.0"}

// opening is an open registration socket.
type opening struct {
	*socket.Listener
	server *grpc.Server
	failed <-chan error
}

// open opens the socket. From then on the kubelet decides whether the driver is registered.
func (r *Registrar) open() (*opening, error) {
	l, err := socket.Listen(r.cfg.path())
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: the directory behind a mount was removed, which cannot be undone inside a container; restart the pod", err)
	}
	if err != nil {
		return nil, fmt.Errorf("open the registration socket: %w", err)
	}
	r.setMissing(errNotAsked)
	// The kubelet's answer is handled before the socket is made anew.
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	registerapi.RegisterRegistrationServer(server, r)
	failed := make(chan error, 1)
	go func() {
		if err := server.Serve(l); err != nil {
			failed <- fmt.Errorf("serve on %s: %w", r.cfg.path(), err)
		}
	}()
	return &opening{Listener: l, server: server, failed: failed}, nil
}

// close removes the socket and breaks off running requests.
func (o *opening) close() {
	o.server.Stop()
	_ = o.Close() // Stop does not close it if Serve has not begun
}

// GetInfo returns the driver's name and the path of its CSI socket.
func (r *Registrar) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	cfg := r.cfg
	cfg.Log.V(1).Info("the kubelet asks for the driver's name", "socket", cfg.path())
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: cfg.Name, Endpoint: cfg.Endpoint, SupportedVersions: versions}, nil
}

// NotifyRegistrationStatus receives whether the kubelet has registered the driver.
func (r *Registrar) NotifyRegistrationStatus(
	ctx context.Context, m *registerapi.RegistrationStatus,
) (*registerapi.RegistrationStatusResponse, error) {
	var refusal error
	if !m.PluginRegistered {
		refusal = fmt.Errorf("the kubelet refuses the driver: %s", m.Error)
	}
	r.setMissing(refusal)
	select {
	case r.said <- refusal:
		return &registerapi.RegistrationStatusResponse{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
