package api

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// TestBounds: an answer that is longer than it may be, or has more values, is an error; one that fills
// the bounds is not.
func TestBounds(t *testing.T) {
	text := func(n int) string { return `"` + strings.Repeat("a", n-2) + `"` }
	array := func(n int) string { return "[" + strings.Repeat("0,", n-1) + "0]" }
	for _, tt := range []struct {
		name    string
		bounds  bounds
		entries int
		answer  string
		err     string
	}{
		{"fills the bytes", bounds{100, true}, 1, text(100), ""},
		{"a byte too many", bounds{100, true}, 1, text(101), "longer than 100 bytes"},
		{"far too many bytes", bounds{100, false}, 1, text(100_000), "longer than 100 bytes"},
		{"fills the values", bounds{10_000, true}, 1, array(2 * mostValues), ""},
		{"a value too many", bounds{10_000, true}, 1, array(2*mostValues + 1), "more than the 1 entries"},
		{"values that are not counted", bounds{10_000, false}, 1, array(1000), ""},
		{"more entries", bounds{10_000, true}, 100, array(4000), ""},
		{"commas in texts", bounds{10_000, true}, 1, `"` + strings.Repeat(`,{[\"\\`, 1000) + `"`, ""},
		{"commas after a text", bounds{10_000, true}, 1, `["\\",` + array(500)[1:], "more than the 1 entries"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, body := range []io.Reader{strings.NewReader(tt.answer), iotest.OneByteReader(strings.NewReader(tt.answer))} {
				var got any
				err := json.NewDecoder(tt.bounds.reader(body, tt.entries)).Decode(&got)
				if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("decode: %v, want %q", err, tt.err)
				}
			}
		})
	}
}

// TestBoundedClient: a bounded client takes a whole page of the longest entries, and no more.
func TestBoundedClient(t *testing.T) {
	names := strings.Repeat(`{"id":"a","namespace":"b","pod":"c","podUID":"d","volume":"e","serviceAccount":"f","node":"g","phase":"h",`+
		`"publishedAt":"2026-01-01T00:00:00Z","retainedAt":"2026-01-01T00:00:00Z","expiresAt":"2026-01-01T00:00:00Z","mayGoEarlier":true,`+
		`"bytes":1,"inodes":2,"owner":{"verdict":"i","namespaceUID":"j","kind":"k","name":"l","uid":"m","job":"n","jobIndex":"o"}},`, 500)
	answer := ""
	c := NewClient("n1", roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, nil
	})).OnBehalf("u", "a").Bounded(1 << 20)
	answer = `{"items":[` + names[:len(names)-1] + `]}`
	if list, err := c.List(t.Context(), Query{Limit: 500}); err != nil || len(list.Items) != 500 {
		t.Errorf("%d volumes, %v", len(list.Items), err)
	}
	if _, err := c.List(t.Context(), Query{Limit: 8}); err == nil {
		t.Error("500 volumes are taken where 8 were asked for")
	}
	answer = `{"items":[` + strings.Repeat("null,", 100_000) + `null]}`
	if list, err := c.List(t.Context(), Query{}); err == nil {
		t.Errorf("%d volumes are taken where 500 were asked for", len(list.Items))
	}
	answer = `{"entries":[` + strings.Repeat(" ", 2<<20) + `]}`
	if _, err := c.Files(t.Context(), "a", FilesQuery{}); err == nil || !strings.Contains(err.Error(), "n1") {
		t.Errorf("2 MiB: %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
