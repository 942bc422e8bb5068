package cluster

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// connect returns a user's client that waits for nothing.
func connect(t *testing.T, c *clustertest.Cluster, user string) *Client {
	t.Helper()
	client, err := New(c.Config(user), "ci")
	must(t, err)
	client.pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return client
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// wantCode wants an error that is an answer with a code.
func wantCode(t *testing.T, what string, err error, code int) {
	t.Helper()
	said := (*api.Error)(nil)
	if !errors.As(err, &said) || said.Code != code || said.Message == "" {
		t.Errorf("%s: %v, want an answer with %d", what, err, code)
	}
}

// TestPages: a list comes page by page, the newest first, with nodes that did not answer.
func TestPages(t *testing.T) {
	c := clustertest.New(t)
	n1, n2 := c.Node("n1"), c.Node("n2")
	var want []string
	for i := range 5 {
		n := []*clustertest.Node{n1, n2}[i%2]
		name, _ := n.Put(i+1, "ci", "nightly", "nightly-x7k2p")
		want = append(want, name)
	}
	n1.Put(9, "etl", "nightly", "nightly-x7k2p")
	c.Lost("n3")
	client := connect(t, c, "vic")
	var got []string
	pages := 0
	must(t, client.Pages(t.Context(), Query{Namespace: "ci", Limit: 2}, func(page Page) error {
		pages++
		if len(page.Items) > 2 || !page.Incomplete() || page.Fleet.Nodes != 3 || len(page.Warnings) != 1 ||
			!strings.Contains(page.Warnings[0], "n3") {
			t.Errorf("page %d: %d items, fleet %+v, warnings %q", pages, len(page.Items), page.Fleet, page.Warnings)
		}
		for _, v := range page.Items {
			got = append(got, v.Name)
		}
		return nil
	}))
	if !slices.Equal(got, want) || pages < 3 {
		t.Errorf("%d pages: %q, want %q", pages, got, want)
	}
	got = nil
	must(t, client.Pages(t.Context(), Query{Namespace: "ci", Limit: 2}, func(page Page) error {
		got = append(got, page.Items[0].Name)
		return ErrEnough
	}))
	if !slices.Equal(got, want[:1]) {
		t.Errorf("after the first page came others: %q", got)
	}
	page, err := client.List(t.Context(), Query{Namespace: "ci", FieldSelector: "metadata.name=" + want[3]})
	must(t, err)
	if len(page.Items) != 1 || page.Items[0].Name != want[3] || page.Items[0].Spec.Owner.Name != "nightly" {
		t.Errorf("selected %+v", page.Items)
	}
}

// TestVolume: it is described, its files are read, and it is deleted.
func TestVolume(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	name, dir := n.Put(1, "ci", "nightly", "nightly-x7k2p")
	must(t, os.WriteFile(filepath.Join(dir, "log.txt"), []byte("one\ntwo\n"), 0o600))
	client, id := connect(t, c, "eve"), ID("ci", name)
	v, err := client.Get(t.Context(), "ci", name)
	must(t, err)
	if v.Name != name || v.Spec.NodeName != "n1" || v.Status.ExpiresAt == nil {
		t.Errorf("volume %+v", v)
	}
	list, err := client.Files(t.Context(), id, api.FilesQuery{Path: "/"})
	must(t, err)
	if len(list.Entries) != 1 || list.Entries[0].Name != "log.txt" {
		t.Errorf("files %+v", list)
	}
	read := func(q api.BytesQuery) string {
		t.Helper()
		s, err := client.Bytes(t.Context(), id, q)
		must(t, err)
		defer s.Close()
		text, err := io.ReadAll(s)
		must(t, err)
		return string(text)
	}
	if got := read(api.BytesQuery{Path: "log.txt"}); got != "one\ntwo\n" {
		t.Errorf("read %q", got)
	}
	if got := read(api.BytesQuery{Path: "log.txt", From: 4}); got != "two\n" {
		t.Errorf("the rest is %q", got)
	}
	if got := read(api.BytesQuery{Path: "/", Archive: true}); !strings.Contains(got, "log.txt") {
		t.Errorf("an archive of %d bytes without the file", len(got))
	}
	must(t, client.Purge(t.Context(), "ci", name, ""))
	if n.Volumes() != 0 {
		t.Error("the volume is still there")
	}
	_, err = client.Get(t.Context(), "ci", name)
	wantCode(t, "get what was deleted", err, http.StatusNotFound)
	wantCode(t, "delete it again", client.Purge(t.Context(), "ci", name, ""), http.StatusNotFound)
}

// TestNamesStayInThePath: nothing that a user types becomes another path of the API.
func TestNamesStayInThePath(t *testing.T) {
	c := clustertest.New(t)
	client := connect(t, c, "admin")
	for _, name := range []string{"", "..", "a/b", "../../../../api/v1/secrets", "a?b", "a%2fb", "A", "a b"} {
		_, get := client.Get(t.Context(), "ci", name)
		_, inNamespace := client.Get(t.Context(), name, "a")
		_, files := client.Files(t.Context(), "ci/"+name, api.FilesQuery{})
		_, read := client.Bytes(t.Context(), "ci/"+name, api.BytesQuery{})
		for what, err := range map[string]error{
			"get": get, "get in a namespace": inNamespace, "files": files, "bytes": read, "delete": client.Purge(t.Context(), "ci", name, ""),
		} {
			if err == nil {
				t.Errorf("%s %q is possible", what, name)
			}
		}
	}
	if _, err := client.List(t.Context(), Query{Namespace: "../x"}); err == nil {
		t.Error("list of a namespace that is a path")
	}
	if asked := c.Requests(); len(asked) > 0 {
		t.Errorf("asked %q", asked)
	}
}

// TestTooManyIsAskedAgain, a few times, and only what is read.
func TestTooManyIsAskedAgain(t *testing.T) {
	c := clustertest.New(t)
	name, _ := c.Node("n1").Put(1, "ci", "nightly", "nightly-x7k2p")
	refusals := 0
	c.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if refusals == 0 {
			return false
		}
		refusals--
		w.Header().Set("Retry-After", "3600")
		http.Error(w, "too many", http.StatusTooManyRequests)
		return true
	})
	client := connect(t, c, "eve")
	var pauses []time.Duration
	client.pause = func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil }
	refusals = repeats
	if _, err := client.Get(t.Context(), "ci", name); err != nil || len(pauses) != repeats || pauses[0] != mostPause {
		t.Errorf("%v after the pauses %v", err, pauses)
	}
	refusals = repeats + 1
	_, err := client.Get(t.Context(), "ci", name)
	wantCode(t, "always too many", err, http.StatusTooManyRequests)
	refusals = 1
	wantCode(t, "delete", client.Purge(t.Context(), "ci", name, ""), http.StatusTooManyRequests)
	refusals = 1
	client.pause = func(context.Context, time.Duration) error { return context.Canceled }
	if _, err := client.Get(t.Context(), "ci", name); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted while waiting: %v", err)
	}
}

