package asked

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// Parameters reads the parameters of a request. It keeps the first error.
type Parameters struct {
	v   url.Values
	err *api.Error
	// known are the names that were asked for.
	known []string
}

// New returns the parameters of a request.
func New(v url.Values) *Parameters { return &Parameters{v: v} }

// All returns all values of a parameter that may be given several times.
func (p *Parameters) All(name string) []string {
	p.known = append(p.known, name)
	return p.v[name]
}

// Has reports whether a parameter is given.
func (p *Parameters) Has(name string) bool { return p.v.Has(name) }

// Fail keeps an error.
func (p *Parameters) Fail(err *api.Error) {
	if p.err == nil {
		p.err = err
	}
}

// Text returns a parameter that may be given once; empty if it is not.
func (p *Parameters) Text(name string) string {
	p.known = append(p.known, name)
	if len(p.v[name]) > 1 {
		p.Fail(Bad(api.BadParameter, name, "the parameter %s is given %d times; give it once", name, len(p.v[name])))
	}
	return p.v.Get(name)
}

// Number returns a number between least and most, or instead if it is not given.
func (p *Parameters) Number(name string, instead, least, most int64) int64 {
	text := p.Text(name)
	if text == "" {
		return instead
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		p.Fail(Bad(api.BadParameter, name, "%s=%q is not a number between %d and %d", name, text, least, most))
		return instead
	}
	return n
}

// Time returns a time; the zero time if it is not given.
func (p *Parameters) Time(name string) time.Time {
	text := p.Text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		p.Fail(Bad(api.BadParameter, name, "%s=%q is not a time of RFC 3339, such as 2026-11-22T03:04:05Z", name, text))
	}
	return t
}

// Flag returns whether a parameter is true; false if it is not given.
func (p *Parameters) Flag(name string) bool {
	switch text := p.Text(name); text {
	case "", "false":
		return false
	case "true":
		return true
	default:
		p.Fail(Bad(api.BadParameter, name, "%s=%q is neither true nor false", name, text))
		return false
	}
}

// End returns the first error. A name that is not known is one: a misspelled parameter must not
// send a whole file instead of its last lines.
func (p *Parameters) End() *api.Error {
	for _, name := range slices.Sorted(maps.Keys(p.v)) {
		if !slices.Contains(p.known, name) {
			p.Fail(Bad(api.BadParameter, name, "there is no parameter %q; there are %s", name, strings.Join(p.known, ", ")))
		}
	}
	return p.err
}
