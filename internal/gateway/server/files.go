package server

import (
	"context"
	"net/http"
	"net/url"

	"github.com/katbox/katbox/internal/model/api"
)

// files answers with a page of a directory, or with one entry.
func (c *call) files(values url.Values) error {
	q, err := filesQuery(values)
	if err != nil {
		return err
	}
	release, err := c.s.files.wait(c.r.Context(), c.who.GetName())
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeout(c.r.Context(), c.s.reading())
	defer cancel()
	found, node, err := c.reach(ctx)
	if err != nil {
		return err
	}
	list, err := node.Files(ctx, found.Volume.ID, q)
	if err != nil {
		return &nodeError{err}
	}
	if list.Entries == nil {
		list.Entries = []api.Entry{}
	}
	return c.JSON(http.StatusOK, list)
}

// filesQuery reads the parameters. The node checks their values.
func filesQuery(values url.Values) (q api.FilesQuery, err error) {
	values, wrong := only(values, "path", "limit", "continue", "depth", "stat")
	if wrong != nil {
		return q, wrong
	}
	for name, into := range map[string]*string{"path": &q.Path, "continue": &q.Continue} {
		if *into, wrong = once(values, name); wrong != nil {
			return q, wrong
		}
	}
	const most = 1 << 20 // whatever is more than the node allows
	for name, into := range map[string]*int{"limit": &q.Limit, "depth": &q.Depth} {
		n, wrong := number(values, name, most)
		if wrong != nil {
			return q, wrong
		}
		*into = int(n)
	}
	stat, wrong := once(values, "stat")
	if wrong != nil {
		return q, wrong
	}
	switch stat {
	case "", "false":
	case "true":
		q.Stat = true
	default:
		return q, badParameter("stat", "stat=%q is neither true nor false", stat)
	}
	return q, nil
}
