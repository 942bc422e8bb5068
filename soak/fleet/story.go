package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
)

const (
	// waitLimit is how long anything may take that has to happen.
	waitLimit = 3 * time.Minute
	// look is the time between two looks.
	look = 250 * time.Millisecond
	// idle is how long the gateway is left alone before its memory is looked at.
	idle = 20 * time.Second
	// comeLimit is how long all nodes may take to connect.
	comeLimit = 90 * time.Second
	// mostReviews bounds the TokenReviews of a replica's start: one every 40 s, and a few while the first nodes come. They do not grow
	// with the nodes.
	mostReviews = 20
	// cleanLimit is how long the end may take.
	cleanLimit = 10 * time.Minute
)

// story is one run.
type story struct {
	o        options
	out      io.Writer
	server   *server
	gateways gateways
	fleet    fleet
	// usual is how long a list with all nodes takes.
	usual  time.Duration
	missed bool
}

// say writes a line.
func (s *story) say(format string, values ...any) { fmt.Fprintf(s.out, format+"\n", values...) }

// want writes a line about something that has to be so.
func (s *story) want(ok bool, format string, values ...any) {
	word := "ok    "
	if !ok {
		word, s.missed = "MISSED", true
	}
	s.say(word+"  "+format, values...)
}

// tell tells the whole story. It returns an error if it cannot be told, or something is not as it has
// to be.
func tell(ctx context.Context, o options, out io.Writer) (err error) {
	s := &story{o: o, out: out}
	if s.server, err = connect(o.kubeconfig); err != nil {
		return err
	}
	if err := s.server.free(ctx); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "katbox-fleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer func() { err = errors.Join(err, s.end()) }()
	p, err := s.begin(ctx, dir)
	if err != nil {
		return err
	}
	if err := s.connectAll(ctx, p); err != nil {
		return err
	}
	for _, name := range o.acts {
		if err := s.act(name)(ctx); err != nil {
			return err
		}
	}
	if s.missed {
		return errors.New("not all is as it has to be")
	}
	return nil
}

// act returns what is played by that name; nil if there is no such act.
func (s *story) act(name string) func(context.Context) error {
	return map[string]func(context.Context) error{
		"lists": s.lists, "search": s.search, "silence": s.silence, "loss": s.loss, "restart": s.restart,
		"restart-one": func(ctx context.Context) error { return s.again(ctx, s.gateways[0]) },
	}[name]
}

// begin makes the objects in the cluster.
func (s *story) begin(ctx context.Context, dir string) (p part, err error) {
	if s.gateways, err = newGateways(s.o, dir); err != nil {
		return p, err
	}
	began := time.Now()
	namespaces, err := s.server.prepare(ctx, s.o, s.gateways.apiPorts())
	if err != nil {
		return p, err
	}
	tokens, err := s.server.tokens(ctx, s.o)
	if err != nil {
		return p, err
	}
	s.say("        the API server has %d nodes, as many pods and tokens, and %d namespaces; made in %.0f s",
		s.o.nodes, s.o.namespaces, time.Since(began).Seconds())
	p = part{
		Gateway: s.gateways.addresses(), CAFile: s.gateways[0].ca(), Tokens: dir + "/tokens", Nodes: s.o.nodes,
		Volumes: s.o.volumes, Namespaces: namespaces, Verbose: s.o.verbose, Files: dir + "/files",
	}
	return p, errors.Join(writeTokens(p.Tokens, tokens), writeFiles(p.Files))
}

// end ends all processes and removes all objects.
func (s *story) end() (err error) {
	err = errors.Join(s.fleet.stop(), s.gateways.stop())
	if s.o.keep {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanLimit)
	defer cancel()
	return errors.Join(err, s.server.remove(ctx, s.o))
}

// wait waits until something is so, and for nothing if the gateway ends.
func (s *story) wait(ctx context.Context, what string, is func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	for {
		ok, err := is(ctx)
		if ok {
			return nil
		}
		if err := s.gateways.ended(); err != nil {
			return err
		}
		if paused := retry.Pause(ctx, look); paused != nil {
			return fmt.Errorf("waited in vain for %s: %w", what, errors.Join(err, paused))
		}
	}
}

