package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/optin"
)

// mostPods is how many pods one page of a list has.
const mostPods = 200

// OptInParams returns the data of the ConfigMap of the policy that converts volumes.
func (c *Client) OptInParams(ctx context.Context, namespace, name string) (optin.Params, error) {
	type configMap struct {
		Data optin.Params `json:"data"`
	}
	answer, _, err := get[configMap](ctx, c, object{}, api.Request{
		Method: http.MethodGet, Path: "/api/v1/namespaces/" + url.PathEscape(namespace) + "/configmaps/" + url.PathEscape(name),
	})
	return answer.Data, err
}

// NamespaceMetadata returns the labels and annotations of a namespace.
func (c *Client) NamespaceMetadata(ctx context.Context, name string) (optin.Metadata, error) {
	answer, _, err := get[optin.Pod](ctx, c, object{}, api.Request{
		Method: http.MethodGet, Path: "/api/v1/namespaces/" + url.PathEscape(name),
	})
	return answer.Metadata, err
}

// RunningPods calls each with every pod of a namespace that has not ended, or of all namespaces if that is empty. Which node
// has a pod is left out, as the policy sees it before that is decided.
func (c *Client) RunningPods(ctx context.Context, namespace string, each func(*optin.Pod)) error {
	type pods struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []optin.Pod     `json:"items"`
	}
	path := "/api/v1/pods"
	if namespace != "" {
		path = podsPath(namespace)
	}
	query := url.Values{"limit": {fmt.Sprint(mostPods)}, "fieldSelector": {"status.phase!=Succeeded,status.phase!=Failed"}}
	for {
		page, _, err := get[pods](ctx, c, object{}, api.Request{Method: http.MethodGet, Path: path, Query: query})
		if err != nil {
			return err
		}
		for i := range page.Items {
			page.Items[i].Spec.NodeName = ""
			each(&page.Items[i])
		}
		if page.Metadata.Continue == "" {
			return nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}
