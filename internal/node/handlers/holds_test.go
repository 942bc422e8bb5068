package handlers

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestHolds: a volume is pinned, released and purged, and the answers say what is now.
func TestHolds(t *testing.T) {
	n := newNode(t)
	id, _ := n.add(1)
	until := time.Unix(50_000, 0).UTC()
	v, err := n.client.Pin(t.Context(), id, until, "for the post-mortem")
	want := &api.Hold{Kind: "Pinned", Until: until, By: localUser, Why: "for the post-mortem"}
	if err != nil || !reflect.DeepEqual(v.Hold, want) {
		t.Errorf("pin: %+v, %v, want %+v", v.Hold, err, want)
	}
	if v, err = n.client.Volume(t.Context(), id); err != nil || v.Hold == nil || v.Hold.Kind != "Pinned" {
		t.Errorf("described: %+v, %v", v, err)
	}
	if v, err = n.client.Release(t.Context(), id, ""); err != nil || v.Hold == nil || v.Hold.Kind != "Released" {
		t.Errorf("release: %+v, %v", v.Hold, err)
	}
	if v, err = n.client.Unpin(t.Context(), id); err != nil || v.Hold != nil {
		t.Errorf("unpin: %+v, %v", v.Hold, err)
	}
	must(t, n.client.Purge(t.Context(), id, "a leaked secret"))
	if n.volumes.purgedBy != localUser || n.volumes.purgedWhy != "a leaked secret" {
		t.Errorf("purged by %q: %q", n.volumes.purgedBy, n.volumes.purgedWhy)
	}
	_, err = n.client.Pin(t.Context(), id, until, "too late")
	wantCode(t, "pin what is gone", err, 404)
}

// TestHoldsOfAPublishedVolume: they are refused.
func TestHoldsOfAPublishedVolume(t *testing.T) {
	n := newNode(t)
	id, _ := n.add(1)
	n.volumes.all[volume.ID(id)].Record.Phase = volume.Published
	_, pinned := n.client.Pin(t.Context(), id, time.Unix(50_000, 0), "why")
	_, released := n.client.Release(t.Context(), id, "")
	for what, err := range map[string]error{"pin": pinned, "release": released, "purge": n.client.Purge(t.Context(), id, "")} {
		wantCode(t, what, err, 409)
	}
}

// TestBadHolds: a body or parameter that is not exactly right changes nothing.
func TestBadHolds(t *testing.T) {
	n := newNode(t)
	id, _ := n.add(1)
	before, err := n.client.Pin(t.Context(), id, time.Unix(50_000, 0), "before")
	must(t, err)
	send := func(method, query, body, contentType string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, "http://katbox/v1/volumes/"+id+query, strings.NewReader(body))
		must(t, err)
		request.Header.Set("Content-Type", contentType)
		answer, err := n.wire.RoundTrip(request)
		must(t, err)
		must(t, answer.Body.Close())
		return answer.StatusCode
	}
	for _, body := range []string{
		``, `null`, `[]`, `{}`, `{"reason":"x"}`, `{"keepUntil":1,"reason":"x"}`, `{"keepUntil":"","reason":"x"}`,
		`{"keepUntil":"tomorrow","reason":"x"}`, `{"keepUntil":"2026-11-22T03:04:05Z"}`, `{"keepUntil":"2026-11-22T03:04:05Z","reason":" "}`,
		`{"keepUntil":"2026-11-22T03:04:05Z","reason":"a\nb"}`, `{"keepUntil":"2026-11-22T03:04:05Z","reason":"\u001b[31m"}`,
		`{"keepUntil":"2026-11-22T03:04:05Z","reason":"` + strings.Repeat("x", volume.MaxHoldWhy+1) + `"}`,
		`{"keepUntil":"2026-11-22T03:04:05Z","reason":"` + strings.Repeat("x", mostKeep) + `"}`,
		`{"keepUntil":null,"reason":"x"}`, `{"keepUntil":null,"lifespan":"1h"}`, `{"keepUntill":null}`,
		`{"keepUntil":null}{}`, `{"keepUntil":null`,
	} {
		if code := send(http.MethodPatch, "", body, "application/json"); code != 400 {
			t.Errorf("PATCH %.60s: code %d, want 400", body, code)
		}
	}
	if code := send(http.MethodPatch, "", `{"keepUntil":null}`, "text/plain"); code != 400 {
		t.Errorf("PATCH of text: code %d", code)
	}
	if code := send(http.MethodPatch, "?x=1", `{"keepUntil":null}`, "application/json"); code != 400 {
		t.Errorf("PATCH with a query: code %d", code)
	}
	for _, query := range []string{
		"?grace=-1s", "?grace=soon", "?grace=1s&grace=2s", "?reason=a%0Ab", "?reason=%FF",
		"?reason=" + strings.Repeat("x", volume.MaxHoldWhy+1), "?x=1",
	} {
		if code := send(http.MethodDelete, query, "", ""); code != 400 {
			t.Errorf("DELETE %.60s: code %d, want 400", query, code)
		}
	}
	after, err := n.client.Volume(t.Context(), id)
	if must(t, err); !reflect.DeepEqual(before, after) {
		t.Errorf("it was %+v, and is %+v", before, after)
	}
	if code := send(http.MethodPatch, "", `{"keepUntil":null}`, "application/json; charset=utf-8"); code != 200 {
		t.Errorf("the connection is still good: code %d", code)
	}
}

