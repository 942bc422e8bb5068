package trust

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
)

// AuthenticatorConfig is what an Authenticator works with. All fields are required.
type AuthenticatorConfig struct {
	Client kubernetes.Interface
	Log    logr.Logger
}

// Authenticator knows who asks. Its methods may be called from several goroutines.
type Authenticator struct{ cfg AuthenticatorConfig }

// NewAuthenticator returns an Authenticator that believes nobody until Start.
func NewAuthenticator(cfg AuthenticatorConfig) (*Authenticator, error) {
	return &Authenticator{cfg}, nil
}

// Start reads whom to trust, and from then on watches it until ctx ends. It waits for an API server
// that does not answer, and fails where no safe answer can be given.
func (a *Authenticator) Start(ctx context.Context) error { return errors.ErrUnsupported }

// Wait returns when all has ended that Start has begun.
func (a *Authenticator) Wait() {}

// Ready returns nil if requests can be authenticated, and why not otherwise.
func (a *Authenticator) Ready() error { return ErrUnavailable }

// TLSConfig returns the configuration of the listener for the API server. A client may show no
// certificate, as the kubelet's probes do, but then Authenticate refuses it; one that the
// request-header CA has not issued ends the handshake.
func (a *Authenticator) TLSConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return nil
}

// Authenticate returns the user on whose behalf the API server asks. It removes the headers that
// say so from the request. The error is an *UnauthenticatedError or wraps ErrUnavailable.
func (a *Authenticator) Authenticate(r *http.Request) (user.Info, error) {
	return nil, ErrUnavailable
}
