package handlers

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// parameters reads the parameters of a request. It keeps the first error.
type parameters struct {
	v   url.Values
	err *api.Error
	// known are the names that were asked for.
	known []string
}

func (p *parameters) fail(err *api.Error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *parameters) text(name string) string {
	p.known = append(p.known, name)
	if len(p.v[name]) > 1 {
		p.fail(bad(api.BadParameter, name, "the parameter %s is given %d times; give it once", name, len(p.v[name])))
	}
	return p.v.Get(name)
}

// number returns a number between least and most, or instead if it is not given.
func (p *parameters) number(name string, instead, least, most int64) int64 {
	text := p.text(name)
	if text == "" {
		return instead
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		p.fail(bad(api.BadParameter, name, "%s=%q is not a number between %d and %d", name, text, least, most))
		return instead
	}
	return n
}

// time returns a time; the zero time if it is not given.
func (p *parameters) time(name string) time.Time {
	text := p.text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		p.fail(bad(api.BadParameter, name, "%s=%q is not a time of RFC 3339, such as 2026-11-22T03:04:05Z", name, text))
	}
	return t
}

func (p *parameters) flag(name string) bool {
	switch text := p.text(name); text {
	case "", "false":
		return false
	case "true":
		return true
	default:
		p.fail(bad(api.BadParameter, name, "%s=%q is neither true nor false", name, text))
		return false
	}
}

// end returns the first error. A name that is not known is one: a misspelled parameter must not
// send a whole file instead of its last lines.
func (p *parameters) end() *api.Error {
	for _, name := range slices.Sorted(maps.Keys(p.v)) {
		if !slices.Contains(p.known, name) {
			p.fail(bad(api.BadParameter, name, "there is no parameter %q; there are %s", name, strings.Join(p.known, ", ")))
		}
	}
	return p.err
}
