package policy

import (
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/katbox/katbox/internal/model/volume"
)

const example = `
# The first entry that matches is used.
namespaces:
- match: [ci, "team-*"]
  lifespan: 3d
  lifespanSucceeded: 1h
  sizeLimit: 10Gi
  maxSizeLimit: 100Gi
  inodeLimit: 100000
  retain: [OnFailure, Always]
  maxRetained: {bytes: 200Gi, inodes: 10M}
  maxPerOwner: {first: 1, last: 5}
- match: [team-a]
  lifespan: 1h
- match: [shown]
  attach: true
- match: [hidden]
  attach: false
  logs: false
- match: [short]
  maxLifespan: 2h
  maxInodeLimit: 1000
`

func TestParse(t *testing.T) {
	all := flags()
	all.LifespanSucceeded, all.Limit = 3*hour, volume.Size{Bytes: gi, Inodes: 5000}
	p, err := Parse(all, []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	ci := Bounds{Lifespan: 72 * hour, LifespanSucceeded: hour, MaxLifespan: 72 * hour, Limit: volume.Size{Bytes: 10 * gi, Inodes: 100_000},
		MaxLimit: volume.Size{Bytes: 100 * gi}, Retain: []volume.Retain{volume.RetainOnFailure, volume.RetainAlways},
		MaxRetained: volume.Size{Bytes: 200 * gi, Inodes: 10_000_000}, PerOwner: volume.PerOwner{First: 1, Last: 5}}
	short := all
	short.Lifespan, short.LifespanSucceeded, short.MaxLifespan = 2*hour, 2*hour, 2*hour
	short.Limit.Inodes, short.MaxLimit.Inodes = 1000, 1000
	hidden := all
	hidden.NoAttach, hidden.NoLogs = true, true
	for namespace, want := range map[string]Bounds{"ci": ci, "team-a": ci, "team-": ci, "short": short, "shorter": all,
		"": all, "xteam-a": all, "hidden": hidden, "shown": all} {
		if got := p.Bounds(namespace); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", namespace, got, want)
		}
	}
	if got := p.PerOwner("ci"); got != ci.PerOwner {
		t.Errorf("of each owner in ci: %+v", got)
	}
	if got := p.MaxRetained("ci"); got != ci.MaxRetained {
		t.Errorf("retained in ci: %+v", got)
	}
	terms, err := p.Terms("ci", nil)
	if err != nil || terms.Retain != volume.RetainOnFailure {
		t.Errorf("%+v (%v), want the first of what may be retained", terms, err)
	}
	for _, content := range []string{"namespaces: []", "---\nnamespaces: []\n", `{"namespaces": [{"match": ["*"], "lifespan": "1h"}]}`} {
		if _, err := Parse(all, []byte(content)); err != nil {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	entry := func(rest string) string { return "namespaces:\n- match: [ci]\n  " + rest }
	for content, want := range map[string]string{
		"":                                           "no list with the name namespaces",
		"# nothing":                                  "no list with the name namespaces",
		"namespaces:":                                "no list with the name namespaces",
		"namespaces: 1":                              "json",
		"namespace: []":                              `unknown field "namespace"`,
		"namespaces: []\nnamespaces: []":             "already set",
		"namespaces: []\n---\nnamespaces: []":        "more than one document",
		"namespaces: [":                              "yaml",
		"\x00":                                       "control characters",
		"namespaces:\n- lifespan: 1h":                "match is missing",
		"namespaces:\n- match: []":                   "match is missing",
		"namespaces:\n- match: [A]":                  `"A" is not the name of a namespace`,
		"namespaces:\n- match: ['[a']":               "is not the name of a namespace",
		entry("lifespam: 1h"):                        `unknown field "lifespam"`,
		entry("lifespan: 1h\n  lifespan: 1h"):        "already set",
		entry("lifespan: 12"):                        `namespaces[0] ["ci"]: lifespan "12" is not a duration`,
		entry("lifespan: 0s"):                        "is not longer than 0",
		entry("lifespan: -1h"):                       "is not longer than 0",
		entry("lifespan: [1h]"):                      "neither a string nor a number",
		entry("lifespan: 2h\n  maxLifespan: 1h"):     "longer than the longest",
		entry("lifespanSucceeded: 13h"):              "longer than the lifespan",
		entry("sizeLimit: lots"):                     `sizeLimit "lots" is not a quantity`,
		entry("sizeLimit: -1"):                       "is not a quantity",
		entry("sizeLimit: 1e30"):                     "is not a quantity",
		entry("sizeLimit: 2Gi\n  maxSizeLimit: 1Gi"): "the limit of bytes, 2Gi, is more than the most, 1Gi",
		entry("inodeLimit: 2\n  maxInodeLimit: 1"):   "the limit of inodes, 2, is more than the most, 1",
		entry("retain: []"):                          "retain is empty",
		entry("retain: [always]"):                    `"always" is not Always`,
		entry("maxRetained: {bytes: x}"):             `maxRetained.bytes "x" is not a quantity`,
		entry("maxRetained: 1Gi"):                    "json",
		entry("maxPerOwner: {first: 1}"):             "maxPerOwner: last is missing",
		entry("maxPerOwner: {first: -1, last: 1}"):   "maxPerOwner: first is -1",
		entry("maxPerOwner: {last: 1001}"):           "maxPerOwner: last is 1001",
		entry("maxPerOwner: 5"):                      "json",
		entry("attach: never"):                       "json",
		strings.Repeat("#", MaxFile+1):               "is larger than",
		"a: &a [x]\nb: &b [" + strings.Repeat("*a,", 20) + "]\nc: [" + strings.Repeat("*b,", 20) + "]": "unknown field",
	} {
		p, err := Parse(flags(), []byte(content))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want an error with %q", content, err, want)
			continue
		}
		checkLine(t, err)
		if p != nil {
			t.Errorf("%.60q: a policy beside the error", content)
		}
	}
}

func checkLine(t *testing.T, err error) {
	t.Helper()
	if text := err.Error(); len(text) > 1500 || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("not one plain line: %q", text)
	}
}

// FuzzParse looks for a file that breaks the parser, whose error is not one plain line, or whose
// bounds contradict one another.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("namespaces: [{match: [a], sizeLimit: 1e3, retain: [Never]}]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		p, err := Parse(flags(), content)
		if err != nil {
			checkLine(t, err)
			return
		}
		for _, e := range p.entries {
			if err := e.bounds.Check(); err != nil {
				t.Errorf("%q: %v", e.match, err)
			}
			if terms, err := e.bounds.terms(asked{}); err != nil || terms.Check() != nil {
				t.Errorf("%q: %+v (%v) without attributes", e.match, terms, err)
			}
		}
	})
}
