package api

import (
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// BytesQuery selects what is read: a file, a part of it, or a tar of a directory or file. At most
// one of Offset and Limit, TailLines, TailBytes, From, and Archive with From is set.
type BytesQuery struct {
	// Path is the ref of a file, or with Archive of a directory or file.
	Path string
	// Offset is the first byte; counted from the end of the file if it is negative. Limit is how
	// many bytes follow; 0 is all.
	Offset, Limit int64
	// TailLines asks for the last lines, at most 100,000 of them and 8 MiB.
	TailLines int
	// TailBytes asks for the last bytes.
	TailBytes int64
	// Archive asks for a tar. Exclude are patterns of paths that it leaves out; MaxBytes is how
	// long it may become, 0 for any length.
	Archive  bool
	Exclude  []string
	MaxBytes int64
	// From resumes a stream at this byte of it, if it still has the ETag that the first one had.
	// Otherwise it begins anew; the Offset of the [Stream] tells.
	From int64
	ETag string
}

func (q BytesQuery) values() url.Values {
	v := url.Values{}
	set(v, "path", q.Path)
	setNumber(v, "offset", q.Offset)
	setNumber(v, "limit", q.Limit)
	setNumber(v, "tailLines", int64(q.TailLines))
	setNumber(v, "tailBytes", q.TailBytes)
	if q.Archive {
		v.Set("archive", "tar")
	}
	for _, pattern := range q.Exclude {
		v.Add("exclude", pattern)
	}
	setNumber(v, "maxBytes", q.MaxBytes)
	return v
}

func (q BytesQuery) setHeader(h http.Header) {
	if q.From > 0 {
		h.Set("Range", "bytes="+strconv.FormatInt(q.From, 10)+"-")
		if q.ETag != "" {
			h.Set("If-Range", q.ETag)
		}
	}
}

// parseBytesQuery reads what values wrote. ranged says that the request has a range beside it.
func parseBytesQuery(v url.Values, ranged bool) (BytesQuery, *Error) {
	p := parameters{v: v}
	q := BytesQuery{
		Path:      p.text("path"),
		Offset:    p.number("offset", 0, math.MinInt64+1, math.MaxInt64),
		Limit:     p.number("limit", 0, 1, math.MaxInt64),
		TailLines: int(p.number("tailLines", 0, 1, mostTailLines)),
		TailBytes: p.number("tailBytes", 0, 1, math.MaxInt64),
		MaxBytes:  p.number("maxBytes", 0, 1, math.MaxInt64),
		Exclude:   v["exclude"],
	}
	p.known = append(p.known, "exclude")
	switch archive := p.text("archive"); archive {
	case "":
	case "tar":
		q.Archive = true
	default:
		p.fail(bad(BadParameter, "archive", "archive=%q is not possible; the only format is tar", archive))
	}
	if err := p.end(); err != nil {
		return q, err
	}
	return q, q.check(ranged)
}

// check refuses parameters that do not go together.
func (q BytesQuery) check(ranged bool) *Error {
	var ways []string
	for _, way := range []struct {
		name string
		set  bool
	}{
		{"offset or limit", q.Offset != 0 || q.Limit != 0}, {"tailLines", q.TailLines != 0}, {"tailBytes", q.TailBytes != 0},
		{"a Range header", ranged && !q.Archive}, {"archive", q.Archive},
	} {
		if way.set {
			ways = append(ways, way.name)
		}
	}
	switch {
	case len(ways) > 1:
		return bad(BadParameter, "", "%s do not go together; choose one", strings.Join(ways, " and "))
	case !q.Archive && (len(q.Exclude) > 0 || q.MaxBytes != 0):
		return bad(BadParameter, "", "exclude and maxBytes are for archives; add archive=tar")
	case len(q.Exclude) > mostExcludes:
		return bad(BadParameter, "exclude", "exclude is given %d times, and at most %d are possible", len(q.Exclude), mostExcludes)
	}
	return nil
}
