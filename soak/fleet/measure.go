package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// group is the path of the gateway's API.
	group = "/apis/katbox.io/v1alpha1"
	// listLimit is how long a list of all nodes may take, silentLimit how much longer one with silent
	// nodes: the time that a node has for its answer, and half a second.
	listLimit   = 3 * time.Second
	silentLimit = 2500 * time.Millisecond
	// leastAsked is how many nodes a list asks at least, if there are as many.
	leastAsked = 1000
)

// page is what is looked at in a list.
type page struct {
	Metadata struct {
		Continue           string
		RemainingItemCount *int64
	}
	Items []struct {
		Metadata struct {
			Name, Namespace   string
			CreationTimestamp time.Time
		}
		Spec struct{ NodeName string }
	}
	Fleet struct {
		Nodes, Asked, Answered int
		Missing                []struct{ Node, Reason string }
	}
}

// get gets a page through the API server.
func (s *story) get(ctx context.Context, path string) (p page, header http.Header, took time.Duration, err error) {
	began := time.Now()
	header, err = s.server.ask(ctx, http.MethodGet, path, nil, &p)
	return p, header, time.Since(began), err
}

// whole returns a check that a page of that many volumes is whole and in order, and lacks no node.
func (s *story) whole(volumes int) func(page) error {
	return func(p page) error { return errors.Join(s.complete(p), inOrder(p, min(volumes, 500))) }
}

// complete returns an error if a page lacks a node.
func (s *story) complete(p page) error {
	if len(p.Fleet.Missing) > 0 || p.Fleet.Nodes != s.o.nodes || p.Fleet.Asked < min(s.o.nodes, leastAsked) ||
		p.Fleet.Answered != p.Fleet.Asked {
		return fmt.Errorf("of %d nodes %d were asked and %d answered, and %d are missing",
			p.Fleet.Nodes, p.Fleet.Asked, p.Fleet.Answered, len(p.Fleet.Missing))
	}
	return nil
}

// all is how many volumes there are, and of how many of one namespace.
func (s *story) all() int  { return s.o.nodes * s.o.volumes }
func (s *story) some() int { return s.o.nodes * ((s.o.volumes + s.o.namespaces - 1) / s.o.namespaces) }

// inOrder returns an error if a page has not that many volumes, one twice, or an older one before a
// newer one.
func inOrder(p page, volumes int) error {
	if len(p.Items) != volumes {
		return fmt.Errorf("it has %d volumes, not %d", len(p.Items), volumes)
	}
	seen := map[string]bool{}
	for i, v := range p.Items {
		if id := v.Metadata.Namespace + "/" + v.Metadata.Name; seen[id] {
			return fmt.Errorf("%s is there twice", id)
		} else {
			seen[id] = true
		}
		if i > 0 && v.Metadata.CreationTimestamp.After(p.Items[i-1].Metadata.CreationTimestamp) {
			return fmt.Errorf("%s is newer than the one before", v.Metadata.Name)
		}
	}
	return nil
}

// list gets a page several times. Each has to pass the check.
func (s *story) list(ctx context.Context, what, path string, check func(page) error) error {
	var times []time.Duration
	for range s.o.lists {
		p, _, took, err := s.get(ctx, path)
		if err != nil {
			return err
		}
		if err := check(p); err != nil {
			s.want(false, "%s: %v", what, err)
		}
		times = append(times, took)
	}
	slices.Sort(times)
	median := times[len(times)/2]
	s.usual = max(s.usual, median)
	s.want(median <= listLimit, "%s: %.2f s, %.2f s at worst, of at most %.0f s",
		what, median.Seconds(), times[len(times)-1].Seconds(), listLimit.Seconds())
	return nil
}

// lists makes lists, one after the other and several at once.
func (s *story) lists(ctx context.Context) error {
	if err := s.list(ctx, "500 of all namespaces", group+"/retainedvolumes?limit=500", s.whole(s.all())); err != nil {
		return err
	}
	if err := s.list(ctx, "500 of one namespace", group+"/namespaces/"+namespaceName(0)+"/retainedvolumes?limit=500",
		s.whole(s.some())); err != nil {
		return err
	}
	if err := s.pages(ctx); err != nil {
		return err
	}
	if err := s.memory("after lists", true); err != nil {
		return err
	}
	return s.crowd(ctx)
}

