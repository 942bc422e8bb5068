package vpsa

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/controller/array"
)

// list is a list of the array's objects.
type list[T any] struct {
	q call
	// key is the answer's field; id the ID of an object in it.
	key string
	id  func(T) text
}

var (
	allVolumes   = list[volume]{call{pattern: "volumes"}, "volumes", func(v volume) text { return v.ID }}
	allSnapshots = list[snapshot]{call{pattern: "snapshots"}, "snapshots", func(s snapshot) text { return s.ID }}
	allServers   = list[server]{call{pattern: "servers"}, "servers", func(s server) text { return s.ID }}
)

// part is what an answer has of a list.
type part[T any] struct {
	items []T
	// count is how many objects the list has, as the array says; 0 where it does not.
	count int
}

// from reads a part of a list; a limit of 0 asks for all. The array may ignore both.
func (l list[T]) from(ctx context.Context, c *client, start, limit int) (p part[T], err error) {
	q := l.q
	q.query = url.Values{"start": {strconv.Itoa(start)}, "limit": {strconv.Itoa(limit)}}
	maps.Copy(q.query, l.q.query)
	var count number
	q.fields = map[string]field{
		l.key: many(func(item T) { p.items = append(p.items, item) }),
	}
	q.hints = map[string]field{"count": func(d *json.Decoder) error {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if err == nil {
			_ = count.UnmarshalJSON(raw) // what is no number says nothing
		}
		return err
	}}
	err = c.get(ctx, q)
	p.count = int(count)
	return p, err
}

// all reads a list as a whole.
func (l list[T]) all(ctx context.Context, c *client) (all []T, err error) {
	err = l.visit(ctx, c, func(page []T) error {
		all = append(all, page...)
		return nil
	})
	return all, err
}

// visit reads a list in pages and visits each object once, a page at a time. A page that is shorter than
// was asked for is the last one, unless the array says that the list has more.
//
// A page begins with the last object of the one before it. Where it does not, objects went away
// meanwhile, or the array ignores where a page is to start: then the rest is read as one answer.
func (l list[T]) visit(ctx context.Context, c *client, each func([]T) error) error {
	seen := make(map[text]struct{})
	news := func(items []T) error {
		fresh := make([]T, 0, len(items))
		for _, item := range items {
			if _, known := seen[l.id(item)]; !known {
				seen[l.id(item)] = struct{}{}
				fresh = append(fresh, item)
			}
		}
		for len(fresh) > 0 {
			n := min(len(fresh), c.page)
			if err := each(fresh[:n]); err != nil {
				return err
			}
			fresh = fresh[n:]
		}
		return nil
	}
	last := text("")
	for start := 0; ; {
		p, err := l.from(ctx, c, start, c.page)
		if err != nil {
			return err
		}
		n := len(p.items)
		if start > 0 && (n == 0 || l.id(p.items[0]) != last) {
			break
		}
		if err := news(p.items); err != nil {
			return err
		}
		switch more := p.count > start+n; {
		case n != c.page && !more: // the last page, or all although a page was asked for
			return nil
		case n < 2:
			l.incomplete(c, p.count, start+n)
			return nil
		}
		last = l.id(p.items[n-1])
		start += n - 1
	}
	p, err := l.from(ctx, c, 0, 0)
	if err != nil {
		return err
	}
	if len(p.items) == 0 {
		return fmt.Errorf("%w: its list of %s changes while it is read, and it gives no whole one", array.ErrBadAnswer, l.key)
	}
	if p.count > len(p.items) {
		l.incomplete(c, p.count, len(p.items))
	}
	return news(p.items)
}

// incomplete says that a list has less than the array counts. It may count what it never gives; of a list of
// what has a name, perhaps all objects.
func (l list[T]) incomplete(c *client, count, came int) {
	if len(l.q.query) == 0 {
		c.log.Info("the array counts more objects than its list has", "array", c.endpoint, "list", l.q.path(), "counted", count, "listed", came)
	}
}

// visitWords visits a list in the words of package array.
func visitWords[T, W any](ctx context.Context, c *client, l list[T], words func(T) W, visit func([]W) error) error {
	return l.visit(ctx, c, func(items []T) error {
		all := make([]W, len(items))
		for i, item := range items {
			all[i] = words(item)
		}
		return visit(all)
	})
}

// Volumes visits all volumes.
func (c *client) Volumes(ctx context.Context, visit func([]array.Volume) error) error {
	return visitWords(ctx, c, allVolumes, volume.words, visit)
}

// Snapshots visits all snapshots. Where one may still come of an earlier request, that is ErrUncertain
// at the end.
func (c *client) Snapshots(ctx context.Context, visit func([]array.Snapshot) error) error {
	coming := inDoubt.beginning(c.taking())
	err := visitWords(ctx, c, allSnapshots, snapshot.words, func(all []array.Snapshot) error {
		for _, s := range all {
			delete(coming, s.Group+"/"+s.Name)
		}
		return visit(all)
	})
	if err == nil && len(coming) > 0 {
		return fmt.Errorf("%w: earlier requests for snapshots of %s got no answer: %s",
			array.ErrUncertain, c.endpoint, strings.Join(slices.Sorted(maps.Keys(coming)), ", "))
	}
	return err
}

// Servers returns all server records.
func (c *client) Servers(ctx context.Context) ([]array.Server, error) {
	var all []array.Server
	err := visitWords(ctx, c, allServers, server.words, func(page []array.Server) error {
		all = append(all, page...)
		return nil
	})
	return all, err
}
