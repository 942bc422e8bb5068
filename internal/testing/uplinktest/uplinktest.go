// Package uplinktest plays a gateway that a node connects to, for tests.
package uplinktest

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// Authority is a CA.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// PEM is its certificate.
	PEM []byte
}

// NewAuthority makes a CA.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(t, err)
	cert, err := x509.ParseCertificate(der)
	check(t, err)
	return &Authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// Leaf returns a certificate for a name.
func (a *Authority) Leaf(t testing.TB, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	check(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Node is what a gateway sees of a node that has connected.
type Node struct {
	// Request is the node's request to connect.
	Request *http.Request
	State   tls.ConnectionState
	// Client sends requests to the node.
	Client *http.ClientConn
}

// Read reads a node's request to connect.
func Read(conn net.Conn, cert tls.Certificate) (*tls.Conn, *http.Request, error) {
	secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}})
	r, err := http.ReadRequest(bufio.NewReader(secure))
	return secure, r, err
}

// Switching is the answer that takes a node.
const Switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + api.ConnectProtocol + "\r\n\r\n"

// Take takes a node and becomes its client.
func Take(ctx context.Context, conn net.Conn, cert tls.Certificate) (*Node, error) {
	return TakeAs(ctx, conn, cert, "")
}

// Forwarding is the name of a replica that asks others, for TakeAs.
func Forwarding(replica string) string { return replica + "\r\n" + api.HeaderForwards + ": true" }

// TakeAs is Take by a replica; one without a name does not say which it is.
func TakeAs(ctx context.Context, conn net.Conn, cert tls.Certificate, replica string) (*Node, error) {
	secure, r, err := Read(conn, cert)
	if err != nil {
		return nil, err
	}
	answer := Switching
	if replica != "" {
		answer = strings.TrimSuffix(answer, "\r\n") + api.HeaderReplica + ": " + replica + "\r\n\r\n"
	}
	if _, err := io.WriteString(secure, answer); err != nil {
		return nil, err
	}
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return secure, nil }}
	client, err := transport.NewClientConn(ctx, "http", "node:80")
	if err != nil {
		return nil, err
	}
	return &Node{Request: r, State: secure.ConnectionState(), Client: client}, nil
}

// Ask sends a request to the node.
func (n *Node) Ask(method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequest(method, "http://node"+path, body)
	if err != nil {
		return nil, err
	}
	return n.Client.RoundTrip(r)
}
