package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// The exit codes of errors, as those of the verbs.
const (
	codeFailed   = 1
	codeNoVolume = 4
)

// Install says how a cluster gets a gateway.
const Install = "install Katbox with its gateway (helm install katbox deploy/helm/katbox --namespace katbox --set gateway.enabled=true), " +
	"or name another cluster with --context"

// Explained is an error with what a person can do about it.
type Explained struct {
	error
	code int
}

// ExitCode returns the exit code of a program that ends with the error: 1, or 4 if there is no such
// volume.
func (e *Explained) ExitCode() int { return e.code }

// Unwrap returns the error itself.
func (e *Explained) Unwrap() error { return e.error }

func failed(format string, values ...any) error {
	return &Explained{fmt.Errorf(format, values...), codeFailed}
}

func noVolume(format string, values ...any) error {
	return &Explained{fmt.Errorf(format, values...), codeNoVolume}
}

// Explain returns an error of a request with what a person can do about it; see [Explained]. id is that
// of the volume that the request was for; empty if it was for none. The API server may be asked what the
// user may do, and what there is.
func (c *Client) Explain(ctx context.Context, id string, err error) error {
	about := object{}
	if r := (*requestError)(nil); errors.As(err, &r) {
		about = r.object
	} else {
		about.namespace, about.name = parseID(id)
	}
	said, already := (*api.Error)(nil), (*Explained)(nil)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, errors.As(err, &already):
		return err
	case errors.Is(err, api.ErrCut):
		return failed("%w; run the same command again", err)
	case !errors.As(err, &said):
		return c.unreachable(err)
	}
	switch said.Code {
	case http.StatusUnauthorized:
		return failed("%w: the API server %s does not accept your credentials; log in again, or name others with --context or --user",
			said, c.Server())
	case http.StatusForbidden:
		return c.forbidden(ctx, about, said)
	case http.StatusNotFound:
		return c.notFound(ctx, about, said)
	case http.StatusConflict:
		if about.verb == "patch" {
			break // the volume is retained, and as much is kept as may be
		}
		return failed("%w; if a pod uses the volume, read its files with kubectl exec", said)
	case http.StatusGone:
		if about.verb == "list" {
			return failed("%w; run the command again", said)
		}
		return noVolume("%w", said)
	case http.StatusTooManyRequests:
		return failed("%w; the gateway reads for as many others as it can: try again later", said)
	case http.StatusServiceUnavailable:
		return c.unavailable(ctx, said)
	case http.StatusGatewayTimeout:
		return failed("%w; try again in a moment", said)
	}
	return failed("%w", said)
}

// notInstalled says that the cluster has no gateway.
func (c *Client) notInstalled() error {
	return failed("this cluster (%s) has no APIService %s; %s", c.Server(), APIService, Install)
}

// needs is what a request takes, for people.
type needs struct {
	doing, right, role string
	// from is "namespace" or "cluster": whose administrator can give the role. Kubernetes lets people give only rights that they
	// have, and an administrator of a namespace does not have that of katbox-keep.
	from string
	// too is doing for one who may list the volumes.
	too string
}

func (o object) needs() needs {
	switch {
	case o.subresource != "":
		return needs{"read the files of retained volumes", "get on retainedvolumes/files (and /log)", "edit", "namespace", "read their files"}
	case o.verb == "patch":
		return needs{"keep retained volumes longer", "patch on retainedvolumes", "katbox-keep", "cluster", "keep them longer"}
	case o.verb == "delete":
		return needs{"delete retained volumes", "delete on retainedvolumes", "edit", "namespace", "delete them"}
	case o.verb == "list":
		return needs{"list retained volumes", "list on retainedvolumes", "view", "namespace", ""}
	}
	return needs{"see this retained volume", "get on retainedvolumes", "view", "namespace", ""}
}

// where is the namespace of a request, for people.
func (o object) where() string {
	if o.namespace == "" {
		return "in all namespaces"
	}
	return "in namespace " + o.namespace
}

