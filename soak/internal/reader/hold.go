package reader

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
)

const (
	// heldBytes is how much of a file is read before the reader stops to read.
	heldBytes = 256 << 10
	// holdInterval is how often it looks whether the volume is still there.
	holdInterval = 100 * time.Millisecond
	// releaseLimit is how long after the end of a volume its files may be open.
	releaseLimit = 5 * time.Second
	// mostAfterEnd is ten times what may be on its way in the buffers of a socket. A busy machine needs
	// two seconds for it.
	mostAfterEnd = 8 << 20
)

// hold begins to read a file that is long, does not go on before the volume is
// gone or published again, and then must not get all of it.
func (p *person) hold(ctx context.Context, s *subject) {
	if !p.cfg.Checker.Follows(s.volume) {
		return
	}
	p.counts.volumes.Add(1)
	began := time.Now()
	stream, err := p.client.Bytes(ctx, s.volume.ID, api.BytesQuery{Path: sparseName})
	if err != nil {
		_ = p.judge(ctx, s, began, "a long file", err) // the visit is over anyway
		return
	}
	defer stream.Close()
	through := p.counts.through(stream)
	_, err = io.CopyN(io.Discard, through, heldBytes)
	if err == nil {
		for s.there() && !p.cfg.Checker.PublishedAgain(s.volume) {
			if pause.For(ctx, holdInterval) != nil {
				return
			}
		}
		if pause.For(ctx, releaseLimit) != nil {
			return
		}
		_, err = io.CopyN(io.Discard, through, mostAfterEnd)
	}
	switch {
	case err == nil:
		p.wrong(history.ReadsTrue, s, "it is gone or published again for %s, and a stream that began before has %d MiB more",
			releaseLimit, mostAfterEnd>>20)
	case errors.Is(err, io.EOF) && !errors.Is(err, api.ErrCut):
		p.wrong(history.ReadsTrue, s, "a stream of %d bytes ended well before their end, when the volume went", stream.Size)
	default:
		_ = p.judge(ctx, s, began, "a long file", err) // the visit is over anyway
	}
}
