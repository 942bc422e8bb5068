package fleet

import (
	"cmp"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// place is where a volume stands in the order of all volumes. The zero place is above all others.
type place struct {
	at       time.Time
	id, node string
}

// lowest is less than any ID that a volume has.
const lowest = "\x01"

// bottom is below all volumes.
var bottom = place{id: lowest}

// above returns the lowest place above all volumes of a time; the top for a time that is not said.
func above(at time.Time) place {
	if !at.After(time.Unix(0, 0)) {
		return place{}
	}
	return place{at: at.Add(1), id: lowest}
}

// placeOf returns where an entry stands.
func placeOf(v *api.Volume) place { return place{*v.RetainedAt, v.ID, v.Node} }

// isTop reports whether the place is above all volumes.
func (p place) isTop() bool { return p.id == "" }

// compare returns 1 if p is above q, which is that its volume is newer, 0 if both are the same place,
// and -1 else.
func (p place) compare(q place) int {
	switch {
	case p.isTop() && !q.isTop():
		return 1
	case q.isTop() && !p.isTop():
		return -1
	}
	return cmp.Or(p.at.Compare(q.at), strings.Compare(p.id, q.id), strings.Compare(p.node, q.node))
}

// below returns the Continue of a query for all volumes of a node that are below the place.
func (p place) below(node string) string {
	if p.isTop() {
		return ""
	}
	id := p.id
	if node < p.node && len(id) < volume.MaxNameLength {
		// A volume with the same time and ID is below, too. This is the next ID: none has a NUL.
		id += "\x01"
	}
	return api.FormatKey(volume.Key{Unpublished: p.at, ID: volume.ID(id)})
}
