package local

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

// Controller takes the daemon's connections and asks on the newest.
type Controller struct {
	dir      string
	listener net.Listener

	mu    sync.Mutex
	node  *http.ClientConn
	came  chan struct{} // closed when a node comes
	conns map[net.Conn]bool
	group sync.WaitGroup
}

// Listen starts a controller. It writes what a daemon needs to connect into a directory.
func Listen(dir string) (*Controller, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	c := &Controller{dir: dir, came: make(chan struct{}), conns: make(map[net.Conn]bool)}
	certificate, err := c.certify()
	if err != nil {
		return nil, fmt.Errorf("make a certificate of the controller: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	if c.listener, err = tls.Listen("tcp", "127.0.0.1:0", config); err != nil {
		return nil, err
	}
	c.group.Go(c.serve)
	return c, nil
}

// Flags are those of a daemon that connects.
func (c *Controller) Flags() []string {
	return []string{
		"--controller", c.listener.Addr().String(), "--controller-ca", filepath.Join(c.dir, "ca.crt"),
		"--controller-token", filepath.Join(c.dir, "token"),
	}
}

// Close ends it, and all connections.
func (c *Controller) Close() error {
	err := c.listener.Close()
	c.mu.Lock()
	for conn := range c.conns {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.group.Wait()
	return err
}

// certify makes a certificate that is its own CA, and writes it and a token.
func (c *Controller) certify() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	// The daemon's clock may be wrong by years.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "controller"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().AddDate(-20, 0, 0), NotAfter: time.Now().AddDate(20, 0, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, errors.Join(
		os.WriteFile(filepath.Join(c.dir, "ca.crt"), text, 0o600), os.WriteFile(filepath.Join(c.dir, "token"), []byte("token"), 0o600))
}

// serve takes connections until the listener is closed.
func (c *Controller) serve() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		c.conns[conn] = true
		c.mu.Unlock()
		c.group.Go(func() {
			c.take(conn)
			_ = conn.Close()
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.conns, conn)
		})
	}
}

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + api.ConnectProtocol + "\r\n\r\n"

// take lets a node connect, and listens to it until the connection has ended. One that fails comes again.
func (c *Controller) take(conn net.Conn) {
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
	// What a node says of its pools unasked is of no use here, but a controller listens.
	request, err := http.NewRequest(http.MethodGet, "http://node"+api.SummaryPath, nil)
	if err != nil {
		return
	}
	summary, err := node.RoundTrip(request)
	if err != nil {
		return
	}
	defer summary.Body.Close()
	c.become(node)
	_, _ = io.Copy(io.Discard, summary.Body) // how it ends is all the same
	c.lose(node)
}

// become makes a connection the one that is used.
func (c *Controller) become(node *http.ClientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.node = node
	close(c.came)
	c.came = make(chan struct{})
}

// lose notes that a connection has ended.
func (c *Controller) lose(node *http.ClientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node == node {
		c.node = nil
	}
}

// connection waits for a node and returns its connection.
func (c *Controller) connection(ctx context.Context) (*http.ClientConn, error) {
	for {
		c.mu.Lock()
		node, came := c.node, c.came
		c.mu.Unlock()
		if node != nil {
			return node, nil
		}
		select {
		case <-came:
		case <-ctx.Done():
			return nil, fmt.Errorf("no node is connected: %w", context.Cause(ctx))
		}
	}
}
