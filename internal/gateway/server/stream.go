package server

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/sealed"
)

const (
	// batch is how many bytes are passed on at once.
	batch = 64 << 10
	// progress is how much of a stream has to move within the stall limit.
	progress = 64 << 10
)

var batches = sync.Pool{New: func() any { return new([batch]byte) }}

// output is the body of a stream. It ends when the client leaves, when too little moves, and when the
// gateway stops, also while it waits for the node or for the client.
type output struct {
	c *call
	// during ends with the stream; its cause is why.
	during context.Context
	cancel context.CancelCauseFunc
	// leave stops the wait for the end of the gateway.
	leave func() bool
	// moved is how much has moved since watch was set.
	moved int

	mu sync.Mutex
	// begun says that the header is sent or will be, and over that the handler has ended.
	begun, over bool
	// watch cuts the stream when it is due. It is set once the stream has begun.
	watch *time.Timer
}

func newOutput(c *call) *output {
	o := &output{c: c}
	o.during, o.cancel = context.WithCancelCause(c.r.Context())
	o.leave = context.AfterFunc(c.s.stopping, func() { o.cut(errStopping) })
	return o
}

// cut ends the stream for a reason. A write that waits for the client fails, as do all later ones.
func (o *output) cut(why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	o.cancel(why)
	if o.begun {
		_ = o.c.Control.SetWriteDeadline(time.Unix(1, 0))
	}
}

// begin is called before the header is sent. From then on the output watches over the time of writes.
func (o *output) begin() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = true
	o.watch = time.AfterFunc(o.c.s.stall, func() { o.cut(errStalled) })
	_ = o.c.Control.SetWriteDeadline(time.Time{})
	return context.Cause(o.during)
}

// end is called when the handler ends. A cut that comes later leaves the connection alone: the next
// request may be on it.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	if o.begun {
		o.watch.Stop()
		// What the server has not sent yet follows when the handler has ended.
		o.c.Allow(answerLimit)
	}
	o.leave()
	o.cancel(nil)
}

// cause returns why the stream has failed: that it was cut, if it was.
func (o *output) cause(err error) error {
	if why := context.Cause(o.during); err != nil && why != nil && !errors.Is(why, context.Canceled) {
		return why
	}
	return err
}

// Write sends a part of the body.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.c.Write(p)
	o.c.s.Metrics.BytesSent(int64(n))
	if err != nil {
		return n, errors.Join(api.ErrLeft, err)
	}
	return n, nil
}

// archive sends an archive, compressed if that was asked for, and sealed. One that cannot be sealed is cut
// if something is wrong with it.
func (o *output) archive(answer *http.Response, q reading) error {
	var to io.Writer = o
	sealing := sealed.NewWriter(o, q.word)
	if q.seal {
		to = sealing
	}
	flush, end := func() error { return o.c.Control.Flush() }, func() error { return nil }
	if q.gzip {
		packed, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
		if err != nil {
			return err
		}
		to, flush, end = packed, end, packed.Close
	}
	from := sealed.NewReader(answer.Body, q.word)
	if err := o.copy(from, to, flush); err != nil && (!q.seal || from.Notes().Fault == "") {
		return err
	}
	if err := end(); err != nil || !q.seal {
		return err
	}
	return sealing.Seal(from.Notes())
}

// copy copies what a node sends. Where the node has no more bytes at the moment, it flushes, so that none
// of them waits for those that follow.
func (o *output) copy(from io.Reader, to io.Writer, flush func() error) error {
	read := int64(0)
	buf := batches.Get().(*[batch]byte)
	defer batches.Put(buf)
	for {
		n, err := from.Read(buf[:])
		read += int64(n)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
			if o.moved += n; o.moved >= progress {
				o.moved = 0
				o.watch.Reset(o.c.s.stall)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &nodeError{fmt.Errorf("%w after %d bytes: %w", api.ErrCut, read, err)}
		}
		if n < len(buf) {
			if err := flush(); err != nil {
				return errors.Join(api.ErrLeft, err)
			}
		}
	}
}
