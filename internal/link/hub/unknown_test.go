package hub

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// anyReplica takes each client with a certificate for another replica.
type anyReplica struct {
	lookedAt
	http.Handler
	certificate tls.Certificate
}

func (*anyReplica) Verify(tls.ConnectionState) error { return nil }
func (a *anyReplica) Show(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &a.certificate, nil
}

// TestCrowdShutsNoReplicaOut: what another replica has asked goes on while more clients come than may be unknown.
func TestCrowdShutsNoReplicaOut(t *testing.T) {
	s := newStage(t)
	s.limits.silent, s.limits.asking = 3, 3
	certificate := uplinktest.NewAuthority(t).Leaf(t, "example.com")
	release := make(chan struct{})
	s.Replicas = &anyReplica{certificate: certificate, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun ")
		_ = http.NewResponseController(w).Flush()
		<-release
		_, _ = io.WriteString(w, "ended")
	})}
	s.certificates = []tls.Certificate{certificate}
	s.listen(nil)
	config := s.tls.Clone()
	config.Certificates, config.NextProtos = []tls.Certificate{certificate}, []string{"h2", ReplicaProtocol}
	transport := &http.Transport{Protocols: new(http.Protocols), DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn := tls.Client(s.from("127.0.0.3"), config)
		return conn, conn.HandshakeContext(ctx)
	}}
	transport.Protocols.SetHTTP2(true)
	defer transport.CloseIdleConnections()
	// It may be the first request of its connection, and long.
	long, err := http.NewRequestWithContext(ctx(t), http.MethodGet, "https://gateway/?"+strings.Repeat("x", mostSent), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(long)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.ReadFull(answer.Body, make([]byte, len("begun "))); err != nil {
		t.Fatal(err)
	}
	const crowd = 20
	for i := range crowd {
		conn := tls.Client(s.from(fmt.Sprintf("127.0.1.%d", i+1)), s.tls)
		if _, err := io.WriteString(conn, "GET /v1/connect HTTP/1.1\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	s.wait("the crowd to be too large", func() bool { return s.counted("connections", Busy) > crowd/2 })
	close(release)
	if rest, err := io.ReadAll(answer.Body); err != nil || string(rest) != "ended" {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestLongRequests: a client that is not known is refused with a header that is too long, and cannot send more.
func TestLongRequests(t *testing.T) {
	s := newStage(t).listen(nil)
	_, answer := s.dial(request("n1", strings.Repeat("x", mostRequest)))
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%d bytes: %s", mostRequest, answer.Status)
	}
	conn, err := tls.Dial("tcp", s.server.Listener.Addr().String(), s.tls)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if answer, err := ask(conn, request("n1", strings.Repeat("x", mostUnknown))); err == nil && answer.StatusCode != http.StatusBadRequest {
		t.Errorf("%d bytes: %s", mostUnknown, answer.Status)
	}
	if len(s.all()) != 0 || s.cluster.reviews != 0 {
		t.Errorf("%d nodes, %d reviews", len(s.all()), s.cluster.reviews)
	}
}
