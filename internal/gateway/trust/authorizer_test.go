package trust_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/katbox/katbox/internal/gateway/trust"
)

type (
	spec   = authorizationv1.SubjectAccessReviewSpec
	status = authorizationv1.SubjectAccessReviewStatus
)

// reviews plays the API server.
type reviews struct {
	asked  atomic.Int64
	answer func(context.Context, spec) (status, error)
}

func (r *reviews) Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions,
) (*authorizationv1.SubjectAccessReview, error) {
	r.asked.Add(1)
	answer, err := r.answer(ctx, review.Spec)
	if err != nil {
		return nil, err
	}
	return &authorizationv1.SubjectAccessReview{Spec: review.Spec, Status: answer}, nil
}

// authorizer returns an Authorizer and the API server that it asks.
func authorizer(t *testing.T, answer func(context.Context, spec) (status, error)) (*trust.Authorizer, *reviews) {
	t.Helper()
	r := &reviews{answer: answer}
	z, err := trust.NewAuthorizer(trust.AuthorizerConfig{Reviews: r})
	if err != nil {
		t.Fatal(err)
	}
	return z, r
}

func always(s status, err error) func(context.Context, spec) (status, error) {
	return func(context.Context, spec) (status, error) {
		return s, err
	}
}

var (
	carol = &user.DefaultInfo{Name: "carol", UID: "7", Groups: []string{"a", "b"}, Extra: map[string][]string{"k": {"v", "w"}, "l": {"x"}}}
	read  = trust.Attributes{Verb: "get", Namespace: "ci", Name: "n.x", Subresource: "log"}
)

func TestWhatIsAsked(t *testing.T) {
	var got spec
	z, _ := authorizer(t, func(_ context.Context, asked spec) (status, error) {
		got = asked
		return status{Allowed: true}, nil
	})
	if allowed, _, err := z.Allowed(t.Context(), carol, read); err != nil || !allowed {
		t.Fatal(allowed, err)
	}
	want := spec{
		User: "carol", UID: "7", Groups: []string{"a", "b"},
		Extra: map[string]authorizationv1.ExtraValue{"k": {"v", "w"}, "l": {"x"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "ci", Verb: "get", Group: "katbox.io", Version: "v1alpha1", Resource: "retainedvolumes", Subresource: "log", Name: "n.x",
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		answer  status
		allowed bool
		reason  string
	}{
		{status{Allowed: true, Reason: "by a role"}, true, "by a role"},
		{status{}, false, ""},
		{status{Reason: "no role"}, false, "no role"},
		{status{EvaluationError: "no such role"}, false, "no such role"},
		{status{Allowed: true, Denied: true, Reason: "never"}, false, "never"},
	} {
		z, _ := authorizer(t, always(test.answer, nil))
		allowed, reason, err := z.Allowed(t.Context(), carol, read)
		if allowed != test.allowed || reason != test.reason || err != nil {
			t.Errorf("%+v: %v %q %v", test.answer, allowed, reason, err)
		}
	}
}

func TestNobodyMayNothing(t *testing.T) {
	z, r := authorizer(t, always(status{Allowed: true}, nil))
	for _, who := range []user.Info{nil, &user.DefaultInfo{}} {
		if allowed, _, err := z.Allowed(t.Context(), who, read); allowed || err != nil {
			t.Errorf("%v: %v %v", who, allowed, err)
		}
	}
	if n := r.asked.Load(); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

func TestAnswersAreKeptFor10s(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const slow = 2 * time.Second
			z, r := authorizer(t, func(context.Context, spec) (status, error) {
				time.Sleep(slow)
				return status{Allowed: allowed, Reason: "so"}, nil
			})
			ask := func(want int64) {
				t.Helper()
				got, reason, err := z.Allowed(t.Context(), carol, read)
				if got != allowed || reason != "so" || err != nil {
					t.Errorf("%v %q %v", got, reason, err)
				}
				if n := r.asked.Load(); n != want {
					t.Errorf("asked %d times, want %d", n, want)
				}
			}
			ask(1)
			ask(1)
			// An answer is as old as its question.
			time.Sleep(10*time.Second - slow - time.Millisecond)
			ask(1)
			time.Sleep(2 * time.Millisecond)
			ask(2)
		})
	}
}

