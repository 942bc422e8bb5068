package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

func checkVerb(conn *connection) *cobra.Command {
	var w wouldConvert
	verb := &cobra.Command{
		Use:   "check",
		Short: "says whether you can list, read, keep and delete retained volumes, and what to do if not",
		Args:  verbs.Arguments(0, 0),
		Long: `Each line begins with ok, with failed for what does not work, or with denied for a right that you do not have.
The line says what to do. Exit code 1 says that one has failed, or that you may not list, read or delete.

--would-convert checks none of this. It says which emptyDir volumes of the pods in the namespace the policy katbox-scratch
makes Katbox volumes of, or would if the namespace had the label katbox.io/scratch=keep, and why others stay as they are.`,
		Example: `  kubectl katbox check          in the namespace
  kubectl katbox check -A       in all namespaces
  kubectl katbox check --as eve what another user may do, if you may impersonate
  kubectl katbox check --would-convert -n ml         which volumes of its pods are converted
  kubectl katbox check --would-convert -f job.yaml   those of the pods that a manifest makes`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, _ []string) error {
			if w.enabled {
				return w.run(ctx, s)
			}
			if w.file != "" {
				return verbs.WrongUsage("-f is for --would-convert: give both")
			}
			return (&check{session: s}).run(ctx)
		}),
	}
	w.define(verb.Flags())
	completeFlag(verb, manifestFile, ofFiles)
	return verb
}

// What a line begins with.
const (
	works  = "ok"
	fails  = "failed"
	denied = "denied"
)

// platforms is the page that says which control planes reach no pods.
const platforms = "deploy/docs/platforms.md#control-planes-that-do-not-reach-pods"

// keepRole is the role with which volumes are pinned.
const keepRole = "katbox-keep"

// check finds out what works, and shows each finding in a line.
type check struct {
	*session
	wrong int
}

// errWrong: a check has shown what is wrong.
var errWrong = errors.New("not everything works for you: see the lines that begin with failed or denied")

// run checks one thing after the other, as each depends on the ones before.
func (c *check) run(ctx context.Context) error {
	who, err := c.client.User(ctx)
	switch said := c.client.Explain(ctx, "", err); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		c.ok("API server", fmt.Sprintf("%s knows you as %s", c.client.Server(), who))
	case !verbs.HasCode(err, 404):
		c.failed("API server", said.Error())
		return errWrong
	default:
		c.ok("API server", c.client.Server()+" answers; it is too old to say who you are")
	}
	gateway, err := c.client.Gateway(ctx)
	switch {
	case err != nil:
		c.failed("gateway", c.client.Explain(ctx, "", err).Error())
	case !gateway.Installed:
		c.failed("gateway", "this cluster has no APIService "+cluster.APIService+"; "+cluster.Install)
		return errWrong
	case !gateway.Available:
		c.unavailable(gateway)
	default:
		c.ok("gateway", "APIService "+cluster.APIService+" is available; it is "+known(gateway.Version))
	}
	lists, err := c.rights(ctx)
	if err != nil {
		return err
	}
	if gateway.Available && lists {
		c.nodes(ctx)
	}
	if c.wrong > 0 {
		return errWrong
	}
	return nil
}

// unavailable says why the gateway is not available, what that does to the whole cluster, and what to do.
func (c *check) unavailable(g cluster.Gateway) {
	if reach := g.OutOfReach; reach == nil {
		c.failed("gateway", fmt.Sprintf("APIService %s is not available: %s; see kubectl -n katbox get pods", cluster.APIService, g.Reason))
	} else if at := strings.Join(reach.Replicas, " and "); reach.OnNodes {
		c.failed("gateway", fmt.Sprintf("the API server cannot connect to it: %s; it is ready at %s, which are addresses of nodes, so a "+
			"firewall keeps the control plane from that port: let it through (%s)", g.Reason, at, platforms))
	} else {
		c.failed("gateway", fmt.Sprintf("the API server cannot connect to it: %s; it is ready at %s, which are addresses of pods, so the "+
			"control plane does not reach those, or a firewall keeps it from that port: give the gateway the network of its nodes "+
			"(gateway.hostNetwork=true), or let the port through (%s)", g.Reason, at, platforms))
	}
	c.failed("namespaces", "no namespace of the cluster is deleted to the end until the gateway answers; to let them go before, an "+
		"administrator runs kubectl delete apiservice "+cluster.APIService+", and installs Katbox again once the cause is gone")
}

