package registration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/katbox/katbox/internal/socket"
)

// versions are those of CSI that the driver speaks, as the kubelet wants them:
// it looks at the major number alone.
var versions = []string{"1.0.0"}

// opening is the registration socket while it is open.
type opening struct {
	*socket.Listener
	server *grpc.Server
	failed <-chan error
}

// open opens the socket. From then on the kubelet's word counts.
func (r *Registrar) open() (*opening, error) {
	l, err := socket.Listen(r.path())
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: the directory behind a mount was removed, as happens to one of a container; restart the pod", err)
	}
	if err != nil {
		return nil, fmt.Errorf("open the registration socket (--registration-dir): %w", err)
	}
	r.setMissing(errNotAsked)
	// What the kubelet has said is known before the socket is made anew.
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	registerapi.RegisterRegistrationServer(server, service{r: r})
	failed := make(chan error, 1)
	go func() {
		if err := server.Serve(l); err != nil {
			failed <- fmt.Errorf("serve on %s: %w", r.path(), err)
		}
	}()
	return &opening{Listener: l, server: server, failed: failed}, nil
}

// close removes the socket and breaks off what is being said on it: the kubelet
// sees it vanish all the same.
func (o *opening) close() {
	o.server.Stop()
	_ = o.Close() // Stop does not, where Serve had not begun
}

// service answers the kubelet.
type service struct {
	registerapi.UnimplementedRegistrationServer
	r *Registrar
}

// GetInfo says what driver this is and where.
func (s service) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	s.r.Log.V(1).Info("the kubelet asks who this is", "socket", s.r.path())
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: s.r.Name, Endpoint: s.r.Endpoint, SupportedVersions: versions}, nil
}

// NotifyRegistrationStatus is how the kubelet says whether it has registered the
// driver.
func (s service) NotifyRegistrationStatus(ctx context.Context, m *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
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
