package files

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// tailBatch is how many bytes one read of Tail takes.
const tailBatch = 256 << 10

// tail is [File.Tail] of the size bytes in r.
func tail(ctx context.Context, r io.ReaderAt, size int64, lines int, atMost int64) (offset int64, err error) {
	if lines <= 0 {
		return size, nil
	}
	lowest := max(0, size-atMost)
	buf := make([]byte, min(tailBatch, size-lowest))
	for end := size; end > lowest; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		start := max(lowest, end-tailBatch)
		batch := buf[:end-start]
		if _, err := r.ReadAt(batch, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if end == size {
			batch = bytes.TrimSuffix(batch, []byte("\n"))
		}
		for {
			newline := bytes.LastIndexByte(batch, '\n')
			if newline < 0 {
				break
			}
			if lines--; lines == 0 {
				return start + int64(newline) + 1, nil
			}
			batch = batch[:newline]
		}
		end = start
	}
	return lowest, nil
}
