package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/katbox/katbox/internal/node/handlers"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/ops"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// The values of --admin-socket that are no path.
	autoSocket = "auto"
	noSocket   = "none"
	// adminName is the file of the admin socket in the directory of the CSI socket.
	adminName = "admin.sock"

	// silentAdmins and askingAdmins bound the connections to the admin socket, some 20 KiB each. 32
	// streams and 16 lists may run; the others are for requests that are about to be refused.
	silentAdmins = 256
	askingAdmins = 256
	// readersTimeout is how long streams may go on when the daemon stops; then they are cut.
	readersTimeout = time.Second
	// handlersInterval is the time between two looks whether all requests have ended.
	handlersInterval = 10 * time.Millisecond
)

// adminPath returns the path of the admin socket; it is empty if there is none.
func (o options) adminPath() string {
	switch o.adminSocket {
	case noSocket:
		return ""
	case autoSocket:
		endpoint, _ := socket.Path(o.endpoint)
		return filepath.Join(filepath.Dir(endpoint), adminName)
	}
	return o.adminSocket
}

func (o options) checkAdminSocket() error {
	path := o.adminPath()
	endpoint, err := socket.Path(o.endpoint)
	switch {
	case o.adminSocket == noSocket:
		return nil
	case o.adminSocket == autoSocket && err != nil:
		return err
	case !filepath.IsAbs(path):
		return fmt.Errorf("%q is neither auto nor none, and not an absolute path", path)
	case filepath.Clean(path) == filepath.Clean(endpoint):
		return fmt.Errorf("%q is that of --endpoint; choose another path", path)
	}
	if err := socket.CheckPath(path); err != nil && o.adminSocket != autoSocket {
		return fmt.Errorf("%w; choose another path, or none", err)
	}
	return nil
}

// admin serves retained volumes to root on this node.
type admin struct {
	*instance
	path   string
	server *http.Server
	// running counts the requests that are handled.
	running atomic.Int64
}

// serveAdmin opens the admin socket and serves on it. Pods need it for nothing, so it comes last, and
// a disk without room for it delays nothing.
func (i *instance) serveAdmin(ctx context.Context) error {
	path := i.o.adminPath()
	if path == "" {
		return nil
	}
	if err := socket.CheckPath(path); err != nil {
		i.log.Info("there is no admin socket; --admin-socket can name a shorter path for it", logkeys.Cause, err.Error())
		return nil
	}
	handler, err := i.newHandler(false)
	if err != nil {
		return err
	}
	a := &admin{instance: i, path: path}
	a.server = handlers.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.running.Add(1)
		defer a.running.Add(-1)
		handler.ServeHTTP(w, r)
	}), i.log)
	a.server.ConnState = ops.Changed
	l, err := socket.Listen(path)
	if volume.IsNoSpace(err) {
		i.log.Error(err, "no room for the admin socket, it is made once there is some")
	} else if err != nil {
		return fmt.Errorf("--admin-socket: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	i.onStop(func(stopping context.Context) error {
		cancel()
		a.stop(stopping)
		return nil
	})
	go a.serve(ctx, l)
	return nil
}

// newHandler returns a handler with limits of its own, for the admin socket or for the gateway.
func (i *instance) newHandler(gateway bool) (http.Handler, error) {
	rate, err := parseRate(i.o.readRate)
	if err != nil {
		return nil, err
	}
	return handlers.NewHandler(handlers.Config{
		Volumes: i.volumes(), Node: i.o.nodeID, Space: i.dir.Space, LowPriority: actors.LowPriority, Pace: i.node.Pace,
		Report: i.report, Log: i.log, Metrics: i.counted, Gateway: gateway, ReadRate: rate,
	})
}

// volumes are the inline volumes of the node, and those of deleted claims in its pools.
func (i *instance) volumes() handlers.Joined {
	return handlers.Joined{Inline: i.node, Claims: func() handlers.Claims {
		if l := i.locals.Load(); l != nil && l.started() {
			return l.pools
		}
		return nil
	}}
}

// serve serves on l, which is nil if the socket is still to be made, until the server is stopped. It
// makes the socket anew when it was removed: it is no reason to end the daemon.
func (a *admin) serve(ctx context.Context, l *socket.Listener) {
	for ; ctx.Err() == nil; l = nil {
		if l == nil {
			if l = a.open(ctx); l == nil {
				return
			}
		}
		a.log.Info("serving retained volumes", "socket", a.path)
		looking, end := context.WithCancel(ctx)
		go func() {
			if err := l.Lost(looking, socketInterval); err != nil {
				a.log.Info("the admin socket is made anew", logkeys.Cause, err.Error())
				l.Close()
			}
		}()
		err := a.server.Serve(ops.NewBoundedListener(l, silentAdmins, askingAdmins))
		end()
		if errors.Is(err, http.ErrServerClosed) {
			return
		}
		a.log.V(1).Info("stopped serving on the admin socket", logkeys.Cause, err.Error())
	}
}

// open makes the socket as soon as that is possible. It returns nil when ctx ends.
func (a *admin) open(ctx context.Context) *socket.Listener {
	for logged := ""; ; {
		l, err := socket.Listen(a.path)
		if err == nil {
			return l
		}
		if why := err.Error(); why != logged {
			logged = why
			a.log.Error(err, "cannot make the admin socket, trying again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(roomInterval):
		}
	}
}

// stop ends serving. Streams that do not end soon are cut. No request is handled afterwards, unless
// the disk hangs.
func (a *admin) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readersTimeout)
	defer cancel()
	if err := a.server.Shutdown(ctx); err != nil {
		a.log.Info("readers are cut off", logkeys.Cause, err.Error())
		a.server.Close()
	}
	for waited := time.Duration(0); a.running.Load() > 0; waited += handlersInterval {
		if waited >= readersTimeout {
			a.log.Info("requests on the admin socket are still running", "requests", a.running.Load())
			return
		}
		time.Sleep(handlersInterval)
	}
}
