package handlers

import (
	"math"
	"net/url"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/asked"
	"github.com/katbox/katbox/internal/model/volume"
)

// parseQuery reads the parameters of a request.
func parseQuery(v url.Values) (volume.Selection, *api.Error) {
	p := asked.New(v)
	s := selection(p)
	s.Since = p.Time("since")
	if before := p.Text("before"); before != "" {
		key, ok := api.ParseKey(before)
		if !ok {
			p.Fail(bad(api.BadContinue, "before", "before=%q is not the \"continue\" of a page; begin the list anew", before))
		}
		s.Before = key
	}
	return s, p.End()
}

// selection reads the parameters that lists of retained and of gone volumes share.
func selection(p *asked.Parameters) volume.Selection {
	s := volume.Selection{
		Namespace: p.Text("namespace"), NoNamespace: p.Flag("noNamespace"),
		PodName: p.Text("pod"), PodPrefix: p.Text("podPrefix"), Pod: volume.PodUID(p.Text("podUID")),
		Job: p.Text("job"), OwnerKind: p.Text("ownerKind"),
		Limit: int(p.Number("limit", api.StandardVolumes, 1, api.MostVolumes)),
	}
	t := volume.Tenancy{UID: p.Text("namespaceUID"), Since: p.Time("publishedSince")}
	if p.Has("namespaceUID") || p.Has("publishedSince") {
		s.Tenancy = &t // also an empty one, which owns nothing
	}
	return s
}

// parseGoneQuery reads the parameters of a request.
func parseGoneQuery(v url.Values) (volume.GoneSelection, *api.Error) {
	p := asked.New(v)
	s := volume.GoneSelection{Selection: selection(p), ID: volume.ID(p.Text("id")), Below: uint64(p.Number("before", 0, 0, math.MaxInt64))}
	return s, p.End()
}
