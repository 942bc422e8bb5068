package replicas_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// TestOnlyReplicasMayAsk: who has no certificate of the gateway is not let in, and a replica gets from a node what reads or changes
// volumes alone.
func TestOnlyReplicasMayAsk(t *testing.T) {
	s := newScene(t, 1, "n1")
	asked := make(chan string, 100)
	s.connect("n1", func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }, s.replicas[0])
	own, foreign := s.cert, uplinktest.NewAuthority(t).Leaf(t, name)
	other := s.ca.Leaf(t, "katbox-controller-nodes.katbox.svc")
	ask := func(cert *tls.Certificate, method, path string) (int, string, error) {
		protocols := new(http.Protocols)
		protocols.SetHTTP2(true)
		config := &tls.Config{RootCAs: s.roots(), ServerName: name, NextProtos: []string{"h2", hub.ReplicaProtocol}}
		if cert != nil {
			config.Certificates = []tls.Certificate{*cert}
		}
		var dialer tls.Dialer
		dialer.Config = config
		transport := &http.Transport{Protocols: protocols, DialTLSContext: dialer.DialContext}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.replicas[0].address().String()+path, nil)
		must(t, err)
		request.Header.Set(api.HeaderNode, "n1")
		request.Header.Set(api.HeaderUser, "system:admin")
		answer, err := transport.RoundTrip(request)
		if err != nil {
			return 0, "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text), err
	}
	for name, cert := range map[string]*tls.Certificate{"none": nil, "of another CA": &foreign, "of another name": &other} {
		for _, path := range []string{"/v1/replica/nodes?namespace=ci", "/v1/volumes", "/v1/connect", "/"} {
			if code, text, err := ask(cert, http.MethodGet, path); err == nil {
				t.Errorf("%s with a certificate, %s, is answered: %d %s", path, name, code, text)
			}
		}
	}
	for _, path := range []string{
		api.SummaryPath, api.OwnersPath, api.OutcomesPath, api.UploadsPath, "/v1/usage", "/v1/report", "/v1/volumesx", "/", "/v1/replica", "",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if code, text, err := ask(&own, method, path); err != nil || code != http.StatusNotFound {
				t.Errorf("%s %q: %d %s, %v", method, path, code, text, err)
			}
		}
	}
	if len(asked) > 0 {
		t.Errorf("the node was asked for %s", <-asked)
	}
	const files = "/v1/volumes/csi-1/files"
	if code, text, err := ask(&own, http.MethodGet, files); err != nil || code != http.StatusOK || <-asked != files {
		t.Errorf("a replica gets %d %s, %v", code, text, err)
	}
	// Any other client is one that wants to be a node, and is told so.
	plain := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
		RootCAs: s.roots(), ServerName: name, Certificates: []tls.Certificate{own},
	}}}
	answer, err := plain.Get("https://" + s.replicas[0].address().String() + "/v1/replica/nodes?namespace=ci")
	must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound || answer.ProtoMajor != 1 {
		t.Errorf("another client gets %s %s", answer.Proto, answer.Status)
	}
	// Nor is one a replica that says it speaks HTTP/2.
	conn, err := tls.Dial("tcp", s.replicas[0].address().String(), &tls.Config{RootCAs: s.roots(), ServerName: name})
	must(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\n")
	must(t, err)
	answer, err = http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer answer.Body.Close()
	if answer.Header.Get("Katbox-Relayed") != "" {
		t.Errorf("it is answered as a replica is: %v", answer.Header)
	}
}

// TestLongURL: a request is not too long for another replica that is not for a node.
func TestLongURL(t *testing.T) {
	s := newScene(t, 2, "n1")
	s.connect("n1", func(http.ResponseWriter, *http.Request) {}, s.replicas[0])
	s.replicas[1].Look(t.Context(), "ci")
	for i, r := range s.replicas {
		conn, ok := r.Get("n1")
		if !ok {
			t.Fatalf("replica %d has no way to n1", i)
		}
		for size, ok := range map[int]bool{15 << 10: true, 17 << 10: true, 40 << 10: true, 47 << 10: true, 49 << 10: false} {
			query := url.Values{"exclude": {strings.Repeat("x", size)}}
			answer, err := conn.Client().Send(t.Context(), http.MethodGet, api.BytesPath("csi-1"), query, nil)
			if err == nil {
				answer.Body.Close()
			}
			if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "too long") {
				t.Errorf("replica %d, %d bytes: %v", i, size, err)
			}
		}
	}
}

// TestForward: nodes need no connection to each replica only if all were found, each has answered once, and none is an older one.
func TestForward(t *testing.T) {
	s := newScene(t, 0)
	older, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{s.cert}, NextProtos: []string{"http/1.1"}})
	must(t, err)
	defer older.Close()
	takeEach(older, func(conn net.Conn) { _ = conn.(*tls.Conn).HandshakeContext(context.Background()) })
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	nobody.Close()
	var at []netip.AddrPort
	var unfound error
	r := s.newReplica(func(context.Context) ([]netip.AddrPort, error) { return slices.Clone(at), unfound })
	other := s.newReplica(func(context.Context) ([]netip.AddrPort, error) { return nil, nil })
	look := func(want bool, when string, addresses ...netip.AddrPort) {
		t.Helper()
		at = addresses
		r.others.Begin(t.Context())
		if r.others.Forward() != want {
			t.Errorf("%s: %v", when, !want)
		}
	}
	if r.others.Forward() {
		t.Error("it has not looked for the others")
	}
	own, silent := r.address(), netip.MustParseAddrPort(nobody.Addr().String())
	look(true, "it is the only one", own)
	look(true, "the other one answers", own, other.address())
	look(false, "one has never answered", own, other.address(), silent)
	look(false, "an older one", own, netip.MustParseAddrPort(older.Addr().String()))
	look(true, "the older one is gone", own, other.address())
	unfound = errors.New("no DNS")
	look(false, "they cannot be found", own, other.address())
	unfound = nil
	other.lose()
	look(true, "one that has answered before is lost", own, other.address())
}

// TestSilentNode: a node that does not answer over another replica is one that did not answer in time, is counted there, and is
// not asked for a while.
func TestSilentNode(t *testing.T) {
	s := newScene(t, 2, "n1")
	s.connect("n1", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, s.replicas[0])
	far := s.replicas[1]
	skip := func() string {
		f := far.Look(t.Context(), "ci")
		if len(f.Held) != 1 {
			t.Fatalf("%+v", f)
		}
		return f.Held[0].Skip
	}
	for range 2 {
		if why := skip(); why != "" {
			t.Errorf("it is skipped at once: %s", why)
		}
		conn, _ := far.Get("n1")
		// The node has nine tenths of it: the rest has to be enough for the way between the replicas.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := conn.Client().List(ctx, api.Query{})
		cancel()
		if err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
			t.Errorf("a list: %v", err)
		}
	}
	if why := skip(); why != "NotAnswering" {
		t.Errorf("it is skipped because of %q", why)
	}
}
