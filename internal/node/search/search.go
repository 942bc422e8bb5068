package search

import (
	"context"
	"errors"
	"io"

	"github.com/katbox/katbox/internal/lib/grep"
	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/node/files"
)

// Search is a search over some volumes, one after another.
type Search struct {
	*grep.Search
	// kept is about how much of what was read the kernel still has in memory.
	kept int64
}

// New returns a search that has not begun.
func New(o grep.Options) *Search { return &Search{Search: grep.New(o)} }

// Volume searches the files of a volume; logs says that they are what the containers of a pod printed. It calls found for what
// it finds. The error is that of found or of Tick, the cause of the end of ctx, a [*grep.UsedUpError], the cause of the loss of r,
// or one of walking through the volume. What could not be read of its files is in the Sums.
func (s *Search) Volume(ctx context.Context, r *files.Reading, logs bool, found func(api.GrepFound) error) error {
	if lost := context.Cause(r.Lost); lost != nil {
		return lost
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(r.Lost, func() { cancel(context.Cause(r.Lost)) })
	defer stop()
	err := r.Tree.Walk(ctx, paths.Path{}, r.Pace, func(e files.Entry, open func() (*files.File, error)) error {
		if err := s.Tick(); err != nil {
			return err
		}
		return s.entry(ctx, r.Pace, e, open, logs, found)
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// entry searches an entry, if it is a file that is selected.
func (s *Search) entry(
	ctx context.Context, pace files.Pace, e files.Entry, open func() (*files.File, error), logs bool, found func(api.GrepFound) error,
) error {
	switch {
	case e.TooDeep, e.Type == files.Regular && len(e.Path.String()) > paths.Max:
		s.Sums.Deep++
		return nil
	case e.Type != files.Regular, !s.Selects(e.Path.String()):
		return nil
	}
	if takes, err := s.Takes(e.Size); !takes {
		return err
	}
	f, err := open()
	if err != nil {
		s.Sums.Files++
		s.Sums.Unreadable++
		return nil
	}
	defer f.Close()
	c := &content{search: s, file: f}
	defer c.end()
	return s.File(ctx, pace, e.Path.Ref(), grep.KindOf(e.Path.String(), logs), c, found)
}

// dropEvery is how many bytes are read before the kernel may forget them: of a large file, or of small files together. From
// then on it forgets each small file.
const dropEvery = 8 << 20

// content is an open file from its beginning.
type content struct {
	search          *Search
	file            *files.File
	offset, dropped int64
}

// Read reads the next bytes.
func (c *content) Read(p []byte) (int, error) {
	n, err := c.file.ReadAt(p[:min(len(p), grep.Batch)], c.offset)
	c.offset += int64(n)
	if c.offset-c.dropped >= dropEvery {
		c.file.DropBehind(c.dropped, c.offset)
		c.dropped = c.offset
	}
	if err != nil && n > 0 && errors.Is(err, io.EOF) {
		return n, nil
	}
	return n, err
}

// end is called before the file is closed.
func (c *content) end() {
	const page = 4096
	if c.search.kept += c.offset - c.dropped + page; c.search.kept > dropEvery {
		c.search.kept -= c.offset - c.dropped + page
		c.file.DropOnClose()
	}
}
