package nodehold

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// mostMarker bounds the annotation, and mostPast how many holds it names. Each counts for a minute at least, so there
	// are 20 in two hours, and one more that ends.
	mostMarker = 4096
	mostPast   = 32
)

// span is a time during which a node was held.
type span struct{ from, to time.Time }

// mark is what the Marker says. All its times are whole seconds.
type mark struct {
	// since is zero if the node is not held.
	since time.Time
	// set are the annotations that were missing when the hold began.
	set []string
	// past are the holds that have ended within the window.
	past []span
}

func (m mark) held() bool  { return !m.since.IsZero() }
func (m mark) empty() bool { return !m.held() && len(m.past) == 0 }

func (m mark) equal(other mark) bool {
	return m.since.Equal(other.since) && slices.Equal(m.set, other.set) &&
		slices.EqualFunc(m.past, other.past, func(a, b span) bool { return a.from.Equal(b.from) && a.to.Equal(b.to) })
}

// words is a mark in JSON. A past hold is "2026-11-30T16:00:00Z/7m12s".
type words struct {
	Since time.Time `json:"since,omitzero"`
	Set   []string  `json:"set,omitempty"`
	Past  []string  `json:"past,omitempty"`
}

func (m mark) String() string {
	w := words{Since: m.since.UTC(), Set: m.set}
	for _, s := range m.past {
		w.Past = append(w.Past, s.from.UTC().Format(time.RFC3339)+"/"+s.to.Sub(s.from).String())
	}
	text, _ := json.Marshal(w) // of strings and a time of this century
	return string(text)
}

var errMarker = errors.New("the annotation " + Marker + " cannot be read")

// parse reads a Marker. Who may write to Nodes wrote it: it removes no other annotations than those that hold a node.
func parse(text string) (mark, error) {
	if text == "" {
		return mark{}, nil
	}
	var w words
	if len(text) > mostMarker {
		return mark{}, fmt.Errorf("%w: it has %d bytes", errMarker, len(text))
	}
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return mark{}, fmt.Errorf("%w: %w", errMarker, err)
	}
	m := mark{since: w.Since.UTC().Truncate(time.Second)}
	if !m.since.IsZero() && !plausible(m.since) {
		return mark{}, fmt.Errorf("%w: it is of the year %d", errMarker, m.since.Year())
	}
	for _, key := range Holding() {
		if slices.Contains(w.Set, key) {
			m.set = append(m.set, key)
		}
	}
	if len(w.Past) > mostPast {
		return mark{}, fmt.Errorf("%w: it names %d holds", errMarker, len(w.Past))
	}
	for _, one := range w.Past {
		from, length, _ := strings.Cut(one, "/")
		began, err := time.Parse(time.RFC3339, from)
		if err != nil {
			return mark{}, fmt.Errorf("%w: %w", errMarker, err)
		}
		took, err := time.ParseDuration(length)
		if err != nil || took < 0 || took > window {
			return mark{}, fmt.Errorf("%w: a hold took %q", errMarker, length)
		}
		if began = began.UTC().Truncate(time.Second); !plausible(began) {
			return mark{}, fmt.Errorf("%w: it is of the year %d", errMarker, began.Year())
		}
		m.past = append(m.past, span{began, began.Add(took.Truncate(time.Second))})
	}
	return m, nil
}

// plausible reports whether a gateway may have written a time.
func plausible(t time.Time) bool { return t.Year() >= 2000 && t.Year() < 3000 }
