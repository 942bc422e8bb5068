package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// GrepOptions say which volumes are searched.
type GrepOptions struct {
	// Since leaves out those that were retained before, if it is not zero.
	Since time.Time
	// Archived: also those that are in the archive alone.
	Archived bool
}

// Grep searches the retained volumes that q selects, or the one that has a name; its Limit and Continue are not used. The caller
// closes the answer.
func (c *Client) Grep(ctx context.Context, q Query, name string, o GrepOptions, what api.Grep,
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
	if !o.Since.IsZero() {
		values.Set("since", o.Since.UTC().Format(time.RFC3339Nano))
	}
	if o.Archived {
		values.Set("archived", "true")
	}
	answer, err := c.ask(ctx, about, api.Request{
		Method: http.MethodGet, Path: about.path(), Query: values, Header: http.Header{"Accept": {"*/*"}}, Stream: true,
	})
	said := (*api.Error)(nil)
	if errors.As(err, &said) && said.Code == http.StatusBadRequest {
		for parameter, what := range map[string]string{"grep": "volumes", "archived": "the archive"} {
			if strings.Contains(said.Message, fmt.Sprintf("no parameter %q", parameter)) {
				return nil, failed("the gateway of this cluster is of an older version, which does not search %s: %w", what, api.ErrOlder)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return api.OpenGrep[resource.RetainedVolume](answer), nil
}