// rights asks for each thing that a user does whether it is allowed.
func (c *check) rights(ctx context.Context) (lists bool, err error) {
	where := "in all namespaces"
	if c.namespace != "" {
		where = "in namespace " + c.namespace
	}
	for _, right := range []struct{ what, verb, subresource, role string }{
		{"list volumes", "list", "", "view"},
		{"see a volume", "get", "", "view"},
		{"list files", "get", resource.Files, "edit"},
		{"read files", "get", resource.Log, "edit"},
		{"delete volumes", "delete", "", "edit"},
		{"keep longer", "patch", "", keepRole},
	} {
		allowed, reason, err := c.client.Can(ctx, right.verb, resource.Resource, right.subresource, c.namespace)
		object := right.verb + " " + resource.Resource
		if right.subresource != "" {
			object += "/" + right.subresource
		}
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil:
			c.failed(right.what, c.client.Explain(ctx, "", err).Error())
		case allowed:
			c.ok(right.what, fmt.Sprintf("you may %s %s", object, where))
			lists = lists || right.verb == "list"
		case right.role == keepRole:
			// No user has it by default, so nothing is wrong.
			c.line(denied, right.what, fmt.Sprintf(
				"you may not %s %s, and so not pin, as most users: an administrator of the cluster can give you the role %s",
				object, where, right.role))
		default:
			if reason != "" {
				reason = " (" + reason + ")"
			}
			c.wrong++
			c.line(denied, right.what, fmt.Sprintf("you may not %s %s%s: the role %s includes it", object, where, reason, right.role))
		}
	}
	return lists, nil
}

// nodes asks for a short list, which says which nodes are connected.
func (c *check) nodes(ctx context.Context) {
	page, err := c.client.List(ctx, cluster.Query{Namespace: c.namespace, Limit: 1})
	switch {
	case err != nil:
		c.failed("nodes", c.client.Explain(ctx, "", err).Error())
	case page.Fleet == nil:
		c.failed("nodes", "the gateway does not say which nodes are connected: it is of another version than this program ("+version+")")
	case page.Fleet.Nodes == 0:
		c.failed("nodes", "no node has connected to the gateway: see kubectl -n katbox get pods, and the daemons' flag --gateway")
	case page.Incomplete():
		f := page.Fleet
		c.failed("nodes", fmt.Sprintf("%s did not answer: %s; see kubectl get nodes, and kubectl -n katbox get pods -o wide",
			notAnswered(f), c.away(f)))
	default:
		c.ok("nodes", fmt.Sprintf("all %d are connected", page.Fleet.Nodes))
	}
}

// away names the nodes that are missing, and since when.
func (c *check) away(f *resource.Fleet) string {
	var names []string
	for _, m := range f.Missing {
		name := m.Node
		if t := at(m.Since); !t.IsZero() {
			name += " (" + terminal.Ago(c.Now(), t) + ")"
		}
		names = append(names, name)
	}
	if f.MissingMore > 0 {
		names = append(names, fmt.Sprintf("%d more", f.MissingMore))
	}
	return strings.Join(names, ", ")
}

func (c *check) ok(what, text string) { c.line(works, what, text) }

func (c *check) failed(what, text string) {
	c.wrong++
	c.line(fails, what, text)
}

func (c *check) line(result, what, text string) {
	_, _ = io.WriteString(c.Stdout, fmt.Sprintf("%-6s  %-14s  %s\n", result, what, terminal.Clean(text))) // Stdout keeps its error
}
