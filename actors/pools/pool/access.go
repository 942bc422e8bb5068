package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/controller/onarray"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// Keys of the Secrets that a Pool names.
const (
	tokenKey = "token"
	caKey    = "ca.crt"
)

var errNoKey = errors.New("has no key")

// accessOf reads how the array of a pool is reached. The Secrets are read at each probe, so that a new
// token is used from the next one on.
func accessOf(ctx context.Context, e *env.Environment, p *v1alpha1.Pool) (env.Access, error) {
	if on := p.Spec.Local; on != nil {
		at, err := actors.Ask(ctx, e.Root, e.Supervisor(), &poolmessages.FindDisk{UUID: on.UUID, Last: p.Status.Local.Node})
		return env.Access{Pool: p.Name, Disk: at}, err
	}
	spec := p.Spec.VPSA
	a := env.Access{Pool: p.Name, Endpoint: spec.Endpoint, Insecure: spec.InsecureSkipVerify, PoolID: spec.Pool}
	if spec.RequestTimeout != nil {
		a.Timeout = spec.RequestTimeout.Duration
	}
	token, err := secretOf(ctx, e, spec.CredentialsSecretRef.Name, tokenKey)
	if err != nil {
		return a, fmt.Errorf("%w: %w", array.ErrCredentials, err)
	}
	a.Token = string(bytes.TrimSpace(token))
	if spec.CABundleSecretRef != nil {
		if a.CA, err = secretOf(ctx, e, spec.CABundleSecretRef.Name, caKey); err != nil {
			return a, fmt.Errorf("%w: %w", array.ErrTLS, err)
		}
	}
	return a, nil
}

// secretOf returns what a Secret in the controller's namespace has under a key.
func secretOf(ctx context.Context, e *env.Environment, name, key string) ([]byte, error) {
	var s corev1.Secret
	if err := e.Resources.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, &s); err != nil {
		return nil, fmt.Errorf("read the Secret %s/%s: %w", e.Namespace, name, err)
	}
	if len(s.Data[key]) == 0 {
		return nil, fmt.Errorf("the Secret %s/%s %w %q", e.Namespace, name, errNoKey, key)
	}
	return s.Data[key], nil
}

// clientOf makes the client of an array, or of a pool on a node.
func clientOf(e *env.Environment, a env.Access) (array.Array, error) {
	if a.Disk.On != nil {
		return onarray.New(a.Disk.Node, a.Disk.Version, a.Disk.UUID, a.Disk.On), nil
	}
	return e.Connect(a)
}