// forbidden says what the user may do, and what is missing.
func (c *Client) forbidden(ctx context.Context, o object, said *api.Error) error {
	if o.verb == "" {
		return failed("%w", said)
	}
	if there, err := c.installed(ctx); err == nil && !there {
		return c.notInstalled()
	}
	who := "you"
	if name, err := c.User(ctx); err == nil && name != "" {
		who = "user " + name
	} else if name := userIn(said.Message); name != "" {
		who = "user " + name
	}
	n := o.needs()
	missing := fmt.Sprintf("that takes %s in the API group %s, which the role %s includes", n.right, resource.Group, n.role)
	if o.namespace == "" {
		missing += " if a ClusterRoleBinding gives it; name one namespace with -n"
	} else {
		missing += fmt.Sprintf("; an administrator of the %s can give it", n.from)
	}
	lists := false
	if o.verb != "list" {
		lists, _, _ = c.Can(ctx, "list", resource.Resource, "", o.namespace)
	}
	text := fmt.Sprintf("%s may not %s %s: %s", who, n.doing, o.where(), missing)
	if lists && n.too != "" {
		text = fmt.Sprintf("%s may list retained volumes %s, and not %s: %s", who, o.where(), n.too, missing)
	}
	return &Explained{&saidError{text, said}, codeFailed}
}

// saidError is an answer of the API server in other words.
type saidError struct {
	text string
	said *api.Error
}

func (e *saidError) Error() string { return e.text }

func (e *saidError) Unwrap() error { return e.said }

// userIn returns the user's name from what the API server says of one who may not.
func userIn(message string) string {
	_, rest, found := strings.Cut(message, `User "`)
	name, _, ended := strings.Cut(rest, `"`)
	if !found || !ended {
		return ""
	}
	return name
}

// notFound tells a path that does not exist from a volume, and both from a cluster without a gateway.
func (c *Client) notFound(ctx context.Context, o object, said *api.Error) error {
	switch {
	case said.Reason == api.NotFound && o.subresource != "":
		// The answer is the same for a path and for a volume.
		_, err := c.Get(ctx, o.namespace, o.name)
		gone := (*api.Error)(nil)
		if errors.As(err, &gone) && gone.Code == http.StatusNotFound {
			return noVolume("%w; it expired, was deleted, or is in another namespace than %s", gone, o.namespace)
		}
		return failed("%w", said)
	case said.Reason == api.NotFound && o.name != "":
		return noVolume("%w; it expired, was deleted, or is in another namespace than %s", said, o.namespace)
	}
	if there, err := c.installed(ctx); err == nil && !there {
		return c.notInstalled()
	}
	return failed("%w", said)
}

// unavailable tells a node that is not connected from a gateway that does not run.
func (c *Client) unavailable(ctx context.Context, said *api.Error) error {
	if said.Reason == api.ServiceUnavailable && said.RetryAfter > 0 {
		return failed("%w; try again in %s, or see what is wrong with the node: kubectl get nodes", said, said.RetryAfter)
	}
	why := ""
	if g, err := c.Gateway(ctx); err == nil && g.Installed && !g.Available && g.Reason != "" {
		why = " (" + g.Reason + ")"
	}
	return failed("%w: Katbox' gateway does not answer%s; see kubectl get apiservice %s, and kubectl -n katbox get pods",
		said, why, APIService)
}

// noCredentials begins the errors of client-go about credential plugins. They have no type.
const noCredentials = "getting credentials: "

// unreachable says why there is no answer at all.
func (c *Client) unreachable(err error) error {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		lookup    *net.DNSError
		operation *net.OpError
	)
	switch {
	case errors.Is(err, api.ErrTimeout):
		return failed("%w; --request-timeout allows more", err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return failed("the certificate of the API server %s has expired, or the clock of this machine is wrong: %w", c.Server(), err)
	case errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &invalid):
		return failed("the API server %s has another certificate than the kubeconfig expects: %w; see --context and --certificate-authority",
			c.Server(), err)
	case errors.As(err, &lookup), errors.As(err, &operation), errors.Is(err, syscall.ECONNREFUSED):
		return failed("the API server %s cannot be reached: %w; is the cluster up, and the right one (--context)?", c.Server(), err)
	case strings.HasPrefix(err.Error(), noCredentials):
		return failed("the program that gets the credentials of the kubeconfig has failed: %w; "+
			"log in again, or name others with --context or --user", err)
	}
	return failed("ask the API server %s: %w", c.Server(), err)
}
