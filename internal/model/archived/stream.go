package archived

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// Open reads the object of a piece as a stream, which takes some MiB of memory less than to expand it at once. Whether it has the length
// that a piece has to have is for the caller to see. The caller closes the stream.
func Open(object io.Reader) (io.ReadCloser, error) {
	decoder, err := zstd.NewReader(object, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(PieceSize), zstd.WithDecoderMaxWindow(window), zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		return nil, err
	}
	return decoder.IOReadCloser(), nil
}
