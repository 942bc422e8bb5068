package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

const (
	// firstLimit is how long a search may take to its first line, and endLimit until it has ended on all nodes once its client has
	// left. Both are for the 300 nodes that a search is promised for.
	firstLimit = 2 * time.Second
	endLimit   = time.Second
	promised   = 300
	// glimpse is the time between two looks at what the nodes do.
	glimpse = 20 * time.Millisecond
)

// searching is a search that runs, through the API server.
type searching struct {
	*api.GrepStream[resource.RetainedVolume]
	began time.Time
	leave context.CancelFunc
}

// beginSearch begins a search of all namespaces. What is returned ends with ctx.
func (s *story) beginSearch(ctx context.Context, pattern string) (*searching, error) {
	ctx, leave := context.WithCancel(ctx)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		s.server.url+group+"/retainedvolumes/-/log?grep="+url.QueryEscape(pattern), nil)
	if err != nil {
		leave()
		return nil, err
	}
	if s.server.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.server.token)
	}
	began := time.Now()
	client := http.Client{Transport: s.server.http.Transport} // it takes longer than other requests
	answer, err := client.Do(r)
	if err != nil {
		leave()
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		defer leave()
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000)) // for people alone
		return nil, fmt.Errorf("the search is answered with %s: %s", answer.Status, text)
	}
	return &searching{api.OpenGrep[resource.RetainedVolume](answer), began, leave}, nil
}

// end ends a search.
func (g *searching) end() {
	g.leave()
	g.Close()
}

// search searches the volumes of all nodes, and leaves another search before its end.
func (s *story) search(ctx context.Context) error {
	// Nodes that had no time for the crowd would be named.
	if err := s.wait(ctx, "a list with all nodes", s.noneMissing); err != nil {
		return err
	}
	g, err := s.beginSearch(ctx, wanted)
	if err != nil {
		return err
	}
	defer g.end()
	first, found := time.Duration(0), 0
	end := (*api.GrepEnd)(nil)
	for end == nil {
		r, err := g.Next()
		if err != nil {
			return err
		}
		if r.Found != nil {
			if found++; found == 1 {
				first = time.Since(g.began)
			}
		}
		end = r.End
	}
	took := time.Since(g.began)
	each := (s.o.volumes + failedEvery - 1) / failedEvery
	whole := found == s.o.nodes*each && end.Volumes == int64(s.all()) && len(end.Missing) == 0
	s.want(whole, "a search found %d lines in %d files of %d volumes, %d MiB, and lacks %d nodes",
		found, end.Files, end.Volumes, end.Bytes>>20, len(end.Missing)+end.MissingMore)
	s.within(first, firstLimit, "its first line")
	s.say("        its last one: %.2f s", took.Seconds())
	if err := s.memory("after a search", true); err != nil {
		return err
	}
	return s.leave(ctx)
}

// within says how long something took. It has to be within the limit with as many nodes as that is promised for.
func (s *story) within(took, limit time.Duration, what string) {
	if s.o.nodes > promised {
		s.say("        %s: %.2f s; with %d nodes at most %.0f s", what, took.Seconds(), promised, limit.Seconds())
		return
	}
	s.want(took <= limit, "%s: %.2f s, of at most %.0f s", what, took.Seconds(), limit.Seconds())
}

// leave begins a search, and leaves it once many nodes search.
func (s *story) leave(ctx context.Context) error {
	g, err := s.beginSearch(ctx, wanted)
	if err != nil {
		return err
	}
	defer g.end()
	most := 0
	if err := s.wait(ctx, "nodes to search", func(context.Context) (bool, error) {
		n, err := s.fleet.searches()
		most = n
		return n >= min(s.o.nodes, 100), err
	}); err != nil {
		return err
	}
	g.end()
	left := time.Now()
	for {
		n, err := s.fleet.searches()
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		if time.Since(left) > waitLimit {
			return fmt.Errorf("%d nodes search %s after the client has left", n, waitLimit)
		}
		if err := retry.Pause(ctx, glimpse); err != nil {
			return err
		}
	}
	s.within(time.Since(left), endLimit, fmt.Sprintf("a search on %d nodes at once had ended on all of them once its client had left", most))
	return nil
}

// searches returns how many searches run on all nodes.
func (f fleet) searches() (all int, err error) {
	for _, p := range f {
		n, err := p.searches()
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}

// searches returns how many searches run on the nodes of one process.
func (p *player) searches() (int, error) {
	if err := json.NewEncoder(p.in).Encode(order{Searches: true}); err != nil {
		return 0, err
	}
	if !p.out.Scan() {
		return 0, fmt.Errorf("the process that plays the nodes has ended: %w", io.ErrUnexpectedEOF)
	}
	return strconv.Atoi(p.out.Text())
}
