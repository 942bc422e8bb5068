package api

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/katbox/katbox/internal/model/sealed"
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
	// Seal is the word that proves the end of an archive; see the package sealed. Clients choose it.
	Seal string
}

// Values returns the parameters of the request. From is not among them; see [BytesQuery.SetHeader].
func (q BytesQuery) Values() url.Values {
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

// SetHeader sets what the header of the request has to say: where a stream goes on, and for an archive
// a new word, which it keeps.
func (q *BytesQuery) SetHeader(h http.Header) {
	if q.Archive {
		q.Seal = sealed.NewWord()
		h.Set(sealed.Header, q.Seal)
	}
	if q.From > 0 {
		h.Set("Range", "bytes="+strconv.FormatInt(q.From, 10)+"-")
		if q.ETag != "" {
			h.Set("If-Range", q.ETag)
		}
	}
}
