package archiver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/tarball"
)

const (
	// uploadsAtOnce is how many pieces are uploaded at the same time, while the next one is read: one may wait for its URL.
	uploadsAtOnce = 2
	// mostIndex bounds the memory of an index that is being made: it may have half a million names.
	mostIndex = 32 << 20
)

// errNotNow: the daemon stops, and the volume is not that of a failure.
var errNotNow = fmt.Errorf("%w: the daemon stops", volume.ErrNotRetained)

// errCutShort: the copy of such a volume had begun.
var errCutShort = fmt.Errorf("%w: failures go first", volume.ErrNotRetained)

// mostGivenWay is how often in a row copies give way to failures. Each reads its volume anew, and where jobs fail all the time one has
// to end now and then.
const mostGivenWay = 3

// copy archives the volume that a look has chosen. It returns what is known of the volume, at least its ID.
func (a *Archiver) copy(ctx context.Context, id volume.ID, look int) (volume.Record, error) {
	reading, note, err := a.cfg.Volumes.ReadToArchive(ctx, id)
	if err != nil {
		return volume.Record{ID: id}, err
	}
	defer reading.Close()
	r := reading.Volume.Record
	switch {
	case a.draining.Load() && r.ArchiveRank() > 0:
		return r, errNotNow
	case !archived.Archivable(r.Place()):
		return r, failForGood(noKubelet, errors.New("the ID of the volume, or the UID of its pod, is none that a kubelet or an API server gives"))
	case reading.Volume.Size.Bytes > a.most():
		return r, failForGood(tooLarge, fmt.Errorf("it takes %d bytes, and may take %d", reading.Volume.Size.Bytes, a.most()))
	}
	all := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if r.ArchiveRank() > 0 {
		defer context.AfterFunc(a.drain, func() { cancel(errCutShort) })()
		defer a.givesWay(look, func() { cancel(errCutShort) })()
	}
	defer context.AfterFunc(reading.Lost, func() { cancel(context.Cause(reading.Lost)) })()
	c, err := a.newCopying(ctx, cancel, reading)
	if err != nil {
		return r, err
	}
	index, err := c.pieces(reading)
	if err != nil {
		return r, err
	}
	until, err := c.index(index)
	if err != nil {
		return r, errors.Join(context.Cause(ctx), err)
	}
	// The copy is whole, so it is recorded though it is to be cut short.
	noting, end := context.WithTimeout(all, a.pace.note)
	defer end()
	if err := note(noting, until); err != nil {
		return r, err
	}
	if r.ArchiveRank() > 0 {
		a.wasWhole()
	}
	a.cfg.Metrics.VolumeArchived(c.read)
	a.cfg.Log.Info("archived a volume", logkeys.About(r, "bytes", c.read, "pieces", len(c.done), "until", until)...)
	return r, nil
}

// givesWay lets the copy of a volume be cut when a failure waits, until end is called.
func (a *Archiver) givesWay(look int, cut func()) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gave < mostGivenWay {
		a.cut, a.chose = cut, look
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.cut = nil
	}
}

// failureWaits cuts the copy that runs if it gives way. The failure was found by a look: one that began before that for the copy may have
// found what was copied meanwhile.
func (a *Archiver) failureWaits(look int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cut != nil && look > a.chose {
		a.cut()
		a.cut = nil
		a.gave++
	}
}

// wasWhole lets copies give way again.
func (a *Archiver) wasWhole() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gave = 0
}

// most is how large the tar of a volume may be.
func (a *Archiver) most() int64 {
	if a.cfg.Max > 0 {
		return min(a.cfg.Max, archived.MaxPieces*archived.PieceSize)
	}
	return archived.MaxPieces * archived.PieceSize
}

// copying is the copy of one volume.
type copying struct {
	*Archiver
	ctx    context.Context // that of copy, which makes a copying for itself alone
	cancel context.CancelCauseFunc
	// word is what all asks have in common.
	word  api.UploadAsk
	shown api.Volume

	compressor *archived.Compressor
	entries    *archived.Encoder
	// raw is what is there of the piece at hand, read how long the tar is so far.
	raw  []byte
	read int64
	// done are the pieces that were made, in their order.
	done []archived.Piece
	// free has room for pieces, queue the pieces that are to be uploaded.
	free    chan []byte
	queue   chan made
	workers sync.WaitGroup
	// high ends the low I/O priority.
	high func()
}

