// Package tail finds the last lines of a file.
package tail

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// most is how many bytes one read takes.
const most = 256 << 10

// Offset returns where the last lines begin of the size bytes in r, or the offset of the last atMost bytes if the lines are longer
// than that. It reads no more than these bytes. A newline at the end belongs to the last line.
func Offset(ctx context.Context, r io.ReaderAt, size int64, lines int, atMost int64) (offset int64, err error) {
	if lines <= 0 {
		return size, nil
	}
	lowest := max(0, size-atMost)
	buf := make([]byte, min(most, size-lowest))
	for end := size; end > lowest; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		start := max(lowest, end-most)
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
