package handlers

import (
	"math"
	"net/url"
	"strings"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// mostDepth bounds how many levels of directories are listed.
	mostDepth = 16
	// mostTailLines bounds tailLines, mostTail how many bytes are searched for them.
	mostTailLines = 100_000
	mostTail      = 8 << 20
	// mostExcludes bounds how many patterns a request may exclude.
	mostExcludes = 64
)

// parseQuery reads the parameters of a request.
func parseQuery(v url.Values) (volume.Selection, *api.Error) {
	p := parameters{v: v}
	s := p.selection()
	s.Since = p.time("since")
	if before := p.text("before"); before != "" {
		key, ok := api.ParseKey(before)
		if !ok {
			p.fail(bad(api.BadContinue, "before", "before=%q is not the \"continue\" of a page; begin the list anew", before))
		}
		s.Before = key
	}
	return s, p.end()
}

// selection reads the parameters that lists of retained and of gone volumes share.
func (p *parameters) selection() volume.Selection {
	s := volume.Selection{
		Namespace: p.text("namespace"), NoNamespace: p.flag("noNamespace"),
		PodName: p.text("pod"), PodPrefix: p.text("podPrefix"), Pod: volume.PodUID(p.text("podUID")),
		Job: p.text("job"), OwnerKind: p.text("ownerKind"),
		Limit: int(p.number("limit", api.StandardVolumes, 1, api.MostVolumes)),
	}
	t := volume.Tenancy{UID: p.text("namespaceUID"), Since: p.time("publishedSince")}
	if p.v.Has("namespaceUID") || p.v.Has("publishedSince") {
		s.Tenancy = &t // also an empty one, which owns nothing
	}
	return s
}

// parseGoneQuery reads the parameters of a request.
func parseGoneQuery(v url.Values) (volume.GoneSelection, *api.Error) {
	p := parameters{v: v}
	s := volume.GoneSelection{Selection: p.selection(), ID: volume.ID(p.text("id")), Below: uint64(p.number("before", 0, 0, math.MaxInt64))}
	return s, p.end()
}

// parseFilesQuery reads the parameters of a request, with the standard limits for those that are missing.
func parseFilesQuery(v url.Values) (api.FilesQuery, *api.Error) {
	p := parameters{v: v}
	q := api.FilesQuery{
		Path: p.text("path"), Continue: p.text("continue"), Stat: p.flag("stat"),
		Limit: int(p.number("limit", api.StandardNames, 1, api.MostNames)), Depth: int(p.number("depth", 1, 1, mostDepth)),
	}
	return q, p.end()
}

// parseBytesQuery reads the parameters of a request. ranged says that the request has a range beside it.
func parseBytesQuery(v url.Values, ranged bool) (api.BytesQuery, *api.Error) {
	p := parameters{v: v}
	q := api.BytesQuery{
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
		p.fail(bad(api.BadParameter, "archive", "archive=%q is not possible; the only format is tar", archive))
	}
	if err := p.end(); err != nil {
		return q, err
	}
	return q, checkBytesQuery(q, ranged)
}

// checkBytesQuery refuses parameters that do not go together.
func checkBytesQuery(q api.BytesQuery, ranged bool) *api.Error {
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
		return bad(api.BadParameter, "", "%s do not go together; choose one", strings.Join(ways, " and "))
	case !q.Archive && (len(q.Exclude) > 0 || q.MaxBytes != 0):
		return bad(api.BadParameter, "", "exclude and maxBytes are for archives; add archive=tar")
	case len(q.Exclude) > mostExcludes:
		return bad(api.BadParameter, "exclude", "exclude is given %d times, and at most %d are possible", len(q.Exclude), mostExcludes)
	}
	return nil
}
