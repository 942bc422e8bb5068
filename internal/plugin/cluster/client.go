package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
)

const (
	// repeats is how often a GET is sent again that was one of too many, and mostPause how long it waits
	// before that, whatever the answer says.
	repeats   = 4
	mostPause = 10 * time.Second
)

// Client asks the Kubernetes API for retained volumes. Its methods may be called from several goroutines.
type Client struct {
	namespace string
	caller    api.Caller
	// pause waits before a request is sent again.
	pause func(context.Context, time.Duration) error
}

// New returns a client with the credentials of config. namespace is the one that messages are about where
// a request has none of its own. Nothing is asked yet.
func New(config *rest.Config, namespace string) (*Client, error) {
	config = rest.CopyConfig(config)
	timeout := config.Timeout
	// There it would also bound how long a file may be read.
	config.Timeout = 0
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare the connection to the API server: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the address of the API server %q: %w", config.Host, err)
	}
	c := &Client{namespace: namespace, caller: api.NewCaller("the API server", base, transport), pause: retry.Pause}
	c.caller.Header, c.caller.Timeout = http.Header{"Accept": {"application/json"}}, timeout
	return c, nil
}

// Namespace returns the namespace that New was given.
func (c *Client) Namespace() string { return c.namespace }

// Server returns the URL of the API server, for people.
func (c *Client) Server() string { return c.caller.Base.Redacted() }
