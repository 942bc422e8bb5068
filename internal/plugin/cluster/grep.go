package cluster

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// Grep searches the retained volumes that q selects, or the one that has a name; its Limit and Continue are not used. since
// leaves out those that were retained before, if it is not zero. The caller closes the answer.
func (c *Client) Grep(ctx context.Context, q Query, name string, since time.Time, what api.Grep,
) (*api.GrepStream[resource.RetainedVolume], error) {
	about := object{verb: "get", subresource: resource.Log, namespace: q.Namespace, name: name}
	check := about.checkVolume
	if name == "" {
		about.name, check = resource.AnyVolume, about.check
	}
	if err := check(); err != nil {
		return nil, err
	}
	q.Limit, q.Continue = 0, ""
	values := q.values()
	maps.Copy(values, what.Values())
	if !since.IsZero() {
		values.Set("since", since.UTC().Format(time.RFC3339Nano))
	}
	answer, err := c.ask(ctx, about, api.Request{
		Method: http.MethodGet, Path: about.path(), Query: values, Header: http.Header{"Accept": {"*/*"}}, Stream: true,
	})
	said := (*api.Error)(nil)
	if errors.As(err, &said) && said.Code == http.StatusBadRequest && strings.Contains(said.Message, `no parameter "grep"`) {
		return nil, failed("the gateway of this cluster is of an older version, which does not search volumes: %w", api.ErrOlder)
	}
	if err != nil {
		return nil, err
	}
	return api.OpenGrep[resource.RetainedVolume](answer), nil
}
