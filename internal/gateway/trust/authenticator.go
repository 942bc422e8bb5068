package trust

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
)

// The API server says here whom to trust.
const (
	configNamespace = metav1.NamespaceSystem
	configName      = "extension-apiserver-authentication"
)

const (
	// readLimit bounds one attempt to read the ConfigMap.
	readLimit = 10 * time.Second
)

// reading are the waits between attempts.
var reading = retry.Backoff{First: time.Second, Longest: 15 * time.Second}

// AuthenticatorConfig is what an Authenticator works with. Both fields are required.
type AuthenticatorConfig struct {
	Client kubernetes.Interface
	Log    logr.Logger
}

func (c AuthenticatorConfig) check() error {
	switch {
	case c.Client == nil:
		return errors.New("trust: AuthenticatorConfig.Client is missing")
	case c.Log.GetSink() == nil:
		return errors.New("trust: AuthenticatorConfig.Log is missing")
	}
	return nil
}

// Authenticator knows who asks. Its methods may be called from several goroutines.
type Authenticator struct {
	cfg AuthenticatorConfig
	// state is nil until the ConfigMap has been read.
	state atomic.Pointer[state]
	ended sync.WaitGroup
}

// state is whose certificates are trusted, or why none are.
type state struct {
	*trusted
	// refused is set in place of trusted.
	refused error
}

// NewAuthenticator returns an Authenticator that accepts no client until Start.
func NewAuthenticator(cfg AuthenticatorConfig) (*Authenticator, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Authenticator{cfg: cfg}, nil
}

// Start reads whom to trust, and from then on watches it until ctx ends. It waits for an API server
// that does not answer. It fails if what the API server says is unusable or unsafe: then to start
// again later is all that helps.
func (a *Authenticator) Start(ctx context.Context) error {
	config, err := a.read(ctx)
	if err != nil {
		return err
	}
	t, err := parse(config)
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s says whom the gateway shall believe, but %w", configNamespace, configName, err)
	}
	a.believe(t)

	informer := coreinformers.NewFilteredConfigMapInformer(a.cfg.Client, configNamespace, 0, cache.Indexers{},
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, configName).String()
		})
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    a.changed,
		UpdateFunc: func(_, object any) { a.changed(object) },
		DeleteFunc: func(any) {
			a.cfg.Log.Info("The ConfigMap that says whom to trust is gone; what it said last stays in force",
				logkeys.Namespace, configNamespace, "configMap", configName)
		},
	}); err != nil {
		return fmt.Errorf("watching ConfigMap %s/%s: %w", configNamespace, configName, err)
	}
	if err := informer.SetWatchErrorHandlerWithContext(logErrors(a.cfg.Log, "ConfigMap "+configNamespace+"/"+configName)); err != nil {
		return fmt.Errorf("watching ConfigMap %s/%s: %w", configNamespace, configName, err)
	}
	a.ended.Go(func() { informer.RunWithContext(ctx) })
	return nil
}

// Wait returns when all has ended that Start has begun.
func (a *Authenticator) Wait() {
	a.ended.Wait()
}

// read returns the ConfigMap as soon as the API server gives it away, or the error of ctx.
func (a *Authenticator) read(ctx context.Context) (*corev1.ConfigMap, error) {
	for failures := 1; ; failures++ {
		limited, cancel := context.WithTimeout(ctx, readLimit)
		config, err := a.cfg.Client.CoreV1().ConfigMaps(configNamespace).Get(limited, configName, metav1.GetOptions{})
		cancel()
		if err == nil {
			return config, nil
		}
		wait := reading.After(failures)
		hint := "The API server does not say whom to trust; trying again"
		if apierrors.IsForbidden(err) {
			hint = "The gateway may not read whom to trust: its ServiceAccount needs a RoleBinding in kube-system " +
				"to the Role extension-apiserver-authentication-reader; trying again"
		}
		a.cfg.Log.Info(hint, logkeys.Cause, err.Error(), logkeys.Interval, wait.String())
		if err := retry.Pause(ctx, wait); err != nil {
			return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", configNamespace, configName, err)
		}
	}
}

// changed takes over what the ConfigMap says now. If that is damaged, what it said before stays in
// force; if it is unsafe, no client is accepted until it has been corrected.
func (a *Authenticator) changed(object any) {
	config, ok := object.(*corev1.ConfigMap)
	if !ok || config.Name != configName || config.Namespace != configNamespace {
		return
	}
	t, err := parse(config)
	switch {
	case err == nil:
		a.believe(t)
	case errors.Is(err, errUnsafe):
		a.state.Store(&state{refused: err})
		a.cfg.Log.Error(err, "All requests are refused until the request-header configuration of the API server is corrected")
	default:
		a.cfg.Log.Error(err, "The ConfigMap that says whom to trust is damaged; what it said last stays in force",
			logkeys.Namespace, configNamespace, "configMap", configName)
	}
}

// believe puts a state into force.
func (a *Authenticator) believe(t *trusted) {
	before := a.state.Swap(&state{trusted: t})
	if before == nil || before.trusted == nil || !before.roots.Equal(t.roots) || !slices.Equal(before.names, t.names) {
		a.cfg.Log.Info("Requests are believed that come with a certificate of these authorities",
			"authorities", t.subjects, "allowedNames", t.names)
	}
}

// Ready returns nil if requests can be authenticated, and why not otherwise.
func (a *Authenticator) Ready() error {
	_, err := a.now()
	return err
}

// now returns whom to believe now.
func (a *Authenticator) now() (*trusted, error) {
	switch s := a.state.Load(); {
	case s == nil:
		return nil, fmt.Errorf("%w: it has not said yet whom to trust", ErrUnavailable)
	case s.refused != nil:
		return nil, &UnauthenticatedError{Reason: s.refused.Error()}
	default:
		return s.trusted, nil
	}
}

// TLSConfig returns the configuration of the listener for the API server. A client may show no
// certificate, as the kubelet's probes do, but then Authenticate refuses it; one that the
// request-header CA has not issued ends the handshake.
func (a *Authenticator) TLSConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	base := &tls.Config{
		GetCertificate: certificate,
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		ClientAuth:     tls.VerifyClientCertIfGiven,
		// An empty pool trusts no client; nil would be the system's.
		ClientCAs: x509.NewCertPool(),
		// A resumed session would bring the trust of its day.
		SessionTicketsDisabled: true,
	}
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current := base.Clone()
		if t, err := a.now(); err == nil {
			current.ClientCAs = t.roots
		}
		return current, nil
	}
	return base
}

// Authenticate returns the user on whose behalf the API server asks. It removes the headers that
// say so from the request. The error is an *UnauthenticatedError or wraps ErrUnavailable.
func (a *Authenticator) Authenticate(r *http.Request) (user.Info, error) {
	t, err := a.now()
	if err != nil {
		return nil, err
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, &UnauthenticatedError{Reason: "no client certificate: ask through the Kubernetes API server"}
	}
	// The chain is verified for each request, because the CA may have been replaced since the handshake.
	response, ok, err := t.request.AuthenticateRequest(r)
	switch {
	case err != nil:
		return nil, &UnauthenticatedError{Reason: "the client certificate is not one of the Kubernetes API server: " + err.Error()}
	case !ok:
		return nil, &UnauthenticatedError{Reason: "the request names no user"}
	}
	return response.User, nil
}
