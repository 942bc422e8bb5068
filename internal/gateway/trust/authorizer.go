package trust

import (
	"context"

	"k8s.io/apiserver/pkg/authentication/user"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// Attributes are what somebody wants to do with retained volumes.
type Attributes struct {
	// Verb is get, list, delete or patch.
	Verb string
	// Namespace is empty for all namespaces.
	Namespace string
	// Name is empty for a list.
	Name string
	// Subresource is files, log, or empty.
	Subresource string
}

// AuthorizerConfig is what an Authorizer works with. All fields are required.
type AuthorizerConfig struct {
	Reviews authorizationv1.SubjectAccessReviewInterface
}

// Authorizer knows who may do what. Its methods may be called from several goroutines.
type Authorizer struct{ cfg AuthorizerConfig }

// NewAuthorizer returns an Authorizer.
func NewAuthorizer(cfg AuthorizerConfig) (*Authorizer, error) { return &Authorizer{cfg}, nil }

// Allowed reports whether the user may, and if he may not perhaps why. An answer is as old as 10 s
// at most. An error, which wraps ErrUnavailable or is that of ctx, says that there is no answer.
func (z *Authorizer) Allowed(ctx context.Context, who user.Info, what Attributes) (bool, string, error) {
	return false, "", ErrUnavailable
}
