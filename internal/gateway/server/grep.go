package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// grepProgress is how often a search says how far it is.
const grepProgress = 5 * time.Second

// grepParameters are the parameters of a search.
var grepParameters = slices.Concat(api.GrepParameters, []string{"labelSelector", "fieldSelector", "since", "archived"})

// grepRequest reads the parameters of a search.
func (c *call) grepRequest(values url.Values) (r fleet.SearchRequest, selector resource.Selector, err error) {
	if !values.Has("grep") {
		return r, selector, badParameter("grep", "the parameter grep is missing: only a search is about several volumes; name one of them")
	}
	values, wrong := only(values, grepParameters...)
	if wrong != nil {
		return r, selector, wrong
	}
	what, bad := api.ParseGrep(values)
	if bad == nil {
		_, bad = what.Compile()
	}
	if bad == nil {
		_, bad = api.ParseGlob(what.Files)
	}
	if bad != nil {
		return r, selector, resource.FromNode(bad, c.what.Name)
	}
	r.Grep = what
	if r.Request, selector, err = c.listRequest(values); err != nil {
		return r, selector, err
	}
	since, wrong := once(values, "since")
	if wrong != nil {
		return r, selector, wrong
	}
	if since != "" {
		if r.Query.Since, err = time.Parse(time.RFC3339Nano, since); err != nil {
			return r, selector, badParameter("since", "since=%q is not a time of RFC 3339, such as 2026-11-22T03:04:05Z", since)
		}
	}
	switch text, wrong := once(values, "archived"); {
	case wrong != nil:
		return r, selector, wrong
	case text != "" && text != "true" && text != "false":
		return r, selector, badParameter("archived", "archived=%q is neither true nor false", text)
	default:
		r.Archived = text == "true"
	}
	if selector.Gone() {
		return r, selector, badParameter("fieldSelector", "the files of volumes that are gone cannot be searched")
	}
	return r, selector, nil
}

// grep streams what matches in the volume of the request, or in all that are selected.
func (c *call) grep(values url.Values) error {
	if c.r.Method != http.MethodGet {
		return resource.NotAllowed("%s is not possible for a search", c.r.Method)
	}
	request, selector, err := c.grepRequest(values)
	if err != nil {
		return err
	}
	if err := context.Cause(c.s.stopping); err != nil {
		return err
	}
	release, refused := c.s.searches.take(c.who.GetName())
	if refused != nil {
		return refused
	}
	defer release()
	out := newOutput(c)
	defer out.end()
	search := (*fleet.Search)(nil)
	if c.what.Name != resource.AnyVolume {
		found, _, err := c.reach(out.during)
		if err != nil {
			return out.cause(err)
		}
		request.One = &found
	}
	if !selector.Empty() {
		if search, err = c.s.Fleet.Search(out.during, request); err != nil {
			return out.cause(err)
		}
	}
	c.warn(selector.Warning())
	c.Header().Set("Content-Type", "application/x-ndjson")
	if err := out.begin(); err != nil {
		return err
	}
	c.s.Metrics.StreamBegan()
	defer c.s.Metrics.StreamEnded()
	c.WriteHeader(http.StatusOK)
	return out.cause((&grepping{call: c, out: out}).run(out.during, search))
}

// grepping is the answer to a search.
type grepping struct {
	*call
	out *output

	mu sync.Mutex
	// last is the volume of what was sent last.
	last *fleet.Entry
}

// run sends what is found. search is nil if no volume can be selected.
func (g *grepping) run(ctx context.Context, search *fleet.Search) error {
	end := api.GrepEnd{}
	if search != nil {
		over, stop := context.WithCancel(ctx)
		var saying sync.WaitGroup
		saying.Go(func() { g.sayProgress(over, search) })
		var err error
		end, err = search.Run(ctx, g.found)
		stop()
		saying.Wait()
		if err != nil {
			return err
		}
	}
	return g.send(api.GrepRecord[resource.RetainedVolume]{End: &end})
}

// sayProgress says how far the search is, until ctx ends: so a client that has left is noticed, and nothing in between takes
// the connection for an idle one.
func (g *grepping) sayProgress(ctx context.Context, search *fleet.Search) {
	tick := time.NewTicker(grepProgress)
	defer tick.Stop()
	for {
		sums := search.Sums()
		if g.send(api.GrepRecord[resource.RetainedVolume]{Progress: &sums}) != nil {
			return // what is found ends with the same error
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// found sends what was found in a volume.
func (g *grepping) found(e fleet.Entry, all []api.GrepFound) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	// The fleet has looked at this already. A mistake there must not show a volume to others.
	if e.Foreign && !g.everywhere {
		return errors.New("a volume of another namespace was searched")
	}
	if g.last == nil || g.last.Volume.ID != e.Volume.ID || g.last.Volume.Node != e.Volume.Node {
		v := g.volumeOf(e)
		if err := g.write(api.GrepRecord[resource.RetainedVolume]{Volume: &v}); err != nil {
			return err
		}
		g.last = &e
	}
	for i := range all {
		if err := g.write(api.GrepRecord[resource.RetainedVolume]{Found: &all[i]}); err != nil {
			return err
		}
	}
	return g.flush()
}

// send sends a record.
func (g *grepping) send(r api.GrepRecord[resource.RetainedVolume]) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.write(r); err != nil {
		return err
	}
	return g.flush()
}

// write writes a record. The caller holds the lock.
func (g *grepping) write(r api.GrepRecord[resource.RetainedVolume]) error {
	text, err := api.Encode(r)
	if err != nil {
		return err
	}
	_, err = g.out.Write(text)
	return err
}

// flush sends what was written. The caller holds the lock.
func (g *grepping) flush() error {
	if err := g.Control.Flush(); err != nil {
		return errors.Join(api.ErrLeft, err)
	}
	g.out.watch.Reset(g.out.c.s.stall)
	return nil
}
