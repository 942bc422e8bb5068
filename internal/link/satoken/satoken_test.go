package satoken

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/go-logr/logr/funcr"
)

// signer is a key of an API server.
type signer struct {
	id  string
	alg jose.SignatureAlgorithm
	key crypto.Signer
}

// first and second are two keys of the cluster, other is one of another cluster.
var first, second, other = rsaKey("first"), ecKey("second"), rsaKey("first")

func rsaKey(id string) signer {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return signer{id, jose.RS256, key}
}

func ecKey(id string) signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return signer{id, jose.ES256, key}
}

func (s signer) jwk() jose.JSONWebKey {
	return jose.JSONWebKey{Key: s.key.Public(), KeyID: s.id, Algorithm: string(s.alg), Use: "sig"}
}

// sign signs claims as an API server does.
func (s signer) sign(t testing.TB, claims any) string {
	t.Helper()
	return sign(t, s.alg, s.key, s.id, claims)
}

func sign(t testing.TB, alg jose.SignatureAlgorithm, key any, id string, claims any) string {
	t.Helper()
	with, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(with).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// claims are what a token of a daemon's pod has.
func claims(change ...func(public, kubernetes map[string]any)) map[string]any {
	now := time.Now()
	kubernetes := map[string]any{
		"namespace": "katbox", "node": map[string]any{"name": "n1", "uid": "nu1"}, "pod": map[string]any{"name": "katbox-x", "uid": "u1"},
		"serviceaccount": map[string]any{"name": "katbox", "uid": "s1"}, "warnafter": now.Unix() + 3607,
	}
	public := map[string]any{
		"iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:katbox:katbox", "aud": []string{"katbox-gateway"},
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Unix() + 3600, "jti": "1", "kubernetes.io": kubernetes,
	}
	for _, c := range change {
		c(public, kubernetes)
	}
	return public
}

// server is an API server that publishes keys.
type server struct {
	mu       sync.Mutex
	issuer   string
	keys     []any
	err      error
	readings int
	// onRead is called before each answer.
	onRead func(context.Context) error
}

func (s *server) get(ctx context.Context, path string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onRead != nil {
		if err := s.onRead(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case s.err != nil:
		return nil, s.err
	case path == issuerPath:
		return json.Marshal(map[string]any{"issuer": s.issuer, "jwks_uri": "https://elsewhere/keys"})
	case path == keysPath:
		s.readings++
		return json.Marshal(map[string]any{"keys": s.keys})
	}
	return nil, errors.New("no such path: " + path)
}

func newServer(t testing.TB, keys ...any) (*server, *Keys) {
	t.Helper()
	s := &server{issuer: "https://kubernetes.default.svc", keys: keys}
	k, err := New(Config{Get: s.get, Audience: "katbox-gateway"})
	if err != nil {
		t.Fatal(err)
	}
	return s, k
}

var daemon = Claims{Namespace: "katbox", ServiceAccount: "katbox", ServiceAccountUID: "s1", Pod: "katbox-x", PodUID: "u1", Node: "n1"}

// TestRead: what is read, and what is not clear. Nothing else is accepted.
func TestRead(t *testing.T) {
	public := func(name string, value any) map[string]any {
		return claims(func(public, _ map[string]any) {
			if public[name] = value; value == nil {
				delete(public, name)
			}
		})
	}
	private := func(name string, value any) map[string]any {
		return claims(func(_, kubernetes map[string]any) {
			if kubernetes[name] = value; value == nil {
				delete(kubernetes, name)
			}
		})
	}
	now := time.Now().Unix()
	der, err := x509.MarshalPKIXPublicKey(first.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	raw := func(header map[string]any, signature []byte) string {
		h, _ := json.Marshal(header)
		c, _ := json.Marshal(claims())
		in := base64.RawURLEncoding.EncodeToString
		return in(h) + "." + in(c) + "." + in(signature)
	}
	good := first.sign(t, claims())
	parts := strings.Split(good, ".")
	changed, _ := json.Marshal(private("pod", map[string]any{"name": "katbox-y", "uid": "u2"}))
	for name, tc := range map[string]struct {
		token string
		clear bool
	}{
		"of a pod":                  {good, true},
		"with the second key":       {second.sign(t, claims()), true},
		"for several audiences":     {first.sign(t, public("aud", []string{"other", "katbox-gateway"})), true},
		"signed by another cluster": {other.sign(t, claims()), false},
		"with an unknown key":       {sign(t, jose.RS256, first.key, "third", claims()), false},
		"without a key":             {sign(t, jose.RS256, first.key, "", claims()), false},
		"with another algorithm":    {sign(t, jose.RS512, first.key, "first", claims()), false},
		"with PS256":                {sign(t, jose.PS256, first.key, "first", claims()), false},
		"with another key's name":   {sign(t, jose.RS256, first.key, "second", claims()), false},
		"HS256 with the key":        {sign(t, jose.HS256, der, "first", claims()), false},
		"without a signature":       {raw(map[string]any{"alg": "none", "kid": "first"}, nil), false},
		"an empty signature":        {raw(map[string]any{"alg": "RS256", "kid": "first"}, nil), false},
		"critical headers":          {raw(map[string]any{"alg": "RS256", "kid": "first", "crit": []string{"x"}, "x": 1}, []byte("x")), false},
		"with a key of its own":     {raw(map[string]any{"alg": "RS256", "jwk": other.jwk()}, []byte("x")), false},
		"changed":                   {parts[0] + "." + base64.RawURLEncoding.EncodeToString(changed) + "." + parts[2], false},
		"another issuer":            {first.sign(t, public("iss", "https://evil")), false},
		"no issuer":                 {first.sign(t, public("iss", nil)), false},
		"another audience":          {first.sign(t, public("aud", []string{"katbox-controller"})), false},
		"no audience":               {first.sign(t, public("aud", nil)), false},
		"expired":                   {first.sign(t, public("exp", now-1)), false},
		"never expires":             {first.sign(t, public("exp", nil)), false},
		"not valid yet":             {first.sign(t, public("nbf", now+100)), false},
		"valid since ever":          {first.sign(t, public("nbf", nil)), false},
		"issued later":              {first.sign(t, public("iat", now+100)), false},
		"another subject":           {first.sign(t, public("sub", "system:serviceaccount:katbox:admin")), false},
		"no subject":                {first.sign(t, public("sub", nil)), false},
		"a user's":                  {first.sign(t, public("kubernetes.io", nil)), false},
		"no node":                   {first.sign(t, private("node", nil)), false},
		"bound to no pod":           {first.sign(t, private("pod", nil)), false},
		"no UID of the pod":         {first.sign(t, private("pod", map[string]any{"name": "katbox-x"})), false},
		"no UID of the account":     {first.sign(t, private("serviceaccount", map[string]any{"name": "katbox"})), false},
		"bound to a Secret, too":    {first.sign(t, private("secret", map[string]any{"name": "x", "uid": "y"})), false},
		"huge":                      {first.sign(t, public("x", strings.Repeat("x", 9000))), false},
		"huge, and no token":        {strings.Repeat("x", 1<<20), false},
		"many parts":                {strings.Repeat("e30.", 1000), false},
		"no token":                  {"secret", false},
		"nothing":                   {"", false},
		"a list of signatures":      {`{"payload":"e30","signatures":[]}`, false},
		"what is no text in it":     {good[:50] + "\x00\xff" + good[52:], false},
		"a path as its key":         {sign(t, jose.RS256, first.key, "../first", claims()), false},
	} {
		t.Run(name, func(t *testing.T) {
			_, k := newServer(t, first.jwk(), second.jwk())
			got, err := k.Read(t.Context(), tc.token)
			if tc.clear && (err != nil || got != daemon) || !tc.clear && (!errors.Is(err, ErrUnclear) || got != Claims{}) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	// Of another ServiceAccount: it is what it is, and the caller compares.
	_, k := newServer(t, first.jwk())
	got, err := k.Read(t.Context(), first.sign(t, claims(func(public, kubernetes map[string]any) {
		public["sub"] = "system:serviceaccount:ci:default"
		maps.Copy(kubernetes, map[string]any{"namespace": "ci", "serviceaccount": map[string]any{"name": "default", "uid": "s2"}})
	})))
	if err != nil || got.Namespace != "ci" || got.ServiceAccount != "default" || got.ServiceAccountUID != "s2" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestPublished: what an API server may publish, and a token of the first key.
func TestPublished(t *testing.T) {
	with := func(change func(*jose.JSONWebKey)) any {
		key := first.jwk()
		change(&key)
		return key
	}
	for name, tc := range map[string]struct {
		keys   []any
		issuer string
		err    error
		clear  bool
	}{
		"one key":                   {keys: []any{first.jwk()}, clear: true},
		"after one of another kind": {keys: []any{map[string]any{"kty": "XYZ", "kid": "new"}, "text", first.jwk()}, clear: true},
		"without a use":             {keys: []any{with(func(k *jose.JSONWebKey) { k.Use = "" })}, clear: true},
		"for encryption":            {keys: []any{with(func(k *jose.JSONWebKey) { k.Use = "enc" })}},
		"for another algorithm":     {keys: []any{with(func(k *jose.JSONWebKey) { k.Algorithm = "RS512" })}},
		"for no algorithm":          {keys: []any{with(func(k *jose.JSONWebKey) { k.Algorithm = "" })}},
		"two of one name":           {keys: []any{first.jwk(), other.jwk()}},
		"three of one name":         {keys: []any{first.jwk(), other.jwk(), first.jwk()}},
		"a shared secret":           {keys: []any{jose.JSONWebKey{Key: []byte("first"), KeyID: "first", Algorithm: "RS256"}}},
		"a private key":             {keys: []any{with(func(k *jose.JSONWebKey) { k.Key = first.key })}},
		"none":                      {},
		"too many":                  {keys: append(make([]any, mostKeys), first.jwk())},
		"no issuer":                 {keys: []any{first.jwk()}, issuer: "none"},
		"another issuer":            {keys: []any{first.jwk()}, issuer: "https://oidc.example"},
		"they cannot be read":       {keys: []any{first.jwk()}, err: errors.New("forbidden")},
		"another key of that name":  {keys: []any{other.jwk()}},
		"a key of another name":     {keys: []any{second.jwk()}},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := newServer(t, tc.keys...)
			s.err = tc.err
			if tc.issuer != "" {
				s.issuer = strings.TrimPrefix(tc.issuer, "none")
			}
			if got, err := k.Read(t.Context(), first.sign(t, claims())); (err == nil) != tc.clear || err != nil && !errors.Is(err, ErrUnclear) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// TestRotation: a new key is found soon, one that was withdrawn is not believed for more than a minute, and tokens with keys
// that nobody has cost few readings.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, k := newServer(t, first.jwk())
		want := func(when string, by signer, clear bool, readings int) {
			t.Helper()
			if _, err := k.Read(t.Context(), by.sign(t, claims())); (err == nil) != clear {
				t.Errorf("%s: %v", when, err)
			}
			synctest.Wait()
			if s.readings != readings {
				t.Errorf("%s: the keys were read %d times, want %d", when, s.readings, readings)
			}
		}
		want("the first token", first, true, 1)
		time.Sleep(renewed - 1)
		want("within half a minute", first, true, 1)
		s.keys = []any{second.jwk(), first.jwk()}
		want("a new key", second, true, 2)
		s.keys = []any{second.jwk()}
		want("a key that was withdrawn just now", first, true, 2)
		for i := range 1000 {
			want("a key that nobody has", signer{fmt.Sprint("no-", i), jose.ES256, second.key}, false, 2)
		}
		time.Sleep(pause)
		for range 1000 {
			want("a key that nobody has, later", signer{"no", jose.ES256, second.key}, false, 3)
		}
		want("a key that was withdrawn", first, false, 3)
		time.Sleep(fresh)
		want("a minute later", second, true, 4)
	})
}

// TestRenewal: the keys are read again before they are too old, and no caller waits for an API server that takes as long for that as
// it may. So none is left to a TokenReview, of which a slow API server would be slower still.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, k := newServer(t, first.jwk())
		token := first.sign(t, claims(func(public, _ map[string]any) { public["exp"] = time.Now().Unix() + 86400 }))
		if _, err := k.Read(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		s.onRead = func(context.Context) error { time.Sleep(readLimit/2 - 1); return nil }
		for range 3600 {
			began := time.Now()
			if _, err := k.Read(t.Context(), token); err != nil || time.Since(began) != 0 {
				t.Fatalf("%v after %s", err, time.Since(began))
			}
			time.Sleep(time.Second)
		}
		if s.readings < 100 || s.readings > 121 {
			t.Errorf("the keys were read %d times within an hour", s.readings)
		}
	})
}

// TestAway: while the keys cannot be read, they are believed for a minute, and few attempts are made. One line says so.
func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, k := newServer(t, first.jwk())
		var log bytes.Buffer
		k.Log = funcr.New(func(_, line string) { fmt.Fprintln(&log, line) }, funcr.Options{})
		token := first.sign(t, claims())
		if _, err := k.Read(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		attempts := 0
		s.onRead = func(context.Context) error { attempts++; return errors.New("no\nroute") }
		for range 600 {
			_, err := k.Read(t.Context(), token)
			if since := time.Since(k.last.at); (err == nil) != (since < fresh) {
				t.Fatalf("%s after the keys were read: %v", since, err)
			}
			time.Sleep(time.Second)
		}
		if attempts < 50 || attempts > 60 || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "no; route") {
			t.Errorf("%d attempts in ten minutes; logged is %q", attempts, log.String())
		}
		s.onRead = nil
		time.Sleep(pause)
		if _, err := k.Read(t.Context(), token); err != nil {
			t.Error(err)
		}
		if strings.Count(log.String(), "\n") != 2 {
			t.Errorf("logged is %q", log.String())
		}
	})
}

// TestLeaving: a client that leaves does not end the reading that others wait for, and an API server that hangs holds no one up
// for longer than a client waits.
func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, k := newServer(t, first.jwk())
		s.onRead = func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(patience/2 - 1):
				return nil
			}
		}
		token := first.sign(t, claims())
		leaving, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _, _ = k.Read(leaving, token) })
		synctest.Wait()
		leave()
		for range 100 {
			all.Go(func() {
				if _, err := k.Read(t.Context(), token); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if s.readings != 1 {
			t.Errorf("the keys were read %d times", s.readings)
		}
		time.Sleep(fresh)
		s.onRead = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		all.Go(func() { _, _ = k.Read(t.Context(), token) })
		synctest.Wait()
		began := time.Now()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := k.Read(impatient, token); !errors.Is(err, ErrUnclear) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		all.Wait()
		if time.Since(began) != patience {
			t.Errorf("a client waited %s", time.Since(began))
		}
		time.Sleep(readLimit) // until the reading ends, too
	})
}

// FuzzRead: no text makes it panic, and none is accepted that was not signed.
func FuzzRead(f *testing.F) {
	good := first.sign(f, claims())
	f.Add(good)
	f.Add(second.sign(f, claims()))
	f.Add("e30.e30.")
	_, k := newServer(f, first.jwk(), second.jwk())
	f.Fuzz(func(t *testing.T, token string) {
		if got, err := k.Read(t.Context(), token); err == nil && got != daemon {
			t.Errorf("%q is %+v", token, got)
		}
	})
}

// BenchmarkRead is one token of a key that is known.
func BenchmarkRead(b *testing.B) {
	for _, by := range []signer{first, second} {
		b.Run(string(by.alg), func(b *testing.B) {
			_, k := newServer(b, by.jwk())
			token := by.sign(b, claims())
			for b.Loop() {
				if _, err := k.Read(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
