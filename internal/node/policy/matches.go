package policy

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// maxMatches is how many namespaces matches remembers. A name takes some 100 bytes.
const maxMatches = 1 << 16

// pattern is one of path.Match, with what comes before its first wildcard: most patterns differ in that.
type pattern struct{ glob, prefix string }

func newPattern(glob string) pattern {
	prefix := glob
	if at := strings.IndexAny(glob, "*?"); at >= 0 {
		prefix = glob[:at]
	}
	return pattern{glob, prefix}
}

func (p pattern) matches(namespace string) bool {
	if !strings.HasPrefix(namespace, p.prefix) {
		return false
	}
	ok, _ := path.Match(p.glob, namespace)
	return ok
}

// matches remembers which bounds a namespace has: a policy file has room for 100,000 patterns, and the
// same namespaces are asked about again and again. The zero matches is ready to use, by any goroutine.
type matches struct {
	mu    sync.RWMutex
	known map[string]*Bounds
}

// Bounds are those of a namespace; "" is one whose name is not known.
func (p *Policy) Bounds(namespace string) Bounds {
	if len(p.entries) == 0 {
		return p.flags
	}
	p.matches.mu.RLock()
	b, ok := p.matches.known[namespace]
	p.matches.mu.RUnlock()
	if !ok {
		b = p.match(namespace)
		p.matches.add(namespace, b)
	}
	return *b
}

// match goes through the patterns; the first entry with one that matches counts.
func (p *Policy) match(namespace string) *Bounds {
	for i := range p.entries {
		if slices.ContainsFunc(p.entries[i].match, func(of pattern) bool { return of.matches(namespace) }) {
			return &p.entries[i].bounds
		}
	}
	return &p.flags
}

func (m *matches) add(namespace string, b *Bounds) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxMatches {
		m.known = map[string]*Bounds{}
	}
	m.known[strings.Clone(namespace)] = b // it may be part of a larger text
}

// Prepare looks for the bounds of the namespaces that another policy was asked about, so that no
// caller waits for that once this one takes its place.
func (p *Policy) Prepare(before *Policy) {
	before.matches.mu.RLock()
	names := make([]string, 0, len(before.matches.known))
	for name := range before.matches.known {
		names = append(names, name)
	}
	before.matches.mu.RUnlock()
	for _, name := range names {
		p.Bounds(name)
	}
}