func TestEachQuestionIsItsOwn(t *testing.T) {
	z, r := authorizer(t, always(status{Allowed: true}, nil))
	someone := func(change func(*user.DefaultInfo)) user.Info {
		u := &user.DefaultInfo{Name: "carol", UID: "7", Groups: []string{"a", "b"}, Extra: map[string][]string{"k": {"v", "w"}, "l": {"x"}}}
		change(u)
		return u
	}
	questions := []struct {
		who  user.Info
		what trust.Attributes
	}{
		{carol, read},
		{carol, trust.Attributes{Verb: "list", Namespace: "ci", Name: "n.x", Subresource: "log"}},
		{carol, trust.Attributes{Verb: "get", Namespace: "", Name: "n.x", Subresource: "log"}},
		{carol, trust.Attributes{Verb: "get", Namespace: "ci", Name: "n.y", Subresource: "log"}},
		{carol, trust.Attributes{Verb: "get", Namespace: "ci", Name: "n.x", Subresource: ""}},
		{carol, trust.Attributes{Verb: "get", Namespace: "cin", Name: ".x", Subresource: "log"}},
		{someone(func(u *user.DefaultInfo) { u.Name = "carol\xfe" }), read},
		{someone(func(u *user.DefaultInfo) { u.Name = "carol\xff" }), read},
		{someone(func(u *user.DefaultInfo) { u.UID = "8" }), read},
		{someone(func(u *user.DefaultInfo) { u.Groups = nil }), read},
		{someone(func(u *user.DefaultInfo) { u.Groups = []string{"ab"} }), read},
		{someone(func(u *user.DefaultInfo) { u.Groups = []string{"a", "b", "c"} }), read},
		{someone(func(u *user.DefaultInfo) { u.Extra = nil }), read},
		{someone(func(u *user.DefaultInfo) { u.Extra["k"] = []string{"v"} }), read},
		{someone(func(u *user.DefaultInfo) { delete(u.Extra, "l") }), read},
		{someone(func(u *user.DefaultInfo) { u.Extra = map[string][]string{"k": {"v", "w"}, "m": {"x"}} }), read},
		{someone(func(u *user.DefaultInfo) { u.Extra = map[string][]string{"k": {"v"}, "l": {"w", "x"}} }), read},
	}
	for range 2 {
		for _, q := range questions {
			if allowed, _, err := z.Allowed(t.Context(), q.who, q.what); !allowed || err != nil {
				t.Fatal(allowed, err)
			}
		}
	}
	if n := r.asked.Load(); n != int64(len(questions)) {
		t.Errorf("%d questions were asked %d times", len(questions), n)
	}
	if _, _, err := z.Allowed(t.Context(), someone(func(*user.DefaultInfo) {}), read); err != nil || r.asked.Load() != int64(len(questions)) {
		t.Error("an equal user is another question")
	}
}

func TestMemoryOfAnswersIsBounded(t *testing.T) {
	z, r := authorizer(t, always(status{Allowed: true}, nil))
	ask := func(i int) {
		what := read
		what.Name = fmt.Sprint(i)
		if _, _, err := z.Allowed(t.Context(), carol, what); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4097 {
		ask(i)
	}
	before := r.asked.Load()
	ask(0)
	if r.asked.Load() != before+1 {
		t.Error("more than 4,096 answers are kept")
	}
}

func TestNoAnswerIsNoAccess(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "", errors.New("no role"))
	for _, test := range []struct {
		name  string
		err   error
		asked int64
	}{
		{"refused connection", errors.New("connection refused"), 3},
		{"internal error", apierrors.NewInternalError(errors.New("etcd")), 3},
		{"forbidden", forbidden, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				z, r := authorizer(t, always(status{Allowed: true}, test.err))
				for i := int64(1); i <= 2; i++ {
					allowed, _, err := z.Allowed(t.Context(), carol, read)
					if allowed || !errors.Is(err, trust.ErrUnavailable) || !errors.Is(err, test.err) {
						t.Errorf("%v %v", allowed, err)
					}
					if n := r.asked.Load(); n != i*test.asked {
						t.Errorf("asked %d times", n)
					}
				}
				// The error was not kept.
				r.answer = always(status{Allowed: true}, nil)
				if allowed, _, err := z.Allowed(t.Context(), carol, read); !allowed || err != nil {
					t.Errorf("%v %v", allowed, err)
				}
			})
		})
	}
}

func TestAPIServerIsBackAtTheSecondAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		z, _ := authorizer(t, func(context.Context, spec) (status, error) {
			if first {
				first = false
				return status{}, errors.New("connection reset")
			}
			return status{Allowed: true}, nil
		})
		if allowed, _, err := z.Allowed(t.Context(), carol, read); !allowed || err != nil {
			t.Error(allowed, err)
		}
	})
}

func TestHangingAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z, r := authorizer(t, func(ctx context.Context, _ spec) (status, error) {
			<-ctx.Done()
			return status{}, ctx.Err()
		})
		began := time.Now()
		allowed, _, err := z.Allowed(t.Context(), carol, read)
		if allowed || !errors.Is(err, trust.ErrUnavailable) || time.Since(began) != 4*time.Second {
			t.Errorf("%v %v after %v", allowed, err, time.Since(began))
		}
		if n := r.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		synctest.Wait()
	})
}

func TestOneQuestionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z, r := authorizer(t, func(ctx context.Context, _ spec) (status, error) {
			time.Sleep(time.Second)
			return status{Allowed: true}, ctx.Err()
		})
		leaving, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		// It asks for all, and does not wait for the answer.
		all.Go(func() {
			if allowed, _, err := z.Allowed(leaving, carol, read); allowed || !errors.Is(err, context.Canceled) {
				t.Errorf("who left: %v %v", allowed, err)
			}
		})
		synctest.Wait()
		for range 100 {
			all.Go(func() {
				if allowed, _, err := z.Allowed(t.Context(), carol, read); !allowed || err != nil {
					t.Errorf("%v %v", allowed, err)
				}
			})
		}
		synctest.Wait()
		leave()
		all.Wait()
		if n := r.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		if _, _, err := z.Allowed(leaving, carol, trust.Attributes{Verb: "list"}); !errors.Is(err, context.Canceled) {
			t.Errorf("after leaving: %v", err)
		}
	})
}
