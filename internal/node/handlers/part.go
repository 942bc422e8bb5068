package handlers

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/model/api"

	"github.com/katbox/katbox/internal/node/files"
)

// part is the part of a file that is sent.
type part struct {
	offset, length int64
	// partial says that a Range header asked for it.
	partial bool
}

// partOf returns the part of a file that a request asks for.
func partOf(ctx context.Context, f *files.File, q api.BytesQuery, header http.Header) (part, error) {
	size := f.Size()
	switch {
	case rangeApplies(header, f.ETag()):
		return parseRange(header.Get("Range"), size)
	case q.TailLines > 0:
		offset, err := f.Tail(ctx, q.TailLines, mostTail)
		return part{offset: offset, length: size - offset}, err
	case q.TailBytes > 0:
		offset := max(0, size-q.TailBytes)
		return part{offset: offset, length: size - offset}, nil
	}
	offset := q.Offset
	if offset < 0 {
		offset = max(0, size+offset)
	}
	if offset > size {
		return part{}, outside("offset %d is behind the end of the file, which has %d bytes", offset, size)
	}
	length := size - offset
	if q.Limit > 0 {
		length = min(length, q.Limit)
	}
	return part{offset: offset, length: length}, nil
}

// rangeApplies reports whether a request has a range that is to be heeded. If its If-Range names
// other contents, all of them are sent instead; so they are for a unit that is not known.
func rangeApplies(header http.Header, etag string) bool {
	if !strings.HasPrefix(header.Get("Range"), "bytes=") {
		return false
	}
	condition := header.Get("If-Range")
	return condition == "" || condition == etag
}

// parseRange returns the part of size bytes that a header such as "bytes=0-99", "bytes=100-" or
// "bytes=-100" asks for.
func parseRange(header string, size int64) (part, error) {
	first, last, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(header, "bytes=")), "-")
	if !ok || strings.Contains(last, ",") {
		return part{}, outside("the range %q is not one range of bytes, such as \"bytes=0-99\"", header)
	}
	start, err := strconv.ParseUint(first, 10, 63)
	if first == "" {
		length, err := strconv.ParseUint(last, 10, 63)
		if err != nil || length == 0 || size == 0 {
			return part{}, outside("the range %q asks for nothing of a file of %d bytes", header, size)
		}
		offset := max(0, size-int64(length))
		return part{offset, size - offset, true}, nil
	}
	end := uint64(size)
	if last != "" {
		n, err := strconv.ParseUint(last, 10, 63)
		if err != nil || n < start {
			return part{}, outside("the range %q is not one range of bytes, such as \"bytes=0-99\"", header)
		}
		end = min(end, n+1)
	}
	if err != nil || start >= uint64(size) {
		return part{}, outside("the range %q is outside of the file, which has %d bytes", header, size)
	}
	return part{int64(start), int64(end - start), true}, nil
}

// header announces the part of a file of size bytes. It returns the HTTP code.
func (p part) header(h http.Header, size int64) int {
	h.Set("Content-Length", strconv.FormatInt(p.length, 10))
	h.Set(api.HeaderOffset, strconv.FormatInt(p.offset, 10))
	if !p.partial {
		return http.StatusOK
	}
	h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", p.offset, p.offset+p.length-1, size))
	return http.StatusPartialContent
}

func outside(format string, values ...any) *api.Error {
	return api.NewError(api.RangeNotValid, format, values...)
}
