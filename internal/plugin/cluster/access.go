package cluster

import (
	"context"
	"net/http"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// attributes are what a SelfSubjectAccessReview asks about, as Kubernetes' API has them.
type attributes struct {
	Namespace   string `json:"namespace,omitempty"`
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
}

// review is a SelfSubjectAccessReview.
type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		ResourceAttributes attributes `json:"resourceAttributes"`
	} `json:"spec"`
	Status struct {
		Allowed bool   `json:"allowed"`
		Reason  string `json:"reason"`
	} `json:"status,omitzero"`
}

// Can asks whether the user may do something with a resource of the group katbox.io, in a namespace or,
// if that is empty, in all. It returns the reason that the API server gives, which may be empty.
func (c *Client) Can(ctx context.Context, verb, resourceName, subresource, namespace string) (bool, string, error) {
	ask := review{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}
	ask.Spec.ResourceAttributes = attributes{
		Namespace: namespace, Verb: verb, Group: resource.Group, Resource: resourceName, Subresource: subresource,
	}
	answer, _, err := get[review](ctx, c, object{}, api.Request{
		Method: http.MethodPost, Path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", Body: ask,
	})
	return answer.Status.Allowed, answer.Status.Reason, err
}

// User returns the name that the API server knows the user by.
func (c *Client) User(ctx context.Context) (string, error) {
	type userReview struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Status     struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status,omitzero"`
	}
	answer, _, err := get[userReview](ctx, c, object{}, api.Request{
		Method: http.MethodPost, Path: "/apis/authentication.k8s.io/v1/selfsubjectreviews",
		Body: userReview{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
	})
	return answer.Status.UserInfo.Username, err
}
