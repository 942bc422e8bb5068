package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/katbox/katbox/internal/socket"
)

// versions are the driver's versions of CSI in the kubelet's format. The kubelet
// reads the major number alone.
var versions = []string{"1.0.0"}

// opening is an open registration socket.
type opening struct {
	*socket.Listener
	server *grpc.Server
	failed <-chan error
}

// open opens the socket. From then on the kubelet decides whether the driver is
// registered.
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
	registerapi.RegisterRegistrationServer(server, service{r: r})
	failed := make(chan error, 1)
	go func() {
		if err := server.Serve(l); err != nil {
			failed <- fmt.Errorf("serve on %s: %w", r.cfg.path(), err)
		}
	}()
	return &opening{Listener: l, server: server, failed: failed}, nil
}

// close removes the socket and breaks off running requests: the kubelet sees it
// vanish in either case.
func (o *opening) close() {
	o.server.Stop()
	_ = o.Close() // Stop does not close it if Serve has not begun
}

// service answers the kubelet.
type service struct {
	registerapi.UnimplementedRegistrationServer
	r *Registrar
}

// GetInfo returns the driver's name and the path of its CSI socket.
func (s service) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	cfg := s.r.cfg
	cfg.Log.V(1).Info("the kubelet asks for the driver's name", "socket", cfg.path())
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: cfg.Name, Endpoint: cfg.Endpoint, SupportedVersions: versions}, nil
}

// NotifyRegistrationStatus receives whether the kubelet has registered the driver.
func (s service) NotifyRegistrationStatus(
	ctx context.Context, m *registerapi.RegistrationStatus,
) (*registerapi.RegistrationStatusResponse, error) {
	var refusal error
	if !m.PluginRegistered {
		refusal = fmt.Errorf("the kubelet refuses the driver: %s", m.Error)
	}
	s.r.setMissing(refusal)
	select {
	case s.r.said <- refusal:
		return &registerapi.RegistrationStatusResponse{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