// TestWhoHolds: a hold names the user of a gateway, cut and cleaned to what a record can have. No other client
// can name a user.
func TestWhoHolds(t *testing.T) {
	for user, want := range map[string]string{
		"alice":                     "alice",
		"a\nb\x1b[31m":              "a\ufffdb\ufffd[31m",
		strings.Repeat("x", 253):    strings.Repeat("x", 253),
		strings.Repeat("é", 200):    strings.Repeat("é", 126),
		"\xff\xfe":                  "\ufffd",
		strings.Repeat("\x00", 300): strings.Repeat("\ufffd", 84),
	} {
		for _, gateway := range []bool{true, false} {
			n := newNode(t, func(h *handler) { h.Gateway = gateway })
			id, _ := n.add(1)
			v, err := n.client.OnBehalf(user, "audit-1").Pin(t.Context(), id, time.Unix(50_000, 0), "why")
			must(t, err)
			if want := map[bool]string{true: want, false: localUser}[gateway]; v.Hold.By != want {
				t.Errorf("gateway %t: %q is %q, want %q", gateway, user, v.Hold.By, want)
			}
		}
	}
}

// TestHoldsAreLogged: one line for each, also for one that was refused.
func TestHoldsAreLogged(t *testing.T) {
	lines := make(chan string, 100)
	n := newNode(t, func(h *handler) {
		h.Gateway, h.Log = true, funcr.New(func(_, line string) { lines <- line }, funcr.Options{})
	})
	id, _ := n.add(1)
	client := api.NewClient("node", n.overHTTP2()).OnBehalf("alice", "audit-1")
	_, err := client.Pin(t.Context(), id, time.Unix(50_000, 0), "why")
	must(t, err)
	_, err = client.Pin(t.Context(), id, time.Unix(50_000, 0), "")
	wantCode(t, "no reason", err, 400)
	_, err = client.Unpin(t.Context(), id)
	must(t, err)
	_, err = client.Release(t.Context(), id, "")
	must(t, err)
	must(t, client.Purge(t.Context(), id, ""))
	wantCode(t, "again", client.Purge(t.Context(), id, ""), 404)
	// A line comes after its answer, so their order may be another one.
	all := ""
	for range 6 {
		all += <-lines + "\n"
	}
	for _, want := range []string{
		`"verb"="pin" "outcome"="complete"`, `"verb"="pin" "outcome"="bad"`, `"verb"="unpin" "outcome"="complete"`,
		`"verb"="release" "outcome"="complete"`, `"verb"="purge" "outcome"="complete"`, `"verb"="purge" "outcome"="not_found"`,
	} {
		if strings.Count(all, want) != 1 {
			t.Errorf("logged without %s:\n%s", want, all)
		}
	}
	if strings.Count(all, `"user"="alice" "auditID"="audit-1"`) != 6 {
		t.Errorf("a line does not say who asked:\n%s", all)
	}
}

// TestTerms: a volume says how its pod ended, and what it was promised.
func TestTerms(t *testing.T) {
	n := newNode(t)
	id, _ := n.add(1)
	r := &n.volumes.all[volume.ID(id)].Record
	r.Outcome = volume.Stopped
	r.Terms = volume.Terms{
		Lifespan: 72 * time.Hour, LifespanSucceeded: time.Hour, Retain: volume.RetainOnFailure, Limit: volume.Size{Bytes: 5, Inodes: 6},
	}
	v, err := n.client.Volume(t.Context(), id)
	must(t, err)
	want := &api.Terms{Lifespan: "3d", LifespanSucceeded: "1h", Retain: "OnFailure", LimitBytes: 5, LimitInodes: 6}
	if v.Outcome != "Stopped" || !reflect.DeepEqual(v.Terms, want) {
		t.Errorf("%q, %+v, want %+v", v.Outcome, v.Terms, want)
	}
	n.volumes.all[volume.ID(id)].LimitNotEnforced = true
	if v, err = n.client.Volume(t.Context(), id); err != nil || !v.Terms.LimitNotEnforced {
		t.Errorf("not enforced: %+v, %v", v.Terms, err)
	}
}
