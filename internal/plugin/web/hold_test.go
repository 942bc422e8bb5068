package web

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// pin is a patch as the page sends it.
const pin = `{"spec":{"keepUntil":"2026-11-24T03:00:00Z","keepReason":"post-mortem"}}`

// patch returns a request that changes how long the volume is kept.
func (p *play) patch(body string) request {
	r := p.good("PATCH", volume).with("Content-Type", mergePatch)
	r.body = body
	return r
}

// What the cluster gets is what the page may change, and nothing else of the request.
func TestHolds(t *testing.T) {
	p := start(t, Config{})
	var got []string
	p.cluster.answers(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.RequestURI+" "+r.Header.Get("Content-Type")+" "+string(text))
		if len(r.Header) != 2 || r.Header.Get("Accept") != "application/json" {
			t.Errorf("the cluster sees %q", r.Header)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", "http://evil.example/")
		_, _ = io.WriteString(w, `{"kind":"RetainedVolume"}`)
	})
	for sent, want := range map[string]string{
		pin:                           pin,
		`{"spec":{"keepUntil":null}}`: `{"spec":{"keepUntil":null}}`,
		` { "SPEC": {"keepuntil": "2026-11-24T03:00:00Z", "keepReason": "a \u003cb\u003e"} } `: `{"spec":{"keepUntil":"2026-11-24T03:00:00Z",` +
			`"keepReason":"a \u003cb\u003e"}}`,
	} {
		got = nil
		answer := p.page(p.patch(sent).with("Authorization", "Bearer mine").with("Impersonate-User", "root"))
		if answer.code != 200 || answer.body != `{"kind":"RetainedVolume"}` || answer.header.Get("Location") != "" {
			t.Errorf("%s: %d %q %q", sent, answer.code, answer.header, answer.body)
		}
		if len(got) != 1 || got[0] != "PATCH "+volume+" "+mergePatch+" "+want {
			t.Errorf("%s: the cluster was asked %q", sent, got)
		}
	}
}

// A patch of something else, in another form, or with more than a pin has, does not reach the cluster.
func TestOtherPatches(t *testing.T) {
	p := start(t, Config{})
	for _, body := range []string{
		`{}`, `null`, `[]`, `1`, `{"spec":{}}`, `{"spec":null}`, `{"spec":{"keepReason":"\"keepUntil\""}}`, `{"spec":{"keepUntil":"tomorrow"}}`,
		`{"spec":{"keepUntil":1}}`, `{"spec":{"keepUntil":{}}}`, `{"spec":{"keepUntil":null,"nodeName":"n1"}}`,
		`{"metadata":{"labels":{}},` + pin[1:],
		pin + pin, pin + "x", pin[:20], `[{"op":"remove","path":"/spec"}]`, `{"spec":{"keepUntil":null,"keepReason":1}}`,
		`{"spec":{"keepUntil":null,"keepReason":"` + strings.Repeat("x", maxBody) + `"}}`,
	} {
		if got := p.page(p.patch(body)); got.code != 400 || !strings.Contains(got.body, `"kind":"Status"`) {
			t.Errorf("%.100s: %d %q", body, got.code, got.body)
		}
	}
	for _, media := range []string{"", "application/json", "application/json-patch+json", "application/apply-patch+yaml", "text/plain"} {
		if got := p.page(p.patch(pin).with("Content-Type", media)); got.code != 400 {
			t.Errorf("%q: %d %q", media, got.code, got.body)
		}
	}
	if asked := p.cluster.requests(); len(asked) > 0 {
		t.Fatalf("the cluster was asked %s %s", asked[0].Method, asked[0].RequestURI)
	}
	for _, target := range []string{base, volume + "/log", volume + "/files", volume + "?force=true", "/session", "/tickets", "/"} {
		r := p.patch(pin)
		r.target = target
		p.refused(r)
	}
	p.refused(p.good("PATCH", volume).with("Content-Type", mergePatch)) // no body
}

// An answer that is none is not taken for a pin, and an error is passed on with what it says.
func TestAnswersToHolds(t *testing.T) {
	p := start(t, Config{})
	const forbidden = `{"kind":"Status","code":403,"message":"which the role katbox-keep includes"}`
	for _, tt := range []struct {
		code, want int
		body, part string
	}{
		{403, 403, forbidden, "katbox-keep"}, {409, 409, forbidden, "katbox-keep"}, {200, 502, "<html>", "did not answer as expected"},
		{302, 502, "{}", "did not answer as expected"}, {200, 502, `{"kind":`, "did not answer as expected"},
	} {
		p.cluster.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.code)
			_, _ = io.WriteString(w, tt.body)
		})
		got := p.page(p.patch(pin))
		if got.code != tt.want || !strings.Contains(got.body, tt.part) || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %s: %d %q %q", tt.code, tt.body, got.code, got.header, got.body)
		}
	}
}
