package hub

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/katbox/katbox/internal/link/satoken"
)

// signer signs tokens as an API server does.
type signer struct{ key *ecdsa.PrivateKey }

// get is what it publishes.
func (s signer) get(_ context.Context, path string) ([]byte, error) {
	if strings.HasSuffix(path, "openid-configuration") {
		return []byte(`{"issuer":"cluster"}`), nil
	}
	key := jose.JSONWebKey{Key: s.key.Public(), KeyID: "k", Algorithm: string(jose.ES256)}
	return json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key}})
}

// token signs a token.
func (s signer) token(t *testing.T, c Identity) string {
	t.Helper()
	with, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: s.key, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	type ref map[string]string
	now := time.Now().Unix()
	token, err := jwt.Signed(with).Claims(map[string]any{
		"iss": "cluster", "aud": "katbox-gateway", "nbf": now, "exp": now + 3600,
		"sub": "system:serviceaccount:" + c.Namespace + ":" + c.ServiceAccount,
		"kubernetes.io": map[string]any{
			"namespace": c.Namespace, "serviceaccount": ref{"name": c.ServiceAccount, "uid": c.ServiceAccountUID},
			"pod": ref{"name": c.Pod, "uid": c.PodUID}, "node": ref{"name": c.Node},
		},
	}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// read reads tokens as the gateway does.
type read struct{ *satoken.Keys }

func (r read) Read(ctx context.Context, token string) (Identity, error) {
	claims, err := r.Keys.Read(ctx, token)
	return Identity(claims), err
}

// issuing is a cluster with daemons on n1 and n2 that signs their tokens, and a registry that reads them.
type issuing struct {
	*stage
	signer signer
	tokens map[string]string // by node
}

func newIssuing(t *testing.T) *issuing {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &issuing{newStage(t), signer{key}, map[string]string{}}
	keys, err := satoken.New(satoken.Config{Get: s.signer.get, Audience: "katbox-gateway"})
	if err != nil {
		t.Fatal(err)
	}
	s.Tokens = read{keys}
	s.cluster.heard = time.Now().Add(time.Hour)
	for _, node := range []string{"n1", "n2"} {
		s.cluster.add("katbox-"+node, "uid-"+node, node)
		s.tokens[node] = s.token(of(node))
		s.cluster.tokens[s.tokens[node]] = Identity{
			Namespace: "katbox", ServiceAccount: "katbox", ServiceAccountUID: "s1", Pod: "katbox-" + node, PodUID: "uid-" + node, Node: node,
		}
	}
	return s
}

func of(node string) Identity {
	return Identity{
		Namespace: "katbox", ServiceAccount: "katbox", ServiceAccountUID: "s1", Pod: "katbox-" + node, PodUID: "uid-" + node, Node: node,
	}
}

// token signs a token of such claims.
func (s *issuing) token(c Identity) string { return s.signer.token(s.t.(*testing.T), c) }

// but is of, with a change.
func but(node string, change func(*Identity)) Identity {
	c := of(node)
	change(&c)
	return c
}

// admits is the code of a refusal, or 101.
func (s *issuing) admits(node, token string) int {
	s.t.Helper()
	r := request(node, token)
	r.TLS = &tls.ConnectionState{}
	r.RemoteAddr = "192.0.2.1:1"
	who, no := s.admit(r)
	if no != nil {
		return no.code
	}
	if who.Node != node || who.PodUID != "uid-"+node {
		s.t.Errorf("%s was admitted as %+v", node, who)
	}
	return http.StatusSwitchingProtocols
}

// counted is how many tokens were read, and how many reviewed.
func (s *issuing) counted() (read, reviewed int) {
	c := s.Metrics.(*counts)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by["read"], s.cluster.reviews
}

// TestTokenRead: a token that is clear is accepted without a TokenReview, once one has confirmed the ServiceAccount; all that is
// not clear is reviewed, and what the API server says counts.
func TestTokenRead(t *testing.T) {
	const yes, unauthorized, forbidden = http.StatusSwitchingProtocols, http.StatusUnauthorized, http.StatusForbidden
	for name, tc := range map[string]struct {
		claims Identity
		change func(*issuing)
		want   int
		read   bool
	}{
		"clear":                      {of("n1"), nil, yes, true},
		"of another node":            {of("n2"), nil, forbidden, true},
		"no keys":                    {of("n1"), func(s *issuing) { s.Tokens = nil }, yes, false},
		"the watch does not show it": {of("n1"), func(s *issuing) { delete(s.cluster.known, "uid-n1") }, yes, false},
		"the watch is old":           {of("n1"), func(s *issuing) { s.cluster.heard = time.Now().Add(-believed) }, yes, false},
		"of a pod that was deleted":  {of("n1"), gone, unauthorized, false},
		"of a pod being deleted":     {of("n1"), func(s *issuing) { s.pod(func(p *Pod) { p.Leaving = true }) }, yes, false},
		"of a pod that has ended":    {of("n1"), func(s *issuing) { s.pod(func(p *Pod) { p.Ended = true }) }, yes, false},
		"of a pod on another node":   {of("n1"), func(s *issuing) { s.pod(func(p *Pod) { p.Node = "n3" }) }, forbidden, false},
		"of an earlier pod":          {of("n1"), func(s *issuing) { s.pod(func(p *Pod) { p.Name = "katbox-y" }) }, forbidden, false},
		"it names no node":           {but("n1", func(c *Identity) { c.Node = "" }), nil, unauthorized, false},
		"of another ServiceAccount":  {but("n1", func(c *Identity) { c.ServiceAccount = "admin" }), nil, unauthorized, false},
		"of another namespace":       {but("n1", func(c *Identity) { c.Namespace = "ci" }), nil, unauthorized, false},
		"of an earlier account":      {but("n1", func(c *Identity) { c.ServiceAccountUID = "s0" }), nil, unauthorized, false},
		"of an account without UID":  {but("n1", func(c *Identity) { c.ServiceAccountUID = "" }), nil, unauthorized, false},
		"of another pod on the node": {but("n1", func(c *Identity) { c.PodUID = "uid-x" }), nil, unauthorized, false},
		"of a pod of another name":   {but("n1", func(c *Identity) { c.Pod = "katbox-x" }), nil, unauthorized, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newIssuing(t)
			if code := s.admits("n2", s.tokens["n2"]); code != yes {
				t.Fatalf("the first token: %d", code)
			}
			token := s.token(tc.claims)
			if tc.claims == of("n1") {
				token = s.tokens["n1"]
			}
			if tc.change != nil {
				tc.change(s)
			}
			for i := range 3 {
				if code := s.admits("n1", token); code != tc.want {
					t.Errorf("answered %d, want %d", code, tc.want)
				}
				read, reviewed := s.counted()
				if tc.read && (read != i+1 || reviewed != 1) || !tc.read && (read != 0 || reviewed != i+2) {
					t.Errorf("after %d attempts %d tokens were read and %d reviewed", i+1, read, reviewed)
				}
			}
		})
	}
}

func gone(s *issuing) {
	delete(s.cluster.known, "uid-n1")
	delete(s.cluster.pods, "katbox-n1")
	delete(s.cluster.tokens, s.tokens["n1"])
}

// pod changes what the watch shows of the pod on n1, and what the API server says of it.
func (s *issuing) pod(change func(*Pod)) {
	p := s.cluster.known["uid-n1"]
	change(&p)
	s.cluster.known["uid-n1"], s.cluster.pods["katbox-n1"] = p, p
}

// TestAccountMadeAgain: the tokens of a ServiceAccount that was deleted are accepted for a minute at most.
func TestAccountMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIssuing(t)
		defer s.Close()
		later := s.token(but("n1", func(c *Identity) { c.ServiceAccountUID = "s2" }))
		now := s.cluster.tokens[s.tokens["n1"]]
		now.ServiceAccountUID = "s2"
		want := func(when, token string, code int) {
			t.Helper()
			if got := s.admits("n1", token); got != code {
				t.Errorf("%s: %d, want %d", when, got, code)
			}
		}
		want("the first token", s.tokens["n1"], 101)
		s.cluster.tokens = map[string]Identity{later: now}
		want("a token of the account that was deleted a moment ago", s.tokens["n1"], 101)
		time.Sleep(believed)
		want("a minute later", s.tokens["n1"], 401)
		want("of the new account", later, 101)
		want("of the new account again", later, 101)
		want("of the old one again", s.tokens["n1"], 401)
		if read, reviewed := s.counted(); read != 2 || reviewed != 4 {
			t.Errorf("%d tokens were read and %d reviewed", read, reviewed)
		}
	})
}

