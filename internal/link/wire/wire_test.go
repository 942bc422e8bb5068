package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/fakepools"
)

const (
	uuid    = "0f8a4a52-1111-4222-8333-444444444444"
	another = "0f8a4a52-1111-4222-8333-555555555555"
)

// over sends requests to a server.
type over struct {
	host string
	http.RoundTripper
}

func (o over) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Host = o.host
	return o.RoundTripper.RoundTrip(r)
}

// asking returns a client of what answers.
func asking(t *testing.T, answers http.Handler) *Client {
	server := httptest.NewServer(answers)
	t.Cleanup(server.Close)
	host, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return NewClient("n1", over{host.Host, server.Client().Transport})
}

func newNode(t *testing.T) (*fakepools.Node, *Client) {
	n := &fakepools.Node{}
	n.Add(fakepools.NewDisk(local.Pool{UUID: uuid, Class: "fast", HardLimit: true, Block: true, Copies: true}))
	return n, asking(t, Handler(n))
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// TestEachMethod: what the client says is what the node says.
func TestEachMethod(t *testing.T) {
	n, c := newNode(t)
	ctx := t.Context()
	same := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	same("pools", must(c.Pools(ctx))(t), must(n.Pools(ctx))(t))
	v := local.NewVolume{Name: "pvc-1", Size: 5 << 20, FSType: "ext4", Comment: `{"cluster":"c"}`}
	made := must(c.CreateVolume(ctx, uuid, v))(t)
	same("made", made, must(n.Volume(ctx, uuid, "pvc-1"))(t))
	same("made again", must(c.CreateVolume(ctx, uuid, v))(t), made)
	same("one", must(c.Volume(ctx, uuid, "pvc-1"))(t), made)
	same("grown", must(c.GrowVolume(ctx, uuid, "pvc-1", 7<<20))(t).Size, int64(7<<20))
	same("commented", must(c.CommentVolume(ctx, uuid, "pvc-1", "x"))(t).Comment, "x")
	s := must(c.CreateSnapshot(ctx, uuid, "snap-1", "pvc-1"))(t)
	same("snapshot", must(c.Snapshot(ctx, uuid, "snap-1"))(t), s)
	same("snapshots", must(c.Snapshots(ctx, uuid, "", 10))(t), []local.Snapshot{s})
	must(c.CreateVolume(ctx, uuid, local.NewVolume{Name: "pvc-2", Size: 7 << 20, FSType: "ext4", Source: local.Source{Snapshot: "snap-1"}}))(t)
	for after, want := range map[string]int{"": 2, "pvc-1": 1, "pvc-2": 0} {
		same("after "+after, len(must(c.Volumes(ctx, uuid, after, 10))(t)), want)
	}
	same("a page", len(must(c.Volumes(ctx, uuid, "", 1))(t)), 1)
	if err := c.DeleteVolume(ctx, uuid, "pvc-1"); !errors.Is(err, pools.ErrInUse) {
		t.Errorf("a volume with a snapshot: %v", err)
	}
	for range 2 {
		if err := errors.Join(
			c.DeleteSnapshot(ctx, uuid, "snap-1"), c.DeleteVolume(ctx, uuid, "pvc-2"), c.DeleteVolume(ctx, uuid, "pvc-1"),
		); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Volume(ctx, uuid, "pvc-1"); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
	if _, err := c.Volume(ctx, another, "pvc-1"); !errors.Is(err, volume.ErrUnavailable) {
		t.Errorf("another pool: %v", err)
	}
}

// TestErrorsKeepTheirKind: of those of [local.Pools].
func TestErrorsKeepTheirKind(t *testing.T) {
	n, c := newNode(t)
	for _, kind := range []error{
		volume.ErrNotFound, volume.ErrConflict, volume.ErrNoSpace, volume.ErrInvalid, volume.ErrBusy, volume.ErrUnavailable, local.ErrUnwritable,
		volume.ErrUncertain, pools.ErrInUse, pools.ErrOutOfRange,
	} {
		n.Fail(func(fakepools.Call) error { return fmt.Errorf("%w: the disk\nburns", kind) })
		_, read := c.Volume(t.Context(), uuid, "pvc-1")
		_, changed := c.GrowVolume(t.Context(), uuid, "pvc-1", 1<<20)
		for what, err := range map[string]error{"read": read, "changed": changed, "deleted": c.DeleteVolume(t.Context(), uuid, "pvc-1")} {
			if !errors.Is(err, kind) || !strings.Contains(err.Error(), "node n1: ") || !strings.Contains(err.Error(), "the disk; burns") {
				t.Errorf("%s: %v, want %v", what, err, kind)
			}
		}
	}
	for _, odd := range []error{errors.New("EIO"), context.DeadlineExceeded, context.Canceled} {
		n.Fail(func(fakepools.Call) error { return odd })
		if _, err := c.Volume(t.Context(), uuid, "pvc-1"); !errors.Is(err, volume.ErrUnavailable) || errors.Is(err, volume.ErrUncertain) {
			t.Errorf("read: %v", err)
		}
		if _, err := c.CreateVolume(t.Context(), uuid, local.NewVolume{Name: "pvc-1", Size: 1}); !errors.Is(err, volume.ErrUncertain) {
			t.Errorf("changed: %v", err)
		}
	}
}

// refuses is a way to the node.
type refuses struct{ err error }

func (r refuses) RoundTrip(*http.Request) (*http.Response, error) { return nil, r.err }

// TestWhatIsNotKnown: nothing is called undone that may have been done.
func TestWhatIsNotKnown(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx           context.Context
		err           error
		read, changed error
	}{
		"not sent":  {t.Context(), fmt.Errorf("%w: not connected", volume.ErrUnavailable), volume.ErrUnavailable, volume.ErrUnavailable},
		"lost":      {t.Context(), io.ErrUnexpectedEOF, volume.ErrUnavailable, volume.ErrUncertain},
		"not begun": {ended, io.ErrUnexpectedEOF, context.Canceled, context.Canceled},
	} {
		c := NewClient("n1", refuses{test.err})
		_, read := c.Pools(test.ctx)
		changed := c.DeleteVolume(test.ctx, uuid, "pvc-1")
		if !errors.Is(read, test.read) || !errors.Is(changed, test.changed) {
			t.Errorf("%s: %v, %v", name, read, changed)
		}
		if errors.Is(test.changed, volume.ErrUncertain) != errors.Is(changed, volume.ErrUncertain) {
			t.Errorf("%s: %v", name, changed)
		}
	}
	// The context ends while the node works.
	begun, release := make(chan struct{}, 1), make(chan struct{})
	defer close(release)
	c := asking(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-release
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := c.CommentVolume(ctx, uuid, "pvc-1", "x"); !errors.Is(err, volume.ErrUncertain) || !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

// TestHostileNode: what no daemon says is an error, and is bounded.
func TestHostileNode(t *testing.T) {
	text := func(v any) string { return string(must(json.Marshal(v))(t)) }
	one := local.Volume{Name: "pvc-1", Pool: uuid, Size: 1}
	with := func(change func(*local.Volume)) string {
		v := one
		change(&v)
		return text(v)
	}
	volumes := func(names ...string) string {
		all := list[local.Volume]{}
		for _, name := range names {
			all.Items = append(all.Items, local.Volume{Name: name, Pool: uuid})
		}
		return text(all)
	}
	var answer string
	status := http.StatusOK
	c := asking(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	for name, a := range map[string]string{
		"garbage": "\x00\xff", "nothing": "", "a list": "[]", "another volume": with(func(v *local.Volume) { v.Name = "pvc-2" }),
		"another pool": with(func(v *local.Volume) { v.Pool = another }), "no size": with(func(v *local.Volume) { v.Size = -1 }),
		"too large": with(func(v *local.Volume) { v.Size = mostSize + 1 }), "a path": with(func(v *local.Volume) { v.Source.Volume = "../x" }),
		"a novel": with(func(v *local.Volume) { v.Comment = strings.Repeat("x", mostComment+1) }), "endless": strings.Repeat(" ", mostAnswer+1),
	} {
		answer = a
		if _, err := c.Volume(t.Context(), uuid, "pvc-1"); !errors.Is(err, volume.ErrUnavailable) {
			t.Errorf("%s, read: %v", name, err)
		}
		if _, err := c.GrowVolume(t.Context(), uuid, "pvc-1", 1); !errors.Is(err, volume.ErrUncertain) {
			t.Errorf("%s, changed: %v", name, err)
		}
	}
	for name, a := range map[string]string{
		"too many": volumes("b", "c", "d"), "again": volumes("b", "b"), "backwards": volumes("c", "b"), "before": volumes("a", "b"),
		"a path": volumes("../x"), "another pool": text(list[local.Volume]{[]local.Volume{{Name: "b", Pool: another}}}),
		"endless": strings.Repeat(" ", mostPage+1), "no list": `{"items":{}}`,
		"many empty ones": `{"items":[` + strings.Repeat("{},", 2_000_000) + `{}]}`,
	} {
		answer = a
		if got, err := c.Volumes(t.Context(), uuid, "a", 2); !errors.Is(err, volume.ErrUnavailable) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	pool := func(change func(*local.Pool)) local.Pool {
		p := local.Pool{UUID: uuid}
		change(&p)
		return p
	}
	for name, all := range map[string][]local.Pool{
		"too many": make([]local.Pool, MostPools+1), "no UUID": {pool(func(p *local.Pool) { p.UUID = "../" })},
		"twice": {{UUID: uuid}, {UUID: uuid}}, "long": {pool(func(p *local.Pool) { p.Path = strings.Repeat("x", mostText+1) })},
		"negative": {pool(func(p *local.Pool) { p.Free = -1 })}, "a key that is none": {pool(func(p *local.Pool) { p.Key = "x" })},
	} {
		answer = text(list[local.Pool]{all})
		if got, err := c.Pools(t.Context()); !errors.Is(err, volume.ErrUnavailable) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	status = http.StatusInternalServerError
	for _, a := range []string{"", "<html>", `{"reason":"Fine"}`} {
		answer = a
		if err := c.DeleteVolume(t.Context(), uuid, "pvc-1"); !errors.Is(err, volume.ErrUncertain) {
			t.Errorf("%q: %v", a, err)
		}
	}
	answer = text(Failure{"Busy", strings.Repeat("x\n\x1b", 10_000)})
	if err := c.DeleteVolume(t.Context(), uuid, "pvc-1"); !errors.Is(err, volume.ErrBusy) || len(err.Error()) > mostMessage+100 ||
		strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("a long message: %v", err)
	}
}

// TestHostileController: what is malformed reaches no pool.
func TestHostileController(t *testing.T) {
	n, _ := newNode(t)
	server := httptest.NewServer(Handler(n))
	defer server.Close()
	long := strings.Repeat("x", mostComment+1)
	for _, test := range []struct{ method, path, body string }{
		{http.MethodGet, "/v1/pools/x/volumes?limit=1", ""}, {http.MethodGet, "/v1/pools/" + uuid + "/volumes", ""},
		{http.MethodGet, "/v1/pools/" + uuid + "/volumes?limit=1001", ""}, {http.MethodGet, "/v1/pools/" + uuid + "/volumes?limit=0", ""},
		{http.MethodGet, "/v1/pools/" + uuid + "/volumes?limit=1&after=..%2fx", ""},
		{http.MethodGet, "/v1/pools/" + uuid + "/volumes/..%2f..%2fx", ""}, {http.MethodDelete, "/v1/pools/" + uuid + "/volumes/%2e%2e", ""},
		{http.MethodDelete, "/v1/pools/" + uuid + "/snapshots/A", ""}, {http.MethodPatch, "/v1/pools", ""}, {http.MethodGet, "/v1/volumes", ""},
		{http.MethodPost, "/v1/pools/" + uuid + "/volumes", `{"name":"../x","size":1}`},
		{http.MethodPost, "/v1/pools/" + uuid + "/volumes", `{"name":"x","size":0}`},
		{http.MethodPost, "/v1/pools/" + uuid + "/volumes", `{"name":"x","size":1,"fsType":"/bin/sh"}`},
		{http.MethodPost, "/v1/pools/" + uuid + "/volumes", `{"name":"x","size":1,"encrypt":true}`},
		{http.MethodPost, "/v1/pools/" + uuid + "/volumes", `{"name":"x","size":1,"source":{"snapshot":"a","volume":"b"}}`},
		{http.MethodPost, "/v1/pools/" + uuid + "/volumes", `{"name":"x","size":1,"source":{"volume":"../b"}}`},
		{http.MethodPost, "/v1/pools/" + uuid + "/volumes", `{"name":"x","size":1,"comment":"` + long + `"}`},
		{http.MethodPost, "/v1/pools/" + uuid + "/volumes", strings.Repeat(" ", mostBody) + "{}"},
		{http.MethodPost, "/v1/pools/" + uuid + "/volumes", "[]"},
		{http.MethodPut, "/v1/pools/" + uuid + "/volumes/x/size", `{"bytes":-1}`},
		{http.MethodPut, "/v1/pools/" + uuid + "/volumes/x/size", `{"bytes":1e30}`},
		{http.MethodPut, "/v1/pools/" + uuid + "/volumes/x/comment", `{"comment":"` + long + `"}`},
		{http.MethodPost, "/v1/pools/" + uuid + "/snapshots", `{"name":"s","volume":"../x"}`},
	} {
		request := must(http.NewRequestWithContext(t.Context(), test.method, server.URL+test.path, strings.NewReader(test.body)))(t)
		response := must(server.Client().Do(request))(t)
		var f Failure
		err := json.NewDecoder(response.Body).Decode(&f)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusBadRequest || f.Reason != "Invalid" ||
			f.Message == "" || len(f.Message) > mostMessage {
			t.Errorf("%s %s %.60s: %s %+v, %v", test.method, test.path, test.body, response.Status, f, err)
		}
	}
	for _, method := range []string{
		"CreateVolume", "DeleteVolume", "GrowVolume", "CommentVolume", "Volume", "Volumes", "CreateSnapshot", "DeleteSnapshot",
	} {
		if n.Called(method) > 0 {
			t.Errorf("%s was called", method)
		}
	}
}

// TestClientChecksWhatItSends: the controller's own mistakes are not called uncertain.
func TestClientChecksWhatItSends(t *testing.T) {
	c := NewClient("n1", refuses{io.ErrUnexpectedEOF})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, a := c.Volume(ctx, "x", "pvc-1")
	_, b := c.CreateVolume(ctx, uuid, local.NewVolume{Name: "A", Size: 1})
	_, d := c.GrowVolume(ctx, uuid, "pvc-1", 0)
	_, e := c.CommentVolume(ctx, uuid, "pvc-1", "\xff")
	_, f := c.CreateSnapshot(ctx, uuid, "s", "")
	_, g := c.Volumes(ctx, "", "", 1)
	for i, err := range []error{a, b, c.DeleteVolume(ctx, uuid, ".."), d, e, f, g} {
		if !errors.Is(err, volume.ErrInvalid) {
			t.Errorf("%d: %v", i, err)
		}
	}
}
