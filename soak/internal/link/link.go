// Package link takes the connections that a daemon opens to a gateway or a controller, and speaks of nothing that goes over them.
package link

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
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// Listener takes the daemon's connections.
type Listener struct {
	dir      string
	listener net.Listener
	hear     func(*http.ClientConn, io.Reader)

	mu    sync.Mutex
	conns map[net.Conn]bool
	group sync.WaitGroup
}

// Listen writes what a daemon needs to connect into a directory, and takes connections. hear is called with each, and with the
// summaries that the node sends over it, until the connection has ended.
func Listen(dir string, hear func(node *http.ClientConn, summaries io.Reader)) (*Listener, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l := &Listener{dir: dir, hear: hear, conns: make(map[net.Conn]bool)}
	certificate, err := l.certify()
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	if l.listener, err = tls.Listen("tcp", "127.0.0.1:0", config); err != nil {
		return nil, err
	}
	l.group.Go(l.serve)
	return l, nil
}

// Target is where a daemon has to connect to, CA and Token are the files that it needs for that.
func (l *Listener) Target() string { return l.listener.Addr().String() }

// CA is described with Target.
func (l *Listener) CA() string { return filepath.Join(l.dir, "ca.crt") }

// Token is described with Target.
func (l *Listener) Token() string { return filepath.Join(l.dir, "token") }

// Flags are those of a daemon that connects to a gateway or a controller, as what says.
func (l *Listener) Flags(what string) []string {
	return []string{"--" + what, l.Target(), "--" + what + "-ca", l.CA(), "--" + what + "-token", l.Token()}
}

// Close ends it, and all connections.
func (l *Listener) Close() error {
	err := l.listener.Close()
	l.mu.Lock()
	for conn := range l.conns {
		_ = conn.Close()
	}
	l.mu.Unlock()
	l.group.Wait()
	return err
}

// certify makes a certificate that is its own CA, and writes it and a token.
func (l *Listener) certify() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	// The daemon's clock may be wrong by years.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "soak"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().AddDate(-20, 0, 0), NotAfter: time.Now().AddDate(20, 0, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, errors.Join(
		os.WriteFile(l.CA(), text, 0o600), os.WriteFile(l.Token(), []byte("token"), 0o600))
}

// serve takes connections until the listener is closed.
func (l *Listener) serve() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		l.conns[conn] = true
		l.mu.Unlock()
		l.group.Go(func() {
			l.take(conn)
			_ = conn.Close()
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.conns, conn)
		})
	}
}

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + api.ConnectProtocol + "\r\n\r\n"

// take lets a node connect, and hears it until the connection has ended. One that fails comes again.
func (l *Listener) take(conn net.Conn) {
	if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
		return
	}
	if _, err := io.WriteString(conn, switching); err != nil {
		return
	}
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols: protocols, DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}
	node, err := transport.NewClientConn(context.Background(), "http", "node:80")
	if err != nil {
		return
	}
	defer node.Close()
	request, err := http.NewRequest(http.MethodGet, "http://node"+api.SummaryPath, nil)
	if err != nil {
		return
	}
	summary, err := node.RoundTrip(request)
	if err != nil {
		return
	}
	defer summary.Body.Close()
	l.hear(node, summary.Body)
}