// connectAll starts the gateway and the nodes, and waits until all is connected.
func (s *story) connectAll(ctx context.Context, p part) error {
	if err := s.gateways.start(); err != nil {
		return err
	}
	if err := s.wait(ctx, "the gateway's ports", func(ctx context.Context) (bool, error) {
		c, err := s.gateways.counts(ctx)
		return err == nil && c.connected == 0, err
	}); err != nil {
		return err
	}
	for _, some := range p.parts() {
		one, err := startPlayer(some)
		if err != nil {
			return err
		}
		s.fleet = append(s.fleet, one)
		if err := s.come(ctx, some); err != nil {
			return err
		}
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := retry.Pause(ctx, idle); err != nil {
		return err
	}
	return s.memory("idle, with all nodes", false)
}

// ready waits until the API server asks the gateway.
func (s *story) ready(ctx context.Context) error {
	return s.wait(ctx, "the API server to ask the gateway", func(ctx context.Context) (bool, error) {
		if err := s.gateways.ready(ctx); err != nil {
			return false, err
		}
		err := s.server.do(ctx, http.MethodGet, group+"/retainedvolumes?limit=1", nil, nil)
		return err == nil, err
	})
}

// come waits until the nodes of a process are connected, as those before, and says how long that took, and how many TokenReviews.
func (s *story) come(ctx context.Context, p part) error {
	began := time.Now()
	var c counts
	err := s.wait(ctx, "all nodes to be connected", func(ctx context.Context) (_ bool, err error) {
		c, err = s.gateways.counts(ctx)
		return err == nil && c.connected >= p.First+p.Nodes, err
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	s.want(took <= comeLimit, "%d nodes have connected at once, within %.1f s of at most %.0f s", p.Nodes, took.Seconds(), comeLimit.Seconds())
	most := mostReviews * s.o.replicas
	s.want(c.reviews <= most, "%d TokenReviews, of at most %d, and %d tokens were read", c.reviews, most, c.read)
	return nil
}

// back starts a replica anew, which had that number of nodes, and waits until it has them again, and reaches all.
func (s *story) back(ctx context.Context, g *gateway, nodes int) error {
	if err := g.start(); err != nil {
		return err
	}
	began := time.Now()
	var c counts
	if err := s.wait(ctx, "a replica's nodes to be back", func(ctx context.Context) (_ bool, err error) {
		c, err = g.counts(ctx)
		return err == nil && c.here >= nodes && c.connected >= s.o.nodes, err
	}); err != nil {
		return fmt.Errorf("of %d nodes %d are connected to it, and it reaches %d of %d: %w", nodes, c.here, c.connected, s.o.nodes, err)
	}
	took := time.Since(began)
	s.want(took <= comeLimit, "the %d nodes of a replica are back after its start, within %.1f s of at most %.0f s", nodes, took.Seconds(),
		comeLimit.Seconds())
	s.want(c.reviews <= mostReviews, "%d TokenReviews, of at most %d, and %d tokens were read", c.reviews, mostReviews, c.read)
	return nil
}

// again ends a replica and starts it anew.
func (s *story) again(ctx context.Context, g *gateway) error {
	c, err := g.counts(ctx)
	if err != nil {
		return err
	}
	if err := g.stop(); err != nil {
		return err
	}
	return s.back(ctx, g, c.here)
}

// restart starts the replicas anew, one after the other, as an update does.
func (s *story) restart(ctx context.Context) error {
	for range s.o.restarts {
		for _, g := range s.gateways {
			if err := s.again(ctx, g); err != nil {
				return err
			}
		}
	}
	if s.o.restarts == 0 {
		return nil
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.list(ctx, "after the restart, 500 of all namespaces", group+"/retainedvolumes?limit=500", s.whole(s.all())); err != nil {
		return err
	}
	return s.memory("after the restart", true)
}
