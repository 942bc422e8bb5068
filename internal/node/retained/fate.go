package retained

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// fate is what is to become of many volumes.
type fate struct {
	phase    volume.Phase
	outcome  volume.Outcome
	lifespan time.Duration
	terms    volume.Terms
	inText   bool // each entry has the terms in its text, because there are too many fates
}

func fateOf(r *volume.Record) fate {
	return fate{phase: r.Phase, outcome: r.Outcome, lifespan: r.Lifespan, terms: r.Terms}
}

func (f fate) clone() fate { return f }

func appendTerms(b []byte, t volume.Terms) []byte {
	for _, v := range []int64{int64(t.Lifespan), int64(t.LifespanSucceeded), int64(t.Retain), t.Limit.Bytes, t.Limit.Inodes, int64(t.Mode)} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return b
}

// cutTerms returns the terms that appendTerms has appended.
func cutTerms(b []byte) volume.Terms {
	var values [6]uint64
	for i := range values {
		v, size := binary.Uvarint(b)
		values[i], b = v, b[size:]
	}
	return volume.Terms{
		Lifespan: time.Duration(values[0]), LifespanSucceeded: time.Duration(values[1]), Retain: volume.Retain(values[2]),
		Limit: volume.Size{Bytes: int64(values[3]), Inodes: int64(values[4])}, Mode: uint32(values[5]),
	}
}

// holds are those of the entries that have one. Where too many releases have different texts, further ones have
// none here: those are in the record on disk alone; see the package store. The zero holds is empty and ready to
// use.
type holds struct {
	all   map[number]hold
	texts interned[holdTexts]
}

type hold struct {
	kind  volume.HoldKind
	after time.Duration // when it ends
	texts number
}

// holdTexts are often those of many volumes that a person decided about at once.
type holdTexts struct{ by, why string }

// mostReleaseTexts bounds the different texts while there are releases: anybody who may release a volume may give
// each one another reason, of up to 1.3 KB, and there is no bound to how many volumes are released, as there is for
// pins.
const mostReleaseTexts = 2048

func (t holdTexts) clone() holdTexts { return holdTexts{strings.Clone(t.by), strings.Clone(t.why)} }

func (h *holds) add(n number, is volume.Hold) {
	if is == (volume.Hold{}) {
		return
	}
	if h.all == nil {
		h.all = map[number]hold{}
	}
	texts, few := h.texts.useFew(holdTexts{is.By, is.Why}, mostReleaseTexts)
	if !few && is.Kind == volume.Released {
		texts = h.texts.use(holdTexts{})
	} else if !few {
		texts = h.texts.use(holdTexts{is.By, is.Why})
	}
	h.all[n] = hold{kind: is.Kind, after: is.For, texts: texts}
}

func (h *holds) remove(n number) {
	if is, ok := h.all[n]; ok {
		h.texts.drop(is.texts)
		delete(h.all, n)
	}
}

// of returns the hold of an entry; the zero Hold if it has none.
func (h *holds) of(n number) volume.Hold {
	is, ok := h.all[n]
	if !ok {
		return volume.Hold{}
	}
	texts := h.texts.value(is.texts)
	return volume.Hold{Kind: is.kind, For: is.after, By: texts.by, Why: texts.why}
}
