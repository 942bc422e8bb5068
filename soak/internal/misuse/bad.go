package misuse

import (
	"path/filepath"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
)

// bad is one way to make a bad request of a good one.
type bad struct {
	// what says what is wrong, for people.
	what   string
	method history.Method
	// code is what CSI wants as the answer.
	code codes.Code
	// fields are the names of the field, one of which has to be in the message:
	// the specification's own, or one that everybody understands. None are
	// needed where nothing is wrong with any field.
	fields []string
	spoil  func(s *Site, r *request)
}

// request is the bad request.
func (b bad) request(s *Site) *request {
	r := s.good()
	b.spoil(s, r)
	return r
}

// leadsTo are the paths that the request leads to if a driver takes it as it
// is.
func (b bad) leadsTo(s *Site) []string {
	r := b.request(s)
	// Not joined, but written one after the other, so that they are read as a
	// careless driver does.
	paths := mayBe(s.work + "/" + r.context[keyPodUID] + "/" + r.id)
	if filepath.IsAbs(r.path) {
		return append(paths, mayBe(r.path)...)
	}
	for _, from := range []string{"/", s.kubelet, s.work} {
		paths = append(paths, mayBe(from+"/"+r.path)...)
	}
	return paths
}

// bads are all of them.
var bads = slices.Concat(badIDs(), badPaths(), badPods(), badContexts(), badAttributes(), badCapabilities(), unknown())

// unknown is what is wrong with no field: there is no such volume.
func unknown() []bad {
	return []bad{{
		what: "a volume that does not exist", method: getVolumeStats, code: codes.NotFound,
		spoil: func(*Site, *request) {},
	}}
}
