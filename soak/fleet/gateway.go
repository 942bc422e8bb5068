package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/host"
)

// gateway is the process of one replica.
type gateway struct {
	o   options
	dir string
	// replicas is where all replicas listen for the nodes.
	replicas                       string
	apiPort, nodesPort, statusPort int
	process                        *exec.Cmd
	ended                          chan error
}

// newGateways chooses the ports and makes a certificate. The nodes know the gateway by an address,
// since its name is not resolved here, so that is in the certificate.
func newGateways(o options, dir string) (all gateways, err error) {
	for range o.replicas {
		g := &gateway{o: o, dir: dir}
		for _, port := range []*int{&g.apiPort, &g.nodesPort, &g.statusPort} {
			l, err := net.Listen("tcp", net.JoinHostPort(o.address, "0"))
			if err != nil {
				return nil, fmt.Errorf("--address: %w", err)
			}
			*port = l.Addr().(*net.TCPAddr).Port
			defer l.Close() // they are to differ
		}
		all = append(all, g)
	}
	for _, g := range all {
		g.replicas = all.addresses()
	}
	return all, all[0].certify()
}

// ca is the file of the CA.
func (g *gateway) ca() string { return filepath.Join(g.dir, "ca.crt") }

// certify writes a CA and a certificate of the gateway.
func (g *gateway) certify() error {
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fleet"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "katbox-gateway"}, NotBefore: authority.NotBefore,
		NotAfter: authority.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"katbox-gateway." + own + ".svc", "katbox-gateway-nodes." + own + ".svc"},
		IPAddresses: []net.IP{net.ParseIP(g.o.address)},
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	key, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	leafDER, err2 := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	keyDER, err3 := x509.MarshalECPrivateKey(key)
	return errors.Join(err, err2, err3,
		writePEM(g.ca(), "CERTIFICATE", authorityDER),
		writePEM(filepath.Join(g.dir, "tls.crt"), "CERTIFICATE", leafDER),
		writePEM(filepath.Join(g.dir, "tls.key"), "EC PRIVATE KEY", keyDER))
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func (g *gateway) at(port int) string { return net.JoinHostPort(g.o.address, strconv.Itoa(port)) }

// start starts the program.
func (g *gateway) start() error {
	g.process = exec.Command(g.o.gateway, "--kubeconfig", g.o.kubeconfig, "--namespace", own,
		"--api-endpoint", g.at(g.apiPort), "--nodes-endpoint", g.at(g.nodesPort), "--http-endpoint", g.at(g.statusPort),
		"--replicas", g.replicas, "--cert-mode", "given", "--cert-dir", g.dir)
	g.process.Env = append(os.Environ(), "GOMEMLIMIT="+g.o.goMemory)
	last := &tail{}
	g.process.Stdout, g.process.Stderr = last, last
	if g.o.verbose {
		g.process.Stdout, g.process.Stderr = os.Stderr, os.Stderr
	}
	if err := g.process.Start(); err != nil {
		return fmt.Errorf("start the gateway: %w; make build makes it", err)
	}
	g.ended = make(chan error, 1)
	go func(p *exec.Cmd, ended chan<- error) {
		err := p.Wait()
		ended <- fmt.Errorf("the gateway has ended: %w\n%s", errors.Join(err, errEnded), last)
	}(g.process, g.ended)
	return nil
}

// stopLimit is how long the gateway may take to stop.
const stopLimit = time.Minute

var errEnded = errors.New("it was not asked to")

// stop ends the program.
func (g *gateway) stop() error {
	if g.process == nil {
		return nil
	}
	if err := g.process.Process.Signal(unix.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	ended := g.ended
	g.process = nil
	select {
	case <-ended: //nolint:errcheck // it says how the program ended, as it was asked to
		return nil
	case <-time.After(stopLimit):
		return fmt.Errorf("the gateway has not ended %s after SIGTERM", stopLimit)
	}
}

// kill ends the program as the kernel does that has no memory for it.
func (g *gateway) kill() error {
	ended := g.ended
	err := g.process.Process.Kill()
	g.process = nil
	<-ended //nolint:errcheck // it was killed
	return err
}

// tail keeps the end of what is written.
type tail struct {
	mu  sync.Mutex
	end []byte
}

// Write keeps p.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	t.end = t.end[max(0, len(t.end)-4000):]
	return len(p), nil
}

// String returns the end.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.end)
}

// status asks the gateway's port for probes and metrics.
func (g *gateway) status(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.at(g.statusPort)+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return string(body), err
}

// counts are numbers from the gateway's metrics: nodes, those of them that are connected to it itself, and tokens that the API server
// reviewed, and that the gateway read.
type counts struct{ connected, here, reviews, read int }

func (g *gateway) counts(ctx context.Context) (c counts, err error) {
	text, err := g.status(ctx, "/metrics")
	if err != nil {
		return c, err
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		number, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case name == "katbox_gateway_nodes_connected":
			c.connected = int(number)
		case name == "katbox_gateway_nodes_connected_here":
			c.here = int(number)
		case strings.HasPrefix(name, "katbox_gateway_token_reviews_total{"):
			c.reviews += int(number)
		case name == "katbox_gateway_tokens_read_total":
			c.read = int(number)
		}
	}
	return c, lines.Err()
}

// memory returns how much memory the gateway has, and has had at most, in MiB.
func (g *gateway) memory() (now, peak int, err error) {
	used, err := host.ReadUsage(g.process.Process.Pid)
	return int(used.RSS >> 20), int(used.Peak >> 20), err
}