// TestManyAtOnce: TokenReviews do not grow with the nodes that come back at once, nor where the API server refuses one.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIssuing(t)
		defer s.Close()
		s.cluster.onReview = func(context.Context) { time.Sleep(time.Second) }
		delete(s.cluster.tokens, s.tokens["n2"])
		var all sync.WaitGroup
		come := func() {
			for range mostWaiting {
				all.Go(func() {
					if code := s.admits("n1", s.tokens["n1"]); code != 101 {
						t.Errorf("answered %d", code)
					}
				})
			}
			all.Wait()
		}
		if code := s.admits("n2", s.tokens["n2"]); code != 401 {
			t.Errorf("a token that the API server does not accept: %d", code)
		}
		come()
		time.Sleep(believed)
		come()
		if read, reviewed := s.counted(); read != 2*mostWaiting-2 || reviewed != 3 {
			t.Errorf("%d tokens were read and %d reviewed", read, reviewed)
		}
		// Where it does not answer no one is let in when that is old, and all are told to come back.
		time.Sleep(believed)
		s.cluster.onReview = func(ctx context.Context) { <-ctx.Done() }
		s.cluster.down = true
		for range mostWaiting {
			all.Go(func() {
				if code := s.admits("n1", s.tokens["n1"]); code != 503 {
					t.Errorf("without an API server: %d", code)
				}
			})
		}
		all.Wait()
		s.cluster.onReview, s.cluster.down = nil, false
		come()
	})
}

