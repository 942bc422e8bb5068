package uplink

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// answering is a gateway that answers each request to connect with a text.
func answering(cert tls.Certificate, text string) func(net.Conn) {
	return func(conn net.Conn) {
		if secure, _, err := uplinktest.Read(conn, cert); err == nil {
			_, _ = io.WriteString(secure, text) // the node has left
			secure.Close()
		}
	}
}

// TestWhatKeepsANodeAway: each cause is logged once, and says what to do; the node goes on trying.
func TestWhatKeepsANodeAway(t *testing.T) {
	ca, other := uplinktest.NewAuthority(t), uplinktest.NewAuthority(t)
	cert := ca.Leaf(t, gatewayName)
	refusing := func(code, body string) func(net.Conn) {
		return answering(cert, fmt.Sprintf("HTTP/1.1 %s\r\nRetry-After: 0\r\nContent-Length: %d\r\n\r\n%s", code, len(body), body))
	}
	for name, tt := range map[string]struct {
		behave  func(net.Conn)
		spoil   func(*scene) error
		outcome string
		want    string
	}{
		"no token": {spoil: func(s *scene) error { return os.Remove(s.cfg.TokenFile) }, outcome: "refused",
			want: "no such file or directory; mount a projected token of the ServiceAccount"},
		"empty token": {spoil: writeToken(""), outcome: "refused", want: "token does not contain a token; mount a projected token"},
		"odd token":   {spoil: writeToken("a\r\nb: c"), outcome: "refused", want: "does not contain a token"},
		"no CA": {spoil: func(s *scene) error { return os.Remove(s.cfg.CAFile) }, outcome: "refused",
			want: "no such file or directory; mount the ConfigMap katbox-gateway-ca there"},
		"empty CA": {spoil: func(s *scene) error { return os.WriteFile(s.cfg.CAFile, []byte("x"), 0o600) }, outcome: "refused",
			want: "ca.crt contains no certificate in PEM"},
		"other CA":   {behave: answering(other.Leaf(t, gatewayName), ""), outcome: "refused", want: "unknown authority"},
		"other name": {behave: answering(ca.Leaf(t, "other.test"), ""), outcome: "refused", want: "valid for other.test, not gateway.test"},
		"old TLS":    {behave: oldTLS(cert), outcome: "failed", want: "begin TLS with the gateway: tls: protocol version not supported"},
		"no TLS":     {behave: noTLS, outcome: "failed", want: "begin TLS with the gateway: tls: first record does not look like"},
		"nobody":     {behave: func(c net.Conn) { c.Close() }, outcome: "failed", want: "the other end closed the connection; check that"},
		"401": {behave: refusing("401 Unauthorized", `{"message":"token expired"}`), outcome: "refused",
			want: "token expired; check that the token in "},
		"403": {behave: refusing("403 Forbidden", `{"message":"pod is\ngone"}`), outcome: "refused", want: "pod is gone; check that the daemon"},
		"503": {behave: refusing("503 Service Unavailable", "starting"), outcome: "busy", want: "has no time (503): 503 Service Unavailable"},
		"404": {behave: refusing("404 Not Found", "nothing here"), outcome: "refused", want: "404: 404 Not Found; check that --gateway"},
		"200": {behave: refusing("200 OK", "hello"), outcome: "refused", want: "answers the request to connect with 200"},
		"other words": {behave: answering(cert, strings.Replace(uplinktest.Switching, api.ConnectProtocol, "websocket", 1)), outcome: "refused",
			want: `switches to the protocol "websocket"`},
		"no words": {behave: answering(cert, "hello\r\n\r\n"), outcome: "failed", want: "did not answer"},
		"long line": {behave: answering(cert, strings.Repeat("z", mostAnswer/2)+"\r\n\r\n"), outcome: "failed",
			want: `did not answer the request to connect: malformed HTTP response "zzz`},
		"long header": {behave: answering(cert, "HTTP/1.1 101 x\r\nA: "+strings.Repeat("a", 2*mostAnswer)), outcome: "failed",
			want: "did not answer"},
		"garbage": {behave: answering(cert, uplinktest.Switching+strings.Repeat("garbage\r\n", 1000)), outcome: "failed",
			want: "without a question: the gateway does not answer, or breaks the rules of HTTP/2"},
		"left": {behave: answering(cert, uplinktest.Switching), outcome: "failed", want: "without a question: the other end closed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, ca)
			right, nodes := good(t, cert)
			var mu sync.Mutex
			behave := right
			if tt.behave != nil {
				behave = tt.behave
			}
			g := startGateway(t, "127.0.0.1:0", func(c net.Conn) {
				mu.Lock()
				now := behave
				mu.Unlock()
				now(c)
			})
			if tt.spoil != nil {
				must(t, tt.spoil(s))
			}
			u := s.start(g.port())
			counter := fmt.Sprintf(`katbox_gateway_connects_total{outcome=%q}`, tt.outcome)
			eventually(t, "three attempts", func() bool { return metricstest.Of(t, s.cfg.Metrics)[counter] >= 3 })
			st := state(t, u)
			if !st.Since.IsZero() || st.Err == nil {
				t.Fatalf("the state is %+v", st)
			}
			if !strings.Contains(st.Err.Error(), tt.want) {
				t.Errorf("%v, want %q", st.Err, tt.want)
			}
			if s.logged("not connected to the gateway") != 1 {
				t.Errorf("want one line, the log is\n%s", s.logText())
			}
			if len(s.logText()) > 10*mostMessage {
				t.Errorf("the log has %d bytes", len(s.logText()))
			}
			if strings.Contains(s.logText(), "token-1") {
				t.Error("the token is in the log")
			}
			// Once it is put right, the node connects.
			mu.Lock()
			behave = right
			mu.Unlock()
			must(t, os.WriteFile(s.cfg.TokenFile, []byte("token-2"), 0o600), os.WriteFile(s.cfg.CAFile, ca.PEM, 0o600))
			next(t, "node", nodes)
		})
	}
}

func writeToken(text string) func(*scene) error {
	return func(s *scene) error { return os.WriteFile(s.cfg.TokenFile, []byte(text), 0o600) }
}

// noTLS answers as a server without TLS does.
func noTLS(conn net.Conn) {
	_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") // the node has left
	drain(conn)
}

func oldTLS(cert tls.Certificate) func(net.Conn) {
	return func(conn net.Conn) {
		_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}, MaxVersion: tls.VersionTLS12}).Handshake()
		conn.Close()
	}
}
