package satoken

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// ErrUnclear: this package cannot tell whose the token is. The API server can.
var ErrUnclear = errors.New("whose the token is cannot be told by the cluster's keys")

// mostToken bounds a token. Those of pods have some 1,200 bytes.
const mostToken = 8 << 10

// algorithms are those that API servers sign with.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

// Claims are what a token says of its owner. No field is empty.
type Claims struct {
	Namespace, ServiceAccount, ServiceAccountUID string
	Pod, PodUID                                  string
	Node                                         string
}

// reference names an object.
type reference struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// private are the claims that Kubernetes adds.
type private struct {
	Kubernetes struct {
		Namespace      string     `json:"namespace"`
		ServiceAccount reference  `json:"serviceaccount"`
		Pod            reference  `json:"pod"`
		Node           reference  `json:"node"`
		Secret         *reference `json:"secret"`
	} `json:"kubernetes.io"`
}

// Read returns what a valid token says. Its error wraps ErrUnclear if that cannot be told.
func (k *Keys) Read(ctx context.Context, token string) (Claims, error) {
	claims, err := k.verified(ctx, token)
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrUnclear, err)
	}
	return claims, nil
}

func (k *Keys) verified(ctx context.Context, token string) (Claims, error) {
	if len(token) > mostToken {
		return Claims{}, fmt.Errorf("it has %d bytes", len(token))
	}
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return Claims{}, err
	}
	header := parsed.Headers[0] // the compact form has one
	key, issuer, err := k.key(ctx, header.KeyID)
	if err != nil {
		return Claims{}, err
	}
	if key.Algorithm != header.Algorithm {
		return Claims{}, fmt.Errorf("it is signed with %s, and its key is one for %q", header.Algorithm, key.Algorithm)
	}
	var public jwt.Claims
	var more private
	if err := parsed.Claims(key.Key, &public, &more); err != nil {
		return Claims{}, err
	}
	if public.Expiry == nil || public.NotBefore == nil {
		return Claims{}, errors.New("it does not say when it is valid")
	}
	s := more.Kubernetes
	err = public.ValidateWithLeeway(jwt.Expected{
		Issuer: issuer, AnyAudience: jwt.Audience{k.Audience}, Time: time.Now(),
		Subject: "system:serviceaccount:" + s.Namespace + ":" + s.ServiceAccount.Name,
	}, 0)
	if err != nil {
		return Claims{}, err
	}
	claims := Claims{
		Namespace: s.Namespace, ServiceAccount: s.ServiceAccount.Name, ServiceAccountUID: s.ServiceAccount.UID,
		Pod: s.Pod.Name, PodUID: s.Pod.UID, Node: s.Node.Name,
	}
	if slices.Contains([]string{
		claims.Namespace, claims.ServiceAccount, claims.ServiceAccountUID, claims.Pod, claims.PodUID, claims.Node,
	}, "") {
		return Claims{}, errors.New("it does not name namespace, ServiceAccount, pod and node")
	}
	if s.Secret != nil {
		return Claims{}, errors.New("it is bound to a Secret")
	}
	return claims, nil
}