// made is a piece that is to be uploaded.
type made struct {
	word   api.UploadAsk
	object []byte
}

func (a *Archiver) newCopying(ctx context.Context, cancel context.CancelCauseFunc, reading *files.Reading) (*copying, error) {
	shown := a.cfg.Describe(reading.Volume)
	r := &reading.Volume.Record
	c := &copying{
		Archiver: a, ctx: ctx, cancel: cancel, shown: shown, free: make(chan []byte, uploadsAtOnce+1), queue: make(chan made),
		word: api.UploadAsk{ID: shown.ID, Namespace: shown.Namespace, Pod: shown.Pod, PodUID: shown.PodUID, Seal: r.Owner.Seal},
		high: func() {},
	}
	if shown.Owner != nil {
		c.word.Owner = *shown.Owner
	}
	var err, err2 error
	c.compressor, err = archived.NewCompressor()
	c.entries, err2 = archived.NewEncoder()
	return c, errors.Join(err, err2)
}

// pieces uploads the content, and returns the head of the index.
func (c *copying) pieces(reading *files.Reading) (archived.Head, error) {
	root, err := reading.Tree.Stat(paths.Path{})
	if err != nil {
		return archived.Head{}, err
	}
	for range uploadsAtOnce {
		c.free <- nil
		c.workers.Go(c.upload)
	}
	c.free <- nil
	report, err := c.write(reading)
	if err == nil && len(c.raw) > 0 {
		err = c.piece()
	}
	if err != nil {
		c.cancel(err)
	}
	close(c.queue)
	c.workers.Wait()
	if cause := context.Cause(c.ctx); cause != nil {
		return archived.Head{}, cause
	}
	return archived.Head{
		Volume: c.shown, Root: entryOf(tarball.Placed{Entry: root}), Size: report.Bytes,
		Skipped: report.Skipped, Changed: report.Changed, ChangedNames: report.ChangedNames,
	}, nil
}

// write reads the volume. It has the low priority while it reads, not while it waits for an upload.
func (c *copying) write(reading *files.Reading) (tarball.Report, error) {
	c.high = c.cfg.LowPriority()
	defer func() { c.high(); c.high = func() {} }()
	return tarball.Write(c.ctx, c, reading, tarball.Options{
		MaxBytes: c.most(), LowPriority: c.cfg.LowPriority, Each: func(p tarball.Placed) error {
			if c.entries.Size() > mostIndex {
				return fmt.Errorf("%w: its names take more than %d bytes", archived.ErrTooLarge, mostIndex)
			}
			return c.entries.Entry(entryOf(p))
		},
	})
}

// Write takes the next bytes of the tar.
func (c *copying) Write(p []byte) (n int, err error) {
	c.high()
	defer func() { c.high = c.cfg.LowPriority() }()
	for len(p) > 0 {
		now := p[:min(len(p), archived.PieceSize-len(c.raw), burst)]
		if err := c.limit.WaitN(c.ctx, len(now)); err != nil {
			return n, err
		}
		c.raw = append(c.raw, now...)
		n += len(now)
		c.read += int64(len(now))
		p = p[len(now):]
		if len(c.raw) == archived.PieceSize {
			if err := c.piece(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// piece makes a piece of what is there, and hands it over.
func (c *copying) piece() error {
	var room []byte
	select {
	case room = <-c.free:
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
	object := c.compressor.Compress(room[:0], c.raw)
	c.raw = c.raw[:0]
	sum := archived.SumOf(object)
	word := c.word
	word.Piece = &api.UploadPiece{Number: len(c.done), Length: int64(len(object)), SHA256: sum.String()}
	c.done = append(c.done, archived.Piece{Length: int64(len(object)), Sum: sum})
	select {
	case c.queue <- made{word, object}:
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// upload uploads pieces until there are no more. The first that fails ends the copy.
func (c *copying) upload() {
	for m := range c.queue {
		if c.ctx.Err() != nil {
			continue
		}
		answer, err := c.put(c.ctx, m.word, m.object)
		if err != nil {
			c.cancel(err)
			continue
		}
		if !answer.There {
			c.cfg.Metrics.ArchiveUploaded(len(m.object))
		}
		c.free <- m.object
	}
}
