package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/link/satoken"
)

const (
	// apiService is the object that makes the API server ask the gateway.
	apiService = "v1alpha1.katbox.io"
	// continueKey is where the key of continue tokens is in the Secret that the replicas share.
	continueKey = "continue.key"
	// callLimit bounds one call of the API server at the start, retryInterval is the time between two.
	callLimit     = 10 * time.Second
	retryInterval = 2 * time.Second
)

// clients reach the API server.
type clients struct {
	core     kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

// connect makes the clients. They ask nothing yet.
func connect(kubeconfig string) (c clients, err error) {
	config, err := clientConfig(kubeconfig)
	if err != nil {
		return c, err
	}
	config.UserAgent = "katbox-gateway/" + version
	// Each package bounds how much it asks; a common limit would let one hold up the others.
	config.QPS = -1
	typed := rest.CopyConfig(config)
	typed.ContentType, typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	var failed [3]error
	c.core, failed[0] = kubernetes.NewForConfig(typed)
	c.dynamic, failed[1] = dynamic.NewForConfig(config)
	c.metadata, failed[2] = metadata.NewForConfig(metadata.ConfigFor(config))
	return c, errors.Join(failed[:]...)
}

// keysTypes are the types of the documents that satoken reads. The API server refuses who accepts another type than that of its keys.
const keysTypes = "application/json, application/jwk-set+json"

// read reads a path that is no object's.
func (c clients) read(ctx context.Context, path string) ([]byte, error) {
	return c.core.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", keysTypes).DoRaw(ctx)
}

// readTokens reads the daemons' tokens for the hub, which knows no keys.
type readTokens struct{ *satoken.Keys }

// Read implements [hub.Tokens].
func (t readTokens) Read(ctx context.Context, token string) (hub.Identity, error) {
	claims, err := t.Keys.Read(ctx, token)
	return hub.Identity(claims), err
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("this is no pod with a ServiceAccount token: %w; give --kubeconfig", err)
	}
	return config, nil
}

// serverConfig is that of a port that asks its clients for no certificate.
func serverConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate}
}

func listen(ctx context.Context, endpoint string) (net.Listener, error) {
	var l net.ListenConfig
	return l.Listen(ctx, "tcp", endpoint)
}

// sharedKey returns the key that all replicas seal continue tokens with: the next page of a list may
// come from another one. The first replica makes it; of two at once the first wins. It waits for an API
// server that does not answer.
func sharedKey(ctx context.Context, secrets core.SecretInterface, name string, log logr.Logger) ([]byte, error) {
	for logged := ""; ; {
		key, err := trySharedKey(ctx, secrets, name)
		switch {
		case err == nil:
			return key, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("waiting for the key of continue tokens: %w", ctx.Err())
		case apierrors.IsConflict(err):
			continue // another replica was faster
		}
		if why := err.Error(); why != logged {
			logged = why
			log.Info("cannot read or create the key of continue tokens; retrying", "secret", name, logkeys.Cause, why)
		}
		waiting, cancel := context.WithTimeout(ctx, retryInterval)
		<-waiting.Done()
		cancel()
	}
}

func trySharedKey(ctx context.Context, secrets core.SecretInterface, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if key := secret.Data[continueKey]; len(key) == fleet.KeySize {
		return key, nil
	}
	key := make([]byte, fleet.KeySize)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	changed := secret.DeepCopy()
	if changed.Data == nil {
		changed.Data = map[string][]byte{}
	}
	changed.Data[continueKey] = key
	// With the resource version of what was read, so that a key of another replica is not replaced.
	if _, err := secrets.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	return key, nil
}

// countedReviews counts SubjectAccessReviews.
type countedReviews struct {
	authorizationclient.SubjectAccessReviewInterface
	counted *gatewaymetrics.Metrics
}

// Create asks the API server.
func (r countedReviews) Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, o metav1.CreateOptions,
) (*authorizationv1.SubjectAccessReview, error) {
	answer, err := r.SubjectAccessReviewInterface.Create(ctx, review, o)
	switch {
	case err != nil:
		r.counted.AccessReviewed(gatewaymetrics.Failed)
	case answer.Status.Allowed:
		r.counted.AccessReviewed(gatewaymetrics.Accepted)
	default:
		r.counted.AccessReviewed(gatewaymetrics.Refused)
	}
	return answer, err
}