// TestBeforePodsAreKnown: nodes that come while the pods are listed wait for that, and come again, but not for long.
func TestBeforePodsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIssuing(t)
		defer s.Close()
		known := make(chan struct{})
		s.Known = known
		heard := s.cluster.heard
		s.cluster.heard = time.Time{}
		time.AfterFunc(time.Second, func() {
			s.cluster.change(func() { s.cluster.heard = heard })
			close(known)
		})
		var all sync.WaitGroup
		for range mostWaiting {
			all.Go(func() {
				if code := s.admits("n1", s.tokens["n1"]); code != 101 {
					t.Errorf("answered %d", code)
				}
			})
		}
		all.Wait()
		if read, reviewed := s.counted(); read != mostWaiting-1 || reviewed != 1 {
			t.Errorf("%d tokens were read and %d reviewed", read, reviewed)
		}
		s.Known, s.cluster.heard = make(chan struct{}), time.Time{}
		if code := s.admits("n1", s.tokens["n1"]); code != 503 {
			t.Errorf("while they are listed: answered %d", code)
		}
		if _, reviewed := s.counted(); reviewed != 1 {
			t.Errorf("while they are listed %d tokens were reviewed", reviewed-1)
		}
		time.Sleep(listing)
		began := time.Now()
		if code := s.admits("n1", s.tokens["n1"]); code != 101 || time.Since(began) != s.limits.wait/2 {
			t.Errorf("where they are never known: %d after %s", code, time.Since(began))
		}
	})
}

// TestForgedTokensHoldUpNoNode: however many tokens wait for a TokenReview that were not signed, a daemon does not wait behind them.
func TestForgedTokensHoldUpNoNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIssuing(t)
		defer s.Close()
		hanging := 0
		s.cluster.onReview = func(ctx context.Context) {
			s.cluster.mu.Lock()
			hangs := hanging < reviewsAtOnce
			hanging++
			s.cluster.mu.Unlock()
			if hangs {
				<-ctx.Done()
			}
		}
		var all sync.WaitGroup
		for range mostWaiting / 2 {
			all.Go(func() { s.admits("n2", "forged") })
		}
		time.Sleep(time.Second) // until all places are taken
		began := time.Now()
		if code := s.admits("n1", s.tokens["n1"]); code != 101 || time.Since(began) > time.Second {
			t.Errorf("answered %d after %s", code, time.Since(began))
		}
		all.Wait()
	})
}

// TestRenewed: while nodes come now and then, none waits for a TokenReview, also where the API server is slow.
func TestRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIssuing(t)
		defer s.Close()
		if code := s.admits("n1", s.tokens["n1"]); code != 101 {
			t.Fatalf("the first token: %d", code)
		}
		s.cluster.onReview = func(context.Context) { time.Sleep(8 * time.Second) }
		for i := range 3000 {
			began := time.Now()
			if code := s.admits("n1", s.tokens["n1"]); code != 101 || time.Since(began) > 0 {
				t.Fatalf("token %d: %d after %s", i, code, time.Since(began))
			}
			time.Sleep(100 * time.Millisecond)
		}
		// Each review of 8 s begins 40 s after the one before began.
		if read, reviewed := s.counted(); read != 3000 || reviewed < 7 || reviewed > 9 {
			t.Errorf("%d tokens were read and %d reviewed", read, reviewed)
		}
		// Where it says no, that is not forgotten: once it is too old, the next token is reviewed.
		s.cluster.change(func() { s.cluster.onReview, s.cluster.tokens = nil, map[string]Identity{} })
		time.Sleep(believed)
		if code := s.admits("n1", s.tokens["n1"]); code != 401 {
			t.Errorf("a token that the API server does not accept any more: %d", code)
		}
	})
}
