package fakevpsa

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"sync"
	"time"
)

// authority has the certificate of an array, and the CA that it made for it.
type authority struct {
	address net.Addr

	mu   sync.Mutex
	leaf *tls.Certificate
	pem  []byte
}

func newAuthority(l Listen, address net.Addr) (*authority, error) {
	a := &authority{address: address}
	if l.CertFile == "" {
		return a, a.renew()
	}
	leaf, err := tls.LoadX509KeyPair(l.CertFile, l.KeyFile)
	a.leaf = &leaf
	return a, err
}

func (a *authority) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.leaf, nil
		},
	}
}

func (a *authority) ca() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pem
}

// renew makes another CA, and a certificate by it.
func (a *authority) renew() error {
	authority, authorityKey, err := certificate(&x509.Certificate{
		Subject:  pkix.Name{CommonName: "fake array CA"},
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}, nil, nil)
	if err != nil {
		return err
	}
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if tcp, ok := a.address.(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		ips = append(ips, tcp.IP)
	}
	leaf, leafKey, err := certificate(&x509.Certificate{
		Subject: pkix.Name{CommonName: "fake array"}, DNSNames: []string{"localhost"}, IPAddresses: ips,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, authorityKey)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leaf = &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: leafKey}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})
	return nil
}

// certificate makes one; without a parent it signs itself.
func certificate(template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, by = template, key
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		return nil, nil, err
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(365 * 24 * time.Hour)
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return nil, nil, err
	}
	made, err := x509.ParseCertificate(raw)
	return made, key, err
}

// ErrNoTLS: the array has no certificate that could be renewed.
var ErrNoTLS = errors.New("the array listens without TLS")

// RenewCA replaces the array's CA and certificate: who trusted the old CA trusts the array no more.
// Connections stay as they are.
func (a *Array) RenewCA() error {
	a.mu.Lock()
	renew := a.renew
	a.mu.Unlock()
	if renew == nil {
		return ErrNoTLS
	}
	return renew()
}
