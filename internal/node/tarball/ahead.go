package tarball

import (
	"context"

	"github.com/katbox/katbox/internal/node/files"
)

// together is how many entries the walk hands over at once. Three times as many files may be open:
// those that the walk has opened, those that wait, and those that are read.
const together = 16

// longTogether is how long their paths may be together, in bytes, before fewer entries are handed
// over: a pod can make paths of 64 KiB, and 32 archives may run.
const longTogether = 32 << 10

// ahead walks in a goroutine of its own, and opens the files, ahead of fn, which gets the entries in
// the same order. To find and open small files takes as long as to read them.
func (a *archiver) ahead(tree *files.Tree, fn func(*item) error) error {
	ctx, cancel := context.WithCancelCause(a.ctx)
	defer cancel(nil)
	batches := make(chan []*item, 1)
	ended := make(chan error, 1)
	go func() {
		defer close(batches)
		w := &walk{archiver: a, to: batches}
		ended <- w.run(ctx, tree)
	}()
	var err error
	for batch := range batches {
		for _, i := range batch {
			if err == nil {
				if err = fn(i); err != nil {
					cancel(err)
				}
			}
			i.close()
		}
	}
	if walked := <-ended; err == nil {
		err = walked
	}
	return err
}

// walk is the part of ahead that is ahead.
type walk struct {
	*archiver
	// high ends the low I/O priority.
	high  func()
	items []*item
	// long is how long their paths are together.
	long int
	to   chan<- []*item
}

// run walks until the end, an error, or the end of ctx.
func (w *walk) run(ctx context.Context, tree *files.Tree) error {
	w.high = w.lowPriority()
	defer func() { w.high() }()
	err := tree.Walk(ctx, w.Path, w.pace, func(e files.Entry, open func() (*files.File, error)) error {
		return w.visit(e, open, func(i *item) error { return w.add(ctx, i) })
	})
	if over := w.handOver(ctx); err == nil {
		err = over
	}
	return err
}

func (w *walk) add(ctx context.Context, i *item) error {
	if i.Type == files.Regular && i.Size > 0 {
		if _, err := i.opened(); err != nil {
			return err
		}
	}
	w.items, w.long = append(w.items, i), w.long+len(i.Path.String())
	if len(w.items) < together && w.long < longTogether {
		return nil
	}
	return w.handOver(ctx)
}

// handOver gives away the entries so far. While it waits for that, it does not keep a thread.
func (w *walk) handOver(ctx context.Context) error {
	w.high()
	defer func() { w.high = w.lowPriority() }()
	items := w.items
	w.items, w.long = nil, 0
	select {
	case w.to <- items:
		return nil
	case <-ctx.Done():
		for _, i := range items {
			i.close()
		}
		return context.Cause(ctx)
	}
}
