package api

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestOlderDaemon: a daemon that knows no holds refuses what it does not understand, and the client says
// why. A daemon that knows them is believed.
func TestOlderDaemon(t *testing.T) {
	for _, code := range []int{400, 404, 405, 409} {
		for _, level := range []string{"", LevelHolds} {
			c := NewClient("n1", roundTrip(func(*http.Request) (*http.Response, error) {
				body := `{"kind":"Status","status":"Failure","message":"refused"}`
				return &http.Response{StatusCode: code, Header: http.Header{HeaderLevel: {level}}, Body: io.NopCloser(strings.NewReader(body))}, nil
			}))
			until := time.Unix(1000, 0)
			_, pinned := c.Pin(t.Context(), "a", until, "why")
			_, unpinned := c.Unpin(t.Context(), "a")
			_, released := c.Release(t.Context(), "a", "")
			_, gone := c.Gone(t.Context(), GoneQuery{})
			for what, err := range map[string]error{
				"pin": pinned, "unpin": unpinned, "release": released, "gone": gone, "purge with a reason": c.Purge(t.Context(), "a", "why"),
			} {
				old := errors.Is(err, ErrOlder) && strings.Contains(err.Error(), "n1 is of an older version")
				if refused := (*Error)(nil); old != (level == "" && code != 409) || !old && (!errors.As(err, &refused) || refused.Code != code) {
					t.Errorf("%s, code %d, level %q: %v", what, code, level, err)
				}
			}
			if err := c.Purge(t.Context(), "a", ""); err == nil || err.Error() != "refused" {
				t.Errorf("a purge that any daemon knows: %v", err)
			}
		}
	}
}

// TestHoldRequests: what the client sends.
func TestHoldRequests(t *testing.T) {
	var sent string
	c := NewClient("n1", roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		sent = r.Method + " " + r.URL.RequestURI() + " " + string(body)
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("{}"))}, err
	}))
	until := time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		do   func() error
		want string
	}{
		{func() error { _, err := c.Pin(t.Context(), "a", until, "b"); return err },
			`PATCH /v1/volumes/a {"keepUntil":"2026-11-22T03:04:05Z","reason":"b"}`},
		{func() error { _, err := c.Unpin(t.Context(), "a"); return err }, `PATCH /v1/volumes/a {"keepUntil":null}`},
		{func() error { _, err := c.Release(t.Context(), "a", "b&c"); return err }, `DELETE /v1/volumes/a?grace=1s&reason=b%26c `},
		{func() error { return c.Purge(t.Context(), "a", "b") }, `DELETE /v1/volumes/a?reason=b `},
		{func() error { return c.Purge(t.Context(), "a", "") }, `DELETE /v1/volumes/a `},
		{func() error {
			_, err := c.Gone(t.Context(), GoneQuery{Query: Query{Namespace: "n", Since: until, Continue: "x", Limit: 3}, ID: "i", Continue: 7})
			return err
		}, `GET /v1/gone?before=7&id=i&limit=3&namespace=n `},
	} {
		if err := tt.do(); err != nil || sent != tt.want {
			t.Errorf("sent %q, %v; want %q", sent, err, tt.want)
		}
	}
}
