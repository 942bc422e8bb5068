package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/model/api"
)

// Gone returns the volumes that went last, in one page: Request.Continue has to be empty. A warning of
// the page says if there are more. Each entry has Gone. The errors to expect are ErrContinue, ErrSilent,
// a NotConnectedError, those of Namespaces.Lookup, and one that wraps api.ErrOlder if nodes are of a
// version that does not remember what is gone.
func (f *Fleet) Gone(ctx context.Context, r Request) (Page, error) {
	if r.Continue != "" {
		return Page{}, ErrContinue
	}
	l, err := f.begin(r)
	if err != nil {
		return Page{}, err
	}
	// A node that holds nothing now may remember what it held.
	l.ofGone = true
	if err := l.choose(ctx, f.cfg.Nodes.LookAll(ctx)); err != nil {
		return Page{}, err
	}
	if err := l.connected(); err != nil {
		return Page{}, err
	}
	g := &gone{list: l}
	for _, s := range l.sources {
		g.sources = append(g.sources, &goneSource{source: s})
	}
	return g.run(ctx)
}

// gone is a page of volumes that are gone, in the making. Its list is used for the sources, and for
// which nodes are missing.
type gone struct {
	*list
	sources []*goneSource
	// last are the entries that went last, the last one first.
	last []*Entry
	// out is the one that went last of those that are not in last; nil if all are.
	out *Entry
}

// goneSource is a source that is asked for volumes that are gone.
type goneSource struct {
	*source
	// below is the Number below which it is asked next; 0 for all.
	below uint64
	// oldest is the last entry that it has answered with.
	oldest *Entry
}

// run asks the nodes, in as many rounds as a list, until the page is as long as it can be.
func (g *gone) run(ctx context.Context) (Page, error) {
	during, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	asked := g.sources
	share := max(2, (2*g.limit+len(asked)-1)/max(1, len(asked)))
	var first error
	for round := 0; round < rounds && len(asked) > 0 && during.Err() == nil; round++ {
		err := parallelly(during, asked, func(ctx context.Context, s *goneSource) error { return g.ask(ctx, s, min(share, max(2, g.limit))) })
		first = cmp.Or(first, err)
		asked = slices.DeleteFunc(slices.Clone(asked), func(s *goneSource) bool { return s.ended || s.failure != "" || g.below(s) })
		share = max(2, min(g.limit, mostVolumes/max(1, len(asked))))
	}
	if err := ctx.Err(); err != nil {
		return Page{}, err
	}
	g.log(first)
	if err := g.silence(); err != nil {
		if errors.Is(first, api.ErrOlder) {
			return Page{}, first
		}
		return Page{}, err
	}
	page := Page{Fleet: g.status()}
	for _, e := range g.last {
		page.Entries = append(page.Entries, *e)
	}
	if len(page.Fleet.Missing) > 0 {
		page.Warnings = append(page.Warnings, page.Fleet.warning())
	}
	open := func(s *goneSource) bool { return s.answered && !s.ended && !g.below(s) }
	if g.out != nil || slices.ContainsFunc(g.sources, open) {
		page.Warnings = append(page.Warnings, fmt.Sprintf(
			"this list is not complete: it has the last %d volumes that are gone; select by spec.podName to see earlier ones", len(page.Entries)))
	}
	return page, nil
}

// below reports whether all that a source has not answered with is too old for the page.
func (g *gone) below(s *goneSource) bool {
	full := len(g.last) == g.limit || g.out != nil
	return full && s.oldest != nil && byGone(s.oldest, g.last[len(g.last)-1]) > 0
}

// ask asks one source for n more entries that are in the list, and adds them.
func (g *gone) ask(ctx context.Context, s *goneSource, n int) error {
	ctx, cancel := context.WithTimeout(ctx, nodeTime)
	defer cancel()
	for n > 0 && !s.ended {
		entries, err := s.next(ctx, n)
		if err != nil {
			return err
		}
		n -= len(entries)
		g.add(entries)
	}
	return nil
}

// add adds entries to the page, and drops those that are too old for it.
func (g *gone) add(entries []*Entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range entries {
		if g.out == nil || byGone(e, g.out) < 0 {
			g.last = append(g.last, e)
		}
	}
	slices.SortFunc(g.last, byGone)
	if fits := fitting(min(len(g.last), g.limit), func(i int) *Entry { return g.last[i] }); fits < len(g.last) {
		g.out = g.last[fits]
		clear(g.last[fits:])
		g.last = g.last[:fits]
	}
}

// byGone orders entries, the one that went last first.
func byGone(a, b *Entry) int {
	return cmp.Or(b.Gone.GoneAt.Compare(a.Gone.GoneAt),
		strings.Compare(a.Volume.Node, b.Volume.Node), cmp.Compare(b.Gone.Number, a.Gone.Number))
}

// next asks the node for n entries, and returns those that are in the list.
func (s *goneSource) next(ctx context.Context, n int) ([]*Entry, error) {
	q := api.GoneQuery{Query: s.query, Continue: s.below}
	q.Limit = n
	page, err := untilFree(ctx, func() (api.GoneList, error) { return s.node.Gone(ctx, s.reader, q) })
	if err == nil && len(page.Items) > n {
		err = fmt.Errorf("it answered with %d volumes, and was asked for %d", len(page.Items), n)
	}
	if err == nil && page.Continue != 0 && s.below != 0 && page.Continue >= s.below {
		err = fmt.Errorf("its page does not lead on: continue=%d", page.Continue)
	}
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	entries := s.sift(page)
	s.below, s.ended, s.answered = page.Continue, page.Continue == 0, true
	return entries, nil
}

// sift returns those of a page's volumes that are in the list.
func (s *goneSource) sift(page api.GoneList) []*Entry {
	var lies int
	var why error
	entries, above := make([]*Entry, 0, len(page.Items)), s.below
	for _, v := range page.Items {
		err := validateGone(&v, s.name, s.query)
		if err == nil && (above != 0 && v.Number >= above || v.Number < page.Continue || v.Number == 0) {
			err = errors.New("it is out of order")
		}
		if err != nil {
			lies, why = lies+1, err
			continue
		}
		above = v.Number
		e, ok := s.fleet.judge(v.Volume, s.reader, s.query.Tenancy)
		v.Volume = e.Volume
		e.Gone, s.oldest = &v, e
		if ok && (s.keep == nil || s.keep(*e)) {
			entries = append(entries, e)
		}
	}
	if lies > 0 {
		s.fleet.dropped(s.name, lies, why)
	}
	return entries
}
