package archived

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Compressor compresses pieces. It is for one goroutine.
type Compressor struct{ encoder *zstd.Encoder }

// NewCompressor returns a Compressor.
func NewCompressor() (*Compressor, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(window))
	return &Compressor{encoder}, err
}

// Compress appends the object of a piece to dst. The same bytes give the same object, within a version of Katbox.
func (c *Compressor) Compress(dst, piece []byte) []byte { return c.encoder.EncodeAll(piece, dst) }

// Expander expands pieces. It may be used by several goroutines, which take turns.
type Expander struct{ decoder *zstd.Decoder }

// NewExpander returns an Expander, for at most that many pieces at once.
func NewExpander(atOnce int) (*Expander, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(atOnce), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(PieceSize), zstd.WithDecoderMaxWindow(window), zstd.WithDecodeAllCapLimit(true))
	return &Expander{decoder}, err
}

// Expand returns what is in the object of a piece, in the room of dst if that suffices. length is how many bytes there have to
// be, at most [PieceSize]: see [PieceLength].
func (e *Expander) Expand(dst, object []byte, length int64) ([]byte, error) {
	if length < 0 || length > PieceSize {
		return nil, fmt.Errorf("%w: a piece has %d bytes", ErrForm, length)
	}
	if int64(cap(dst)) < length {
		dst = make([]byte, 0, length)
	}
	piece, err := e.decoder.DecodeAll(object, dst[:0:length])
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: a piece: %w", ErrForm, err)
	case int64(len(piece)) != length:
		return nil, fmt.Errorf("%w: a piece has %d bytes, not %d", ErrForm, len(piece), length)
	}
	return piece, nil
}

// Close frees what the Expander holds.
func (e *Expander) Close() { e.decoder.Close() }
