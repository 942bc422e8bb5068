package asked

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/model/api"
)

// Part is the part of a file that is sent.
type Part struct {
	Offset, Length int64
	// Partial says that a Range header asked for it.
	Partial bool
}

// File is what a part is of.
type File interface {
	Size() int64
	ETag() string
	// Tail returns the offset at which the last lines begin, or that of the last atMost bytes.
	Tail(ctx context.Context, lines int, atMost int64) (int64, error)
}

// PartOf returns the part of a file that a request asks for.
func PartOf(ctx context.Context, f File, q api.BytesQuery, header http.Header) (Part, error) {
	size := f.Size()
	switch {
	case RangeApplies(header, f.ETag()):
		return parseRange(header.Get("Range"), size)
	case q.TailLines > 0:
		offset, err := f.Tail(ctx, q.TailLines, MostTail)
		return Part{Offset: offset, Length: size - offset}, err
	case q.TailBytes > 0:
		offset := max(0, size-q.TailBytes)
		return Part{Offset: offset, Length: size - offset}, nil
	}
	offset := q.Offset
	if offset < 0 {
		offset = max(0, size+offset)
	}
	if offset > size {
		return Part{}, Outside("offset %d is behind the end of the file, which has %d bytes", offset, size)
	}
	length := size - offset
	if q.Limit > 0 {
		length = min(length, q.Limit)
	}
	return Part{Offset: offset, Length: length}, nil
}

// RangeApplies reports whether a request has a range that is to be heeded. If its If-Range names
// other contents, all of them are sent instead; so they are for a unit that is not known.
func RangeApplies(header http.Header, etag string) bool {
	if !strings.HasPrefix(header.Get("Range"), "bytes=") {
		return false
	}
	condition := header.Get("If-Range")
	return condition == "" || condition == etag
}

// parseRange returns the part of size bytes that a header such as "bytes=0-99", "bytes=100-" or
// "bytes=-100" asks for.
func parseRange(header string, size int64) (Part, error) {
	first, last, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(header, "bytes=")), "-")
	if !ok || strings.Contains(last, ",") {
		return Part{}, Outside("the range %q is not one range of bytes, such as \"bytes=0-99\"", header)
	}
	start, err := strconv.ParseUint(first, 10, 63)
	if first == "" {
		length, err := strconv.ParseUint(last, 10, 63)
		if err != nil || length == 0 || size == 0 {
			return Part{}, Outside("the range %q asks for nothing of a file of %d bytes", header, size)
		}
		offset := max(0, size-int64(length))
		return Part{offset, size - offset, true}, nil
	}
	end := uint64(size)
	if last != "" {
		n, err := strconv.ParseUint(last, 10, 63)
		if err != nil || n < start {
			return Part{}, Outside("the range %q is not one range of bytes, such as \"bytes=0-99\"", header)
		}
		end = min(end, n+1)
	}
	if err != nil || start >= uint64(size) {
		return Part{}, Outside("the range %q is outside of the file, which has %d bytes", header, size)
	}
	return Part{int64(start), int64(end - start), true}, nil
}

// Header announces the part of a file of size bytes. It returns the HTTP code.
func (p Part) Header(h http.Header, size int64) int {
	h.Set("Content-Length", strconv.FormatInt(p.Length, 10))
	h.Set(api.HeaderOffset, strconv.FormatInt(p.Offset, 10))
	if !p.Partial {
		return http.StatusOK
	}
	h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", p.Offset, p.Offset+p.Length-1, size))
	return http.StatusPartialContent
}

// Outside returns the answer to a request for what is not there of a file or an archive.
func Outside(format string, values ...any) *api.Error {
	return api.NewError(api.RangeNotValid, format, values...)
}
