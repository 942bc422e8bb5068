package vpsa

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/array"
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

// whole reads a list that is short.
func (l list[T]) whole(ctx context.Context, c *client) ([]T, error) {
	var all []T
	q := l.q
	q.fields = map[string]field{l.key: many(func(item T) { all = append(all, item) })}
	if err := c.get(ctx, q); err != nil {
		return nil, err
	}
	return all, nil
}

// from reads a part of a list; a limit of 0 asks for all. The array may ignore both.
func (l list[T]) from(ctx context.Context, c *client, start, limit int) ([]T, error) {
	l.q.query = maps.Clone(l.q.query)
	if l.q.query == nil {
		l.q.query = url.Values{}
	}
	l.q.query.Set("start", strconv.Itoa(start))
	l.q.query.Set("limit", strconv.Itoa(limit))
	return l.whole(ctx, c)
}

// visit reads a list in pages and visits each object once, a page at a time.
//
// A page begins with the last object of the one before it. Where it does not, objects went away
// meanwhile, or the array ignores where a page is to start: then the rest is read as one answer.
func (l list[T]) visit(ctx context.Context, c *client, each func([]T) error) error {
	seen := make(map[text]struct{})
	news := func(items []T) error {
		fresh := items[:0]
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
	items, err := l.from(ctx, c, 0, c.page)
	for start := 0; ; {
		if err != nil {
			return err
		}
		if len(items) != c.page { // the last page, or all although a page was asked for
			return news(items)
		}
		last := l.id(items[c.page-1])
		if err := news(items); err != nil {
			return err
		}
		start += c.page - 1
		if items, err = l.from(ctx, c, start, c.page); err != nil {
			return err
		}
		if len(items) == 0 || l.id(items[0]) != last {
			break
		}
	}
	items, err = l.from(ctx, c, 0, 0)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return fmt.Errorf("%w: its list of %s changes while it is read, and it gives no whole one", array.ErrBadAnswer, l.key)
	}
	return news(items)
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
