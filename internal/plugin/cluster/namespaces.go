package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/api"
)

// mostNamespaces is how many namespaces one page of a list has.
const mostNamespaces = 1000

// Namespaces returns the names of the cluster's namespaces, in order. Most users of a namespace may not list
// them.
func (c *Client) Namespaces(ctx context.Context) (names []string, err error) {
	query := url.Values{"limit": {fmt.Sprint(mostNamespaces)}}
	for {
		page, _, err := get[metav1.PartialObjectMetadataList](ctx, c, object{}, api.Request{
			Method: http.MethodGet, Path: "/api/v1/namespaces", Query: query,
			Header: http.Header{"Accept": {"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}},
		})
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			names = append(names, item.Name)
		}
		if page.Continue == "" {
			return names, nil
		}
		query.Set("continue", page.Continue)
	}
}