// slow is an API server that takes its time, before an answer begins and before it ends.
type slow struct{ begin, end time.Duration }

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := retry.Pause(r.Context(), s.begin); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Katbox-Size": {"2"}, "Katbox-Offset": {"0"}},
		Body: io.NopCloser(slowBody{r.Context(), s.end, strings.NewReader("{}")}),
	}, nil
}

type slowBody struct {
	ctx  context.Context
	time time.Duration
	text io.Reader
}

func (b slowBody) Read(p []byte) (int, error) {
	if err := retry.Pause(b.ctx, b.time); err != nil {
		return 0, err
	}
	return b.text.Read(p)
}

// TestTimeout: a request has --request-timeout, and a stream has it for its first byte alone.
func TestTimeout(t *testing.T) {
	for name, row := range map[string]struct {
		server         slow
		object, stream bool
	}{
		"fast":                  {slow{0, 0}, true, true},
		"no answer":             {slow{time.Hour, 0}, false, false},
		"an answer without end": {slow{0, time.Hour}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := &rest.Config{Host: "https://api.example", Timeout: time.Minute, Transport: row.server}
				c, err := New(config, "ci")
				must(t, err)
				if _, err := c.Get(t.Context(), "ci", "a.b"); (err == nil) != row.object || err != nil && !errors.Is(err, api.ErrTimeout) {
					t.Errorf("get: %v", err)
				}
				s, err := c.Bytes(t.Context(), "ci/a.b", api.BytesQuery{})
				if err == nil {
					_, err = io.ReadAll(s)
					must(t, s.Close())
				}
				if (err == nil) != row.stream || err != nil && !errors.Is(err, api.ErrTimeout) {
					t.Errorf("bytes: %v", err)
				}
			})
		})
	}
}
