package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/asked"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/lib/shares"
	"github.com/katbox/katbox/internal/node/files"
)

// files answers with a page of a directory, or with one entry.
func (a *answer) files(ctx context.Context) error {
	q, wrong := asked.Files(a.r.URL.Query())
	if wrong != nil {
		return wrong
	}
	path, err := paths.ParseRef(q.Path)
	if err != nil {
		return err
	}
	a.ref = path.Ref()
	page := func(ctx context.Context) error {
		list, err := a.readDirectory(ctx, path, q)
		if err != nil {
			return err
		}
		return a.JSON(http.StatusOK, list)
	}
	if q.Stat {
		return a.h.within(ctx, page) // it reads no names
	}
	of, who, err := a.whose(ctx)
	if err != nil {
		return err
	}
	return a.h.inTime(ctx, func(ctx context.Context) error {
		release, err := a.h.directories.Wait(ctx, of)
		if errors.Is(err, shares.ErrQueue) {
			return tooMany("%d requests for directories in %s wait on this node, which is the most; try again in a moment", mostWaiting, who)
		}
		if err != nil {
			return err
		}
		defer release()
		return page(ctx)
	})
}

// readDirectory is files once the request is understood.
func (a *answer) readDirectory(ctx context.Context, path paths.Path, q api.FilesQuery) (api.FileList, error) {
	reading, during, end, err := a.read(ctx, func() {})
	if err != nil {
		return api.FileList{}, err
	}
	defer end()
	list, err := a.list(during, reading, path, q)
	if err == nil {
		err = lost(reading)
	}
	return list, cause(during, err)
}

// list reads a page of a directory, or one entry.
func (a *answer) list(ctx context.Context, reading *files.Reading, path paths.Path, q api.FilesQuery) (api.FileList, error) {
	defer a.h.LowPriority()()
	list := api.FileList{Path: path.Ref(), Entries: []api.Entry{}}
	if q.Stat {
		e, err := reading.Tree.Stat(path)
		if err != nil {
			return list, err
		}
		list.Entries = append(list.Entries, entry(e))
		return list, nil
	}
	options := files.ListOptions{After: q.Continue, Limit: q.Limit, Depth: q.Depth}
	page, err := reading.Tree.List(ctx, path, options, reading.Pace)
	if err != nil {
		return list, err
	}
	for _, e := range page.Entries {
		list.Entries = append(list.Entries, entry(e))
	}
	list.Continue, list.Truncated, list.Unsorted = page.Next, page.Truncated, page.Own
	return list, nil
}

// entry describes an entry in the words of the API.
func entry(e files.Entry) api.Entry {
	name, ref := strings.ToValidUTF8(e.Name, "\ufffd"), e.Path.Ref()
	if e.Type == files.Mount {
		return api.Entry{Name: name, Ref: ref, Type: api.Mount}
	}
	return api.Entry{
		Name: name, Ref: ref, Type: api.EntryType(e.Type),
		Target: strings.ToValidUTF8(e.Target, "\ufffd"), Size: e.Size, Allocated: e.Allocated,
		Mode: fmt.Sprintf("%04o", e.Mode), UID: e.UID, GID: e.GID, ModTime: asked.InYears(e.ModTime), Links: e.Links,
	}
}