// pages gets three pages of one list.
func (s *story) pages(ctx context.Context) error {
	first, _, _, err := s.get(ctx, group+"/retainedvolumes?limit=500")
	if err != nil {
		return err
	}
	rest := int64(s.all() - len(first.Items))
	if rest > 0 && (first.Metadata.RemainingItemCount == nil || *first.Metadata.RemainingItemCount != rest) {
		s.want(false, "the list does not say that %d volumes follow", rest)
	}
	next, longest := first, time.Duration(0)
	for i := 0; i < 3 && next.Metadata.Continue != ""; i++ {
		page, _, took, err := s.get(ctx, group+"/retainedvolumes?limit=500&continue="+url.QueryEscape(next.Metadata.Continue))
		if err != nil {
			return err
		}
		if len(page.Items) == 0 || page.Items[0].Metadata.CreationTimestamp.After(next.Items[len(next.Items)-1].Metadata.CreationTimestamp) {
			s.want(false, "a page does not go on where the one before ended")
			return nil
		}
		next, longest = page, max(longest, took)
	}
	s.want(longest <= listLimit, "further pages: %.2f s at worst, of at most %.0f s", longest.Seconds(), listLimit.Seconds())
	return nil
}

// crowd makes eight lists at once.
func (s *story) crowd(ctx context.Context) error {
	began := time.Now()
	var all sync.WaitGroup
	failed := make([]error, 8)
	for i := range failed {
		all.Go(func() {
			_, _, _, failed[i] = s.get(ctx, group+"/retainedvolumes?limit=500")
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		s.say("        of eight lists at once some failed: %v", err)
	}
	s.say("        eight lists at once: %.2f s", time.Since(began).Seconds())
	return s.memory("after eight lists at once", true)
}

// silence lets some nodes be silent.
func (s *story) silence(ctx context.Context) error {
	if s.o.silent == 0 {
		return nil
	}
	// Nodes that had no time for the crowd would be named, too.
	if err := s.wait(ctx, "a list with all nodes", s.noneMissing); err != nil {
		return err
	}
	if err := s.fleet.tell(order{Silent: s.o.silent}); err != nil {
		return err
	}
	var names []string
	for i := range s.o.silent {
		names = append(names, nodeName(i))
	}
	limit := s.usual + silentLimit
	for _, what := range []string{"silent nodes", "once more", "a third time, when they are not asked"} {
		p, header, took, err := s.get(ctx, group+"/retainedvolumes?limit=500")
		if err != nil {
			return err
		}
		var missing []string
		for _, m := range p.Fleet.Missing {
			missing = append(missing, m.Node)
		}
		slices.Sort(missing)
		// A list names 20 of them.
		named := slices.Equal(missing, names[:min(len(names), 20)]) && strings.Contains(header.Get("Warning"), names[0])
		s.want(named && took <= limit, "%d %s: %.2f s of at most %.2f s, and named are %s", s.o.silent, what, took.Seconds(),
			limit.Seconds(), strings.Join(missing, ", "))
		if err := inOrder(p, min(500, s.all()-s.o.silent*s.o.volumes)); err != nil {
			s.want(false, "the list with %s: %v", what, err)
		}
	}
	if err := s.fleet.tell(order{}); err != nil {
		return err
	}
	return s.wait(ctx, "a list with all nodes", s.noneMissing)
}

// noneMissing reports whether a list lacks no node.
func (s *story) noneMissing(ctx context.Context) (bool, error) {
	p, _, _, err := s.get(ctx, group+"/retainedvolumes?limit=500")
	if err == nil {
		err = s.complete(p)
	}
	return err == nil, err
}

// memory says how much memory a replica has at most.
func (s *story) memory(when string, all bool) error {
	now, peak, err := s.gateways.memory()
	if err != nil {
		return err
	}
	if !all {
		s.want(now <= s.o.memory, "a replica has %d MiB %s, of at most %d MiB", now, when, s.o.memory)
		return nil
	}
	s.want(peak <= s.o.memory, "a replica has %d MiB %s, and had %d MiB, of at most %d MiB", now, when, peak, s.o.memory)
	return nil
}
