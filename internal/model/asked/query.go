package asked

import (
	"math"
	"net/url"
	"strings"

	"github.com/katbox/katbox/internal/model/api"
)

const (
	// mostDepth bounds how many levels of directories are listed.
	mostDepth = 16
	// mostTailLines bounds tailLines, MostTail how many bytes are searched for them.
	mostTailLines = 100_000
	// MostTail: see mostTailLines.
	MostTail = 8 << 20
	// mostExcludes bounds how many patterns a request may exclude.
	mostExcludes = 64
)

// Files reads the parameters of a request, with the standard limits for those that are missing.
func Files(v url.Values) (api.FilesQuery, *api.Error) {
	p := New(v)
	q := api.FilesQuery{
		Path: p.Text("path"), Continue: p.Text("continue"), Stat: p.Flag("stat"),
		Limit: int(p.Number("limit", api.StandardNames, 1, api.MostNames)), Depth: int(p.Number("depth", 1, 1, mostDepth)),
	}
	return q, p.End()
}

// Bytes reads the parameters of a request. ranged says that the request has a range beside it.
func Bytes(v url.Values, ranged bool) (api.BytesQuery, *api.Error) {
	p := New(v)
	q := api.BytesQuery{
		Path:      p.Text("path"),
		Offset:    p.Number("offset", 0, math.MinInt64+1, math.MaxInt64),
		Limit:     p.Number("limit", 0, 1, math.MaxInt64),
		TailLines: int(p.Number("tailLines", 0, 1, mostTailLines)),
		TailBytes: p.Number("tailBytes", 0, 1, math.MaxInt64),
		MaxBytes:  p.Number("maxBytes", 0, 1, math.MaxInt64),
		Exclude:   p.All("exclude"),
	}
	switch archive := p.Text("archive"); archive {
	case "":
	case "tar":
		q.Archive = true
	default:
		p.Fail(Bad(api.BadParameter, "archive", "archive=%q is not possible; the only format is tar", archive))
	}
	if err := p.End(); err != nil {
		return q, err
	}
	return q, check(q, ranged)
}

// check refuses parameters that do not go together.
func check(q api.BytesQuery, ranged bool) *api.Error {
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
		return Bad(api.BadParameter, "", "%s do not go together; choose one", strings.Join(ways, " and "))
	case !q.Archive && (len(q.Exclude) > 0 || q.MaxBytes != 0):
		return Bad(api.BadParameter, "", "exclude and maxBytes are for archives; add archive=tar")
	case len(q.Exclude) > mostExcludes:
		return Bad(api.BadParameter, "exclude", "exclude is given %d times, and at most %d are possible", len(q.Exclude), mostExcludes)
	}
	return nil
}
