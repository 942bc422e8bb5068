package trust

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/katbox/katbox/internal/lib/retry"
)

// What rights are about.
const (
	group    = "katbox.io"
	version  = "v1alpha1"
	resource = "retainedvolumes"
)

const (
	// keepAnswer is how long an answer is used, counted from when the question was put: how long a
	// right outlives its withdrawal.
	keepAnswer = 10 * time.Second
	// mostAnswers bounds the memory of answers: 4,096 of some 300 bytes.
	mostAnswers = 4096
	// reviewLimit bounds a question with its repetitions, because short requests are answered in 5 s.
	reviewLimit = 4 * time.Second
	// reviewAttempts and reviewRetry: an API server that restarts drops a connection, and another
	// answers.
	reviewAttempts = 3
	reviewRetry    = 200 * time.Millisecond
)

// Attributes are what a user wants to do with retained volumes.
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

// AuthorizerConfig is what an Authorizer works with. The field is required.
type AuthorizerConfig struct {
	Reviews authorizationclient.SubjectAccessReviewInterface
}

// Authorizer knows who may do what. Its methods may be called from several goroutines.
type Authorizer struct {
	cfg     AuthorizerConfig
	answers *cache.LRUExpireCache
	asking  flights[question, answer]
}

// question is a digest of all that an answer depends on.
type question [sha256.Size]byte

type answer struct {
	allowed bool
	reason  string
}

// NewAuthorizer returns an Authorizer.
func NewAuthorizer(cfg AuthorizerConfig) (*Authorizer, error) {
	if cfg.Reviews == nil {
		return nil, errors.New("trust: AuthorizerConfig.Reviews is missing")
	}
	return &Authorizer{cfg: cfg, answers: cache.NewLRUExpireCache(mostAnswers)}, nil
}

// Allowed reports whether the user may, and if not, what the API server gave as the reason, which
// may be nothing. An answer is at most 10 s old. An error, which wraps ErrUnavailable or is that of
// ctx, says that there is no answer.
func (z *Authorizer) Allowed(ctx context.Context, who user.Info, what Attributes) (bool, string, error) {
	if who == nil || who.GetName() == "" && len(who.GetGroups()) == 0 {
		return false, "the request names no user", nil
	}
	q := questionOf(who, what)
	if kept, found := z.answers.Get(q); found {
		a := kept.(answer)
		return a.allowed, a.reason, nil
	}
	a, err := z.asking.do(ctx, q, reviewLimit, func(ctx context.Context) (answer, error) {
		asked := time.Now()
		a, err := z.review(ctx, specOf(who, what))
		if err != nil {
			return answer{}, fmt.Errorf("%w: asked whether user %q may %s %s: %w", ErrUnavailable, who.GetName(), what.Verb, resource, err)
		}
		if left := keepAnswer - time.Since(asked); left > 0 {
			z.answers.Add(q, a, left)
		}
		return a, nil
	})
	return a.allowed, a.reason, err
}

// review asks the API server, again if it could not answer.
func (z *Authorizer) review(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (answer, error) {
	for attempt := 1; ; attempt++ {
		review, err := z.cfg.Reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		if err == nil {
			status := review.Status
			a := answer{allowed: status.Allowed && !status.Denied, reason: status.Reason}
			if !a.allowed && a.reason == "" {
				a.reason = status.EvaluationError
			}
			return a, nil
		}
		if attempt == reviewAttempts || final(err) {
			return answer{}, err
		}
		if retry.Pause(ctx, reviewRetry) != nil {
			return answer{}, err
		}
	}
}

// final reports whether the API server has understood the question and will not answer it.
func final(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
}

// specOf puts the question into the API server's words.
func specOf(who user.Info, what Attributes) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User:   who.GetName(),
		UID:    who.GetUID(),
		Groups: who.GetGroups(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: group, Version: version, Resource: resource, Subresource: what.Subresource,
			Verb: what.Verb, Namespace: what.Namespace, Name: what.Name,
		},
	}
	if extra := who.GetExtra(); len(extra) > 0 {
		spec.Extra = make(map[string]authorizationv1.ExtraValue, len(extra))
		for key, values := range extra {
			spec.Extra[key] = values
		}
	}
	return spec
}

// questionOf tells questions apart. Each string and each list goes in with its length, so that no
// two questions are written alike; JSON would write all bytes that are not UTF-8 alike.
func questionOf(who user.Info, what Attributes) question {
	var text []byte
	list := func(values ...string) {
		text = binary.AppendUvarint(text, uint64(len(values)))
		for _, value := range values {
			text = binary.AppendUvarint(text, uint64(len(value)))
			text = append(text, value...)
		}
	}
	list(what.Verb, what.Namespace, what.Name, what.Subresource, who.GetName(), who.GetUID())
	list(who.GetGroups()...)
	extra := who.GetExtra()
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		list(key)
		list(extra[key]...)
	}
	return sha256.Sum256(text)
}
