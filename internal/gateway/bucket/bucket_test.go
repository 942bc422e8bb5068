package bucket

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/katbox/katbox/internal/testing/fakebucket"
)

func newBucket(t *testing.T) (*fakebucket.Store, *Bucket) {
	t.Helper()
	store := fakebucket.New(t)
	b, err := New(Config{Endpoint: store.URL, Region: fakebucket.Region, Bucket: fakebucket.Name, Credentials: fakebucket.Credentials(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return store, b
}

// TestObjects: what is written is listed, looked at, read and deleted.
func TestObjects(t *testing.T) {
	store, b := newBucket(t)
	ctx := t.Context()
	for _, key := range []string{"c/a/1", "c/a/2", "c/a b/3", "c/z", "d/1"} {
		if err := b.Put(ctx, key, []byte("content of "+key)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		q        Query
		keys     string
		prefixes string
		more     bool
	}{
		{Query{Prefix: "c/"}, "c/a b/3 c/a/1 c/a/2 c/z", "", false},
		{Query{Prefix: "c/", After: "c/a/1"}, "c/a/2 c/z", "", false},
		{Query{Prefix: "c/", Most: 2}, "c/a b/3 c/a/1", "", true},
		{Query{Prefix: "c/", Delimiter: "/"}, "c/z", "c/a b/ c/a/", false},
		{Query{Prefix: "c/", Delimiter: "/", Most: 1}, "", "c/a b/", true},
		{Query{Prefix: "e/"}, "", "", false},
	} {
		page, err := b.List(ctx, tt.q)
		if err != nil {
			t.Fatalf("%+v: %v", tt.q, err)
		}
		var keys []string
		for _, o := range page.Objects {
			keys = append(keys, o.Key)
			if o.Size != int64(len("content of "+o.Key)) || time.Since(o.Modified) > time.Minute {
				t.Errorf("%+v", o)
			}
		}
		if got := strings.Join(keys, " "); got != tt.keys || strings.Join(page.Prefixes, " ") != tt.prefixes || page.More != tt.more {
			t.Errorf("%+v: %q, %q, %t", tt.q, got, page.Prefixes, page.More)
		}
	}
	// Page after page, with prefixes.
	var all []string
	for q := (Query{Prefix: "c/", Delimiter: "/", Most: 1}); ; {
		page, err := b.List(ctx, q)
		if err != nil || len(all) > 5 {
			t.Fatal(all, err)
		}
		for _, o := range page.Objects {
			all = append(all, o.Key)
		}
		if all = append(all, page.Prefixes...); !page.More {
			break
		}
		q.After = page.Last()
	}
	if got := strings.Join(all, " "); got != "c/a b/ c/a/ c/z" {
		t.Errorf("page after page: %q", got)
	}
	if o, err := b.Head(ctx, "c/z"); err != nil || o.Size != int64(len("content of c/z")) || o.Modified.IsZero() {
		t.Errorf("%+v, %v", o, err)
	}
	body, err := b.Get(ctx, "c/z", 7)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if body.Close(); err != nil || string(text) != "content" {
		t.Errorf("%q, %v", text, err)
	}
	for range 2 {
		if err := b.Delete(ctx, "c/z"); err != nil {
			t.Error(err)
		}
	}
	_, head := b.Head(ctx, "c/z")
	_, get := b.Get(ctx, "c/z", 1)
	if !errors.Is(head, ErrNotFound) || !errors.Is(get, ErrNotFound) || errors.Is(get, ErrAway) {
		t.Errorf("deleted: %v, %v", head, get)
	}
	if n := len(store.Keys("")); n != 4 {
		t.Errorf("%d are left", n)
	}
}

// TestStolenURL: who has a signed URL writes the bytes that were signed, in time, and nothing else.
func TestStolenURL(t *testing.T) {
	store, b := newBucket(t)
	content := []byte("the bytes that were announced")
	upload, err := b.SignPut("c/p/1", int64(len(content)), hex.EncodeToString(sumOf(content)), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	send := func(change func(*http.Request)) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, upload.URL, bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range upload.Header {
			r.Header.Set(name, value)
		}
		if change != nil {
			change(r)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	body := func(r *http.Request, text string) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	}
	other := strings.Repeat("x", len(content))
	for name, change := range map[string]func(*http.Request){
		"other bytes":    func(r *http.Request) { body(r, other) },
		"more bytes":     func(r *http.Request) { body(r, string(content)+"!") },
		"no checksum":    func(r *http.Request) { body(r, other); r.Header.Del(checksumHeader) },
		"its own sum":    func(r *http.Request) { r.Header.Set(checksumHeader, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=") },
		"another object": func(r *http.Request) { r.URL.Path = strings.Replace(r.URL.Path, "p/1", "p/2", 1) },
		"another bucket": func(r *http.Request) { r.URL.Path = "/other/c/p/1" },
		"to read":        func(r *http.Request) { r.Method, r.Body, r.ContentLength = http.MethodGet, nil, 0 },
		"to delete":      func(r *http.Request) { r.Method, r.Body, r.ContentLength = http.MethodDelete, nil, 0 },
		"for longer": func(r *http.Request) {
			r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "Expires=60", "Expires=6000", 1)
		},
	} {
		if code := send(change); code < 400 || len(store.Keys("")) != 0 {
			t.Errorf("%s: %d, %q", name, code, store.Keys(""))
		}
	}
	for range 2 {
		if code := send(nil); code != http.StatusOK || !bytes.Equal(store.Get("c/p/1"), content) {
			t.Errorf("as signed: %d", code)
		}
	}
	store.Clock(func() time.Time { return time.Now().Add(2 * time.Minute) })
	if code := send(nil); code != http.StatusForbidden {
		t.Errorf("too late: %d", code)
	}
}

// TestProbe: what the store makes of a signature is found out, and nothing is left of the trial.
func TestProbe(t *testing.T) {
	store, b := newBucket(t)
	if h, err := b.Probe(t.Context(), "c/trial"); err != nil || !h.Checksum || !h.Length {
		t.Errorf("%+v, %v", h, err)
	}
	store.Lax()
	if h, err := b.Probe(t.Context(), "c/trial"); err != nil || h.Checksum {
		t.Errorf("a lax store: %+v, %v", h, err)
	}
	if keys := store.Keys(""); len(keys) != 0 {
		t.Errorf("left: %q", keys)
	}
	store.Fail(func(verb, _ string) int {
		if verb == http.MethodPut {
			return http.StatusForbidden
		}
		return 0
	})
	if _, err := b.Probe(t.Context(), "c/trial"); !errors.Is(err, ErrDenied) {
		t.Errorf("read-only: %v", err)
	}
}

// TestAway: each way in which a store may not answer is one error, which is no ErrNotFound.
func TestAway(t *testing.T) {
	store, b := newBucket(t)
	ctx := t.Context()
	ask := func(what string) {
		t.Helper()
		_, list := b.List(ctx, Query{Prefix: "c/"})
		_, head := b.Head(ctx, "c/1")
		_, get := b.Get(ctx, "c/1", 1)
		for verb, err := range map[string]error{
			"list": list, "head": head, "get": get, "delete": b.Delete(ctx, "c/1"), "put": b.Put(ctx, "c/1", []byte("x")),
		} {
			if !errors.Is(err, ErrAway) || errors.Is(err, ErrNotFound) || strings.Contains(err.Error(), "Signature=") {
				t.Errorf("%s, %s: %v", what, verb, err)
			}
		}
	}
	for _, code := range []int{500, 503, 429, 403, 301, 307, 400} {
		store.Fail(func(string, string) int { return code })
		ask(fmt.Sprint(code))
	}
	store.Fail(func(string, string) int { return 1 })
	ask("cut")
	store.Fail(nil)
	store.Clock(func() time.Time { return time.Now().Add(time.Hour) })
	ask("a clock that is wrong")
	store.Clock(time.Now)
	wrong, err := New(Config{Endpoint: store.URL, Region: fakebucket.Region, Bucket: "another", Credentials: fakebucket.Credentials(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.Head(ctx, "c/1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a HEAD cannot say that there is no bucket: %v", err)
	}
	if _, err := wrong.List(ctx, Query{}); !errors.Is(err, ErrAway) {
		t.Errorf("no such bucket: %v", err)
	}
	store.Stop()
	ask("stopped")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := b.List(ended, Query{}); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

// TestHostileLists: what a list may not say is an error, and bounded.
func TestHostileLists(t *testing.T) {
	contents := func(keys ...string) string {
		text := ""
		for _, key := range keys {
			text += "<Contents><Key>" + key + "</Key><Size>1</Size><LastModified>2026-11-01T00:00:00.000Z</LastModified></Contents>"
		}
		return text
	}
	text := ""
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	defer hostile.Close()
	b, err := New(Config{Endpoint: hostile.URL, Region: "r", Bucket: "bucket", Credentials: fakebucket.Credentials(t)})
	if err != nil {
		t.Fatal(err)
	}
	q := Query{Prefix: "c/", After: "c/0", Most: 3}
	for name, inside := range map[string]string{
		"no list": "", "out of order": contents("c/2", "c/1"), "twice": contents("c/1", "c/1"), "before": contents("c/0"),
		"another prefix": contents("d/1"), "goes on for ever": "<IsTruncated>true</IsTruncated>",
		"no time": "<Contents><Key>c/1</Key><Size>1</Size></Contents>", "bad escape": "<EncodingType>url</EncodingType>" + contents("c/%zz"),
		"negative": strings.Replace(contents("c/1"), "<Size>1", "<Size>-1", 1), "endless": strings.Repeat(" ", mostAnswer),
	} {
		text = "<ListBucketResult>" + inside + "</ListBucketResult>"
		if name == "no list" {
			text = "no list"
		}
		if page, err := b.List(t.Context(), q); !errors.Is(err, ErrAway) {
			t.Errorf("%s: %+v, %v", name, page, err)
		}
	}
	text = "<ListBucketResult><EncodingType>url</EncodingType>" + contents("c/1%2F+x", "c/2", "c/3", "c/4", "c/5") + "</ListBucketResult>"
	if page, err := b.List(t.Context(), q); err != nil || len(page.Objects) != 3 || !page.More || page.Objects[0].Key != "c/1/ x" {
		t.Errorf("%+v, %v", page, err)
	}
}

// TestCredentials are read again, and a Secret that is being replaced does no harm.
func TestCredentials(t *testing.T) {
	dir := fakebucket.Credentials(t)
	now := time.Now()
	keys := credentials.New(&keyring{dir: dir, now: func() time.Time { return now }})
	get := func() credentials.Value {
		t.Helper()
		c, err := keys.GetWithContext(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := get(); c.AccessKeyID != fakebucket.ID || c.SecretAccessKey != fakebucket.Secret || c.SessionToken != "" {
		t.Errorf("%+v", c)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("session-token", "token\n")
	if c := get(); c.SessionToken != "" {
		t.Error("they are read each time")
	}
	now = now.Add(rereadEvery)
	if c := get(); c.SessionToken != "token" {
		t.Errorf("%+v", c)
	}
	write("access-key-id", "")
	now = now.Add(rereadEvery)
	if c := get(); c.AccessKeyID != fakebucket.ID {
		t.Errorf("%+v", c)
	}
	if _, err := (&keyring{dir: t.TempDir(), now: time.Now}).Retrieve(); err == nil {
		t.Error("no credentials, and no error")
	}
}

// TestConfig: what is wrong is said.
func TestConfig(t *testing.T) {
	dir := fakebucket.Credentials(t)
	for name, change := range map[string]func(*Config){
		"bucket": func(c *Config) { c.Bucket = "UPPER" }, "region": func(c *Config) { c.Region = "" },
		"no file": func(c *Config) { c.Credentials = t.TempDir() },
		"a path":  func(c *Config) { c.Endpoint += "/x" }, "scheme": func(c *Config) { c.Endpoint = "ftp://x" },
		"CA": func(c *Config) { c.CA = filepath.Join(dir, "access-key-id") },
	} {
		c := Config{Endpoint: "https://s3.example.com", Region: "r", Bucket: "bucket", Credentials: dir}
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, tt := range []struct{ endpoint, bucket, want string }{
		{"", "evidence", "https://evidence.s3.dualstack.eu-west-1.amazonaws.com/k"},
		{"s3.eu-west-1.amazonaws.com", "a.b", "https://s3.dualstack.eu-west-1.amazonaws.com/a.b/k"},
		{"http://127.0.0.1:9000/", "evidence", "http://127.0.0.1:9000/evidence/k"},
		{"https://storage.googleapis.com", "evidence", "https://evidence.storage.googleapis.com/k"},
	} {
		b, err := New(Config{Endpoint: tt.endpoint, Region: "eu-west-1", Bucket: tt.bucket, Credentials: dir})
		if err != nil {
			t.Fatal(err)
		}
		upload, err := b.SignPut("k", 1, strings.Repeat("0", 64), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(upload.URL, "?"); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.endpoint, got, tt.want)
		}
	}
}
