package api

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/volume"
)

const (
	// standardVolumes and mostVolumes are how many volumes a page holds, if the request does not say
	// and at most; the others are the same of file names and of levels of directories.
	standardVolumes = 500
	mostVolumes     = 5000
	standardNames   = 1000
	mostNames       = 10_000
	mostDepth       = 16
	// mostTailLines bounds tailLines, mostTail how many bytes are searched for them.
	mostTailLines = 100_000
	mostTail      = 8 << 20
	// mostExcludes bounds how many patterns a request may exclude.
	mostExcludes = 64
)

// Query selects retained volumes. A zero field selects all.
type Query struct {
	Namespace string
	// Tenancy leaves out volumes that do not belong to the namespace as it is now.
	Tenancy *volume.Tenancy
	// NoNamespace selects volumes whose namespace is not known.
	NoNamespace bool
	Pod         string // the pod's name
	PodPrefix   string // the beginning of the pod's name
	PodUID      string
	Job         string // the Job that owns the pod
	OwnerKind   string
	// Since leaves out volumes that were retained before.
	Since time.Time
	// Continue is that of the page before.
	Continue string
	// Limit is how many volumes the page may hold, at most 5,000; 0 is 500.
	Limit int
}

func (q Query) values() url.Values {
	v := url.Values{}
	set(v, "namespace", q.Namespace)
	set(v, "pod", q.Pod)
	set(v, "podPrefix", q.PodPrefix)
	set(v, "podUID", q.PodUID)
	set(v, "job", q.Job)
	set(v, "ownerKind", q.OwnerKind)
	if q.NoNamespace {
		v.Set("noNamespace", "true")
	}
	if q.Tenancy != nil {
		v.Set("namespaceUID", q.Tenancy.UID)
		v.Set("publishedSince", q.Tenancy.Since.Format(time.RFC3339Nano))
	}
	set(v, "before", q.Continue)
	setNumber(v, "limit", int64(q.Limit))
	if !q.Since.IsZero() {
		v.Set("since", q.Since.Format(time.RFC3339Nano))
	}
	return v
}

// parseQuery reads what values wrote.
func parseQuery(v url.Values) (volume.Selection, *Error) {
	p := parameters{v: v}
	s := volume.Selection{
		Namespace: p.text("namespace"), NoNamespace: p.flag("noNamespace"),
		PodName: p.text("pod"), PodPrefix: p.text("podPrefix"), Pod: volume.PodUID(p.text("podUID")),
		Job: p.text("job"), OwnerKind: p.text("ownerKind"),
		Limit: int(p.number("limit", standardVolumes, 1, mostVolumes)), Since: p.time("since"),
	}
	if t := (volume.Tenancy{UID: p.text("namespaceUID"), Since: p.time("publishedSince")}); v.Has("namespaceUID") || v.Has("publishedSince") {
		s.Tenancy = &t // also an empty one, which owns nothing
	}
	if before := p.text("before"); before != "" {
		key, ok := ParseKey(before)
		if !ok {
			p.fail(bad(BadContinue, "before", "before=%q is not the \"continue\" of a page; begin the list anew", before))
		}
		s.Before = key
	}
	return s, p.end()
}

// FormatKey writes the place of a volume in a list, as the Continue of a page: seconds, nanoseconds,
// ID. It is empty for the zero Key.
func FormatKey(k volume.Key) string {
	if k.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d.%09d.%s", k.Unpublished.Unix(), k.Unpublished.Nanosecond(), k.ID)
}

// ParseKey reads what FormatKey wrote.
func ParseKey(text string) (volume.Key, bool) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) != 3 {
		return volume.Key{}, false
	}
	seconds, err := strconv.ParseInt(parts[0], 10, 64)
	nanoseconds, err2 := strconv.ParseUint(parts[1], 10, 30)
	id, err3 := volume.ParseID("volume ID", parts[2])
	if err != nil || err2 != nil || err3 != nil || nanoseconds >= uint64(time.Second) {
		return volume.Key{}, false
	}
	return volume.Key{Unpublished: time.Unix(seconds, int64(nanoseconds)), ID: id}, true
}

// FilesQuery selects entries of a volume.
type FilesQuery struct {
	// Path is the ref of a directory, or with Stat of any entry; empty is the top of the volume.
	Path string
	// Continue is that of the page before.
	Continue string
	// Limit is how many entries the page may hold, at most 10,000; 0 is 1,000.
	Limit int
	// Depth is how many levels of directories are listed, at most 16; 0 is 1.
	Depth int
	// Stat describes the entry itself instead of what is in it.
	Stat bool
}

func (q FilesQuery) values() url.Values {
	v := url.Values{}
	set(v, "path", q.Path)
	set(v, "continue", q.Continue)
	setNumber(v, "limit", int64(q.Limit))
	setNumber(v, "depth", int64(q.Depth))
	if q.Stat {
		v.Set("stat", "true")
	}
	return v
}

// parseFilesQuery reads what values wrote, with the standard limits for those that are missing.
func parseFilesQuery(v url.Values) (FilesQuery, *Error) {
	p := parameters{v: v}
	q := FilesQuery{
		Path: p.text("path"), Continue: p.text("continue"), Stat: p.flag("stat"),
		Limit: int(p.number("limit", standardNames, 1, mostNames)), Depth: int(p.number("depth", 1, 1, mostDepth)),
	}
	return q, p.end()
}

// set sets a parameter that is not empty.
func set(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

func setNumber(v url.Values, name string, value int64) {
	if value != 0 {
		v.Set(name, strconv.FormatInt(value, 10))
	}
}

// parameters reads the parameters of a request. It keeps the first error.
type parameters struct {
	v   url.Values
	err *Error
	// known are the names that were asked for.
	known []string
}

func (p *parameters) fail(err *Error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *parameters) text(name string) string {
	p.known = append(p.known, name)
	if len(p.v[name]) > 1 {
		p.fail(bad(BadParameter, name, "the parameter %s is given %d times; give it once", name, len(p.v[name])))
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
		p.fail(bad(BadParameter, name, "%s=%q is not a number between %d and %d", name, text, least, most))
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
		p.fail(bad(BadParameter, name, "%s=%q is not a time of RFC 3339, such as 2026-11-22T03:04:05Z", name, text))
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
		p.fail(bad(BadParameter, name, "%s=%q is neither true nor false", name, text))
		return false
	}
}

// end returns the first error. A name that is not known is one: a misspelled parameter must not
// send a whole file instead of its last lines.
func (p *parameters) end() *Error {
	for _, name := range slices.Sorted(maps.Keys(p.v)) {
		if !slices.Contains(p.known, name) {
			p.fail(bad(BadParameter, name, "there is no parameter %q; there are %s", name, strings.Join(p.known, ", ")))
		}
	}
	return p.err
}
