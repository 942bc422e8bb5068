package hub

import (
	"errors"
	"testing"

	authentication "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestReview: whose a token is, as the API server says. A token for another audience is nobody's, also
// where the API server does not know audiences.
func TestReview(t *testing.T) {
	whole := func() authentication.TokenReviewStatus {
		return authentication.TokenReviewStatus{
			Authenticated: true, Audiences: []string{"katbox-gateway"},
			User: authentication.UserInfo{
				Username: "system:serviceaccount:katbox:daemon", UID: "s1",
				Extra: map[string]authentication.ExtraValue{
					"authentication.kubernetes.io/pod-name": {"p1"}, "authentication.kubernetes.io/pod-uid": {"u1"},
					"authentication.kubernetes.io/node-name": {"n1"},
				},
			},
		}
	}
	n1 := Identity{Namespace: "katbox", ServiceAccount: "daemon", ServiceAccountUID: "s1", Pod: "p1", PodUID: "u1", Node: "n1"}
	for _, tt := range []struct {
		name   string
		change func(*authentication.TokenReviewStatus)
		err    error
		want   Identity
		no     bool
	}{
		{name: "accepted", want: n1},
		{name: "of an API server before 1.30", change: func(s *authentication.TokenReviewStatus) {
			delete(s.User.Extra, "authentication.kubernetes.io/node-name")
		}, want: Identity{Namespace: "katbox", ServiceAccount: "daemon", ServiceAccountUID: "s1", Pod: "p1", PodUID: "u1"}},
		{name: "bound to no pod", change: func(s *authentication.TokenReviewStatus) { s.User.Extra = nil },
			want: Identity{Namespace: "katbox", ServiceAccount: "daemon", ServiceAccountUID: "s1"}},
		{name: "two nodes", change: func(s *authentication.TokenReviewStatus) {
			s.User.Extra["authentication.kubernetes.io/node-name"] = authentication.ExtraValue{"n1", "n2"}
		}, want: Identity{Namespace: "katbox", ServiceAccount: "daemon", ServiceAccountUID: "s1", Pod: "p1", PodUID: "u1"}},
		{name: "refused", change: func(s *authentication.TokenReviewStatus) { s.Authenticated = false }, no: true},
		{name: "another audience", change: func(s *authentication.TokenReviewStatus) { s.Audiences = []string{"api"} }, no: true},
		{name: "no audience", change: func(s *authentication.TokenReviewStatus) { s.Audiences = nil }, no: true},
		{name: "a person", change: func(s *authentication.TokenReviewStatus) { s.User.Username = "alice" }, no: true},
		{name: "no API server", err: errors.New("connection refused")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				review := action.(clienttesting.CreateAction).GetObject().(*authentication.TokenReview)
				if review.Spec.Token != "secret" || len(review.Spec.Audiences) != 1 || review.Spec.Audiences[0] != "katbox-gateway" {
					t.Errorf("asked %+v", review.Spec)
				}
				review.Status = whole()
				if tt.change != nil {
					tt.change(&review.Status)
				}
				return true, review, tt.err
			})
			got, err := NewTokenReviews(client.AuthenticationV1().TokenReviews(), "katbox-gateway").Review(ctx(t), "secret")
			if got != tt.want || errors.Is(err, ErrToken) != tt.no || (err != nil) != (tt.no || tt.err != nil) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
