package fleet

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
)

// TestContinueIsBound is T24: what a page says is good for the next page of the same list and reader,
// and nothing else is.
func TestContinueIsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newFleet(t, many(10), nil)
		r := Request{Reader: tenant, Namespace: "ci", Selectors: "a", Limit: 3}
		page, err := f.List(t.Context(), r)
		if err != nil || page.Continue == "" {
			t.Fatalf("%+v, %v", page, err)
		}
		with := func(change func(*Request)) Request {
			r := r
			r.Continue = page.Continue
			change(&r)
			return r
		}
		other := func(b byte) *Fleet {
			f, err := New(Config{Nodes: f.cfg.Nodes, Namespaces: standardNamespaces, Owners: fakeOwners(nil), Namespace: home,
				Key: bytes.Repeat([]byte{b}, KeySize), Log: logr.Discard()})
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		for _, tt := range []struct {
			name  string
			fleet *Fleet
			r     Request
			err   error
		}{
			{"the same", f, with(func(*Request) {}), nil},
			{"another limit", f, with(func(r *Request) { r.Limit = 1 }), nil},
			{"another replica", other(7), with(func(*Request) {}), nil},
			{"another right", f, with(func(r *Request) { r.Reader.Everywhere = true }), nil},
			{"another key", other(8), with(func(*Request) {}), ErrContinue},
			{"another namespace", f, with(func(r *Request) { r.Namespace = home }), ErrContinue},
			{"other selectors", f, with(func(r *Request) { r.Selectors = "" }), ErrContinue},
			{"another user", f, with(func(r *Request) { r.Reader.User = "bob" }), ErrContinue},
			{"moved words", f, with(func(r *Request) { r.Namespace, r.Selectors = `ci" "a`, "" }), ErrContinue},
			{"nonsense", f, with(func(r *Request) { r.Continue = "AAAA" }), ErrContinue},
			{"no base64", f, with(func(r *Request) { r.Continue = "?" }), ErrContinue},
			{"cut", f, with(func(r *Request) { r.Continue = r.Continue[:len(r.Continue)-4] }), ErrContinue},
			{"long", f, with(func(r *Request) { r.Continue = strings.Repeat("A", 1<<20) }), ErrContinue},
		} {
			got, err := tt.fleet.List(t.Context(), tt.r)
			if !errors.Is(err, tt.err) || (tt.err == nil) != (len(got.Entries) > 0) {
				t.Errorf("%s: %s, %v", tt.name, ids(got.Entries), err)
			}
		}
		for i := range page.Continue {
			changed := []byte(page.Continue)
			if changed[i] = 'A'; page.Continue[i] == 'A' {
				changed[i] = 'B'
			}
			if got, err := f.List(t.Context(), with(func(r *Request) { r.Continue = string(changed) })); !errors.Is(err, ErrContinue) {
				t.Errorf("byte %d: %s, %v", i, ids(got.Entries), err)
			}
		}
		time.Sleep(tokenTime)
		if _, err := f.List(t.Context(), with(func(*Request) {})); err != nil {
			t.Errorf("after 15 minutes: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := f.List(t.Context(), with(func(*Request) {})); !errors.Is(err, ErrExpired) {
			t.Errorf("later: %v", err)
		}
	})
}

// TestContinueSaysNothing: a page may end at a volume that its reader may not see.
func TestContinueSaysNothing(t *testing.T) { synctest.Test(t, testContinueSaysNothing) }

func testContinueSaysNothing(t *testing.T) {
	secret := record("secret-volume", 5)
	secret.Owner.NamespaceUID = "ci-1"
	n := node("secret-node", record("a", 9), secret, record("b", 1))
	n.page = func() int { return 1 }
	f, _ := newFleet(t, &fakeNodes{nodes: []*fakeNode{n}}, nil)
	r := Request{Reader: tenant, Namespace: "ci", Limit: 1}
	for {
		page, err := f.List(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if r.Continue = page.Continue; r.Continue == "" {
			return
		}
		text, err := base64.RawURLEncoding.DecodeString(r.Continue)
		if err != nil || bytes.Contains(text, []byte("secret")) {
			t.Errorf("continue %q: %v", text, err)
		}
	}
}

// TestContinueOfAnotherVersion: while the gateway is updated, its replicas have different versions.
func TestContinueOfAnotherVersion(t *testing.T) { synctest.Test(t, testContinueOfAnotherVersion) }

func testContinueOfAnotherVersion(t *testing.T) {
	f, _ := newFleet(t, many(1), nil)
	r := Request{Reader: everyone}
	for text, want := range map[string]error{`{"v":2}`: ErrExpired, `[]`: ErrExpired} {
		r.Continue = base64.RawURLEncoding.EncodeToString(f.seal.Seal(nil, nil, []byte(text), r.binding()))
		if _, err := f.List(t.Context(), r); !errors.Is(err, want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
