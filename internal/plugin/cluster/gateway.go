package cluster

import (
	"context"
	"errors"
	"net/http"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// APIService is the object that makes the API server ask the gateway.
const APIService = resource.Version + "." + resource.Group

// Gateway says whether a cluster has Katbox' gateway.
type Gateway struct {
	// Installed says that there is the APIService, and Available that the gateway answers.
	Installed, Available bool
	// Version is that of the gateway; empty if it does not say.
	Version string
	// Reason says why it is not available, as far as that is known.
	Reason string
	// OutOfReach says that this is because the API server cannot connect to it, although replicas are ready; nil if it is
	// not, or if the user may not see what shows it.
	OutOfReach *OutOfReach
}

// Gateway asks whether the cluster has a gateway. It asks for discovery, which all users may read.
func (c *Client) Gateway(ctx context.Context) (Gateway, error) {
	installed, err := c.installed(ctx)
	if err != nil || !installed {
		return Gateway{}, err
	}
	g := Gateway{Installed: true}
	answer, err := c.ask(ctx, object{}, api.Request{Method: http.MethodGet, Path: resource.VersionPath})
	if err == nil {
		g.Available, g.Version = true, answer.Header.Get(api.HeaderVersion)
		return g, answer.Body.Close()
	}
	failure := (*api.Error)(nil)
	if !errors.As(err, &failure) {
		return g, err
	}
	g.Reason = failure.Error()
	if why, service := c.unavailableService(ctx); why.Message != "" {
		g.Reason = why.Message
		g.OutOfReach = c.outOfReach(ctx, why, service)
	}
	return g, nil
}

// installed asks whether there is the APIService.
func (c *Client) installed(ctx context.Context) (bool, error) {
	answer, err := c.ask(ctx, object{}, api.Request{Method: http.MethodGet, Path: resource.GroupPath})
	failure := (*api.Error)(nil)
	switch {
	case err == nil:
		return true, answer.Body.Close()
	case errors.As(err, &failure) && failure.Code == http.StatusNotFound:
		return false, nil
	}
	return false, err
}
