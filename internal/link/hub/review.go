package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authentication "k8s.io/api/authentication/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	client "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// ErrToken: the API server does not accept the token.
var ErrToken = errors.New("the token is not accepted")

// Identity is whose a token is.
type Identity struct {
	Namespace, ServiceAccount string
	// ServiceAccountUID tells it from a later one of its name.
	ServiceAccountUID string
	// Pod and PodUID are the pod that the token is bound to; empty if it is bound to none.
	Pod, PodUID string
	// Node is the pod's node. API servers before 1.30 do not say it.
	Node string
}

// Reviewer identifies the owner of a token. It returns ErrToken if the token is not valid, and another error if this
// cannot be found out now.
type Reviewer interface {
	Review(ctx context.Context, token string) (Identity, error)
}

// TokenReviews asks the API server.
type TokenReviews struct {
	client   client.TokenReviewInterface
	audience string
}

// NewTokenReviews returns a Reviewer of tokens for the audience. The client should not have a limit
// of its own: the registry has one.
func NewTokenReviews(c client.TokenReviewInterface, audience string) *TokenReviews {
	return &TokenReviews{client: c, audience: audience}
}

// Review asks the API server whose the token is.
func (t *TokenReviews) Review(ctx context.Context, token string) (Identity, error) {
	review, err := t.client.Create(ctx, &authentication.TokenReview{
		Spec: authentication.TokenReviewSpec{Token: token, Audiences: []string{t.audience}},
	}, meta.CreateOptions{})
	if err != nil {
		return Identity{}, fmt.Errorf("create a TokenReview: %w", err)
	}
	status := review.Status
	switch {
	case !status.Authenticated:
		return Identity{}, fmt.Errorf("%w: the API server says %q", ErrToken, status.Error)
	// An API server that does not know audiences accepts a token of any.
	case !slices.Contains(status.Audiences, t.audience):
		return Identity{}, fmt.Errorf("%w: it is for the audiences %q, not for %q", ErrToken, status.Audiences, t.audience)
	}
	namespace, name, err := serviceaccount.SplitUsername(status.User.Username)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: it is that of %q, which is no ServiceAccount", ErrToken, status.User.Username)
	}
	return Identity{
		Namespace: namespace, ServiceAccount: name, ServiceAccountUID: status.User.UID,
		Pod: only(status.User.Extra[serviceaccount.PodNameKey]), PodUID: only(status.User.Extra[serviceaccount.PodUIDKey]),
		Node: only(status.User.Extra[serviceaccount.NodeNameKey]),
	}, nil
}

// only returns the value if there is exactly one.
func only(values []string) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}
