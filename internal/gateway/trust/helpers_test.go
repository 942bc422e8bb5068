package trust_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	clienttesting "k8s.io/client-go/testing"
)

// authority is a CA of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// chain are the certificates between this CA and the root.
	chain [][]byte
}

var serials struct {
	sync.Mutex
	last int64
}

func nextSerial() *big.Int {
	serials.Lock()
	defer serials.Unlock()
	serials.last++
	return big.NewInt(serials.last)
}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// newAuthority makes a CA; a parent makes it an intermediate one.
func newAuthority(name string, parent *authority) *authority {
	a := &authority{key: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))}
	template := &x509.Certificate{
		SerialNumber: nextSerial(), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signer, signedBy := a, template
	if parent != nil {
		signer, signedBy = parent, parent.cert
	}
	raw := must(x509.CreateCertificate(rand.Reader, template, signedBy, a.key.Public(), signer.key))
	a.cert = must(x509.ParseCertificate(raw))
	if parent != nil {
		a.chain = append([][]byte{raw}, parent.chain...)
	}
	return a
}

// renewed is the same CA with another certificate.
func (a *authority) renewed() *authority {
	template := *a.cert
	template.SerialNumber = nextSerial()
	raw := must(x509.CreateCertificate(rand.Reader, &template, &template, a.key.Public(), a.key))
	return &authority{cert: must(x509.ParseCertificate(raw)), key: a.key}
}

// pem is the CA as the ConfigMap has it.
func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// issue makes a certificate, changed as the test wants it.
func (a *authority) issue(name string, usage x509.ExtKeyUsage, changes ...func(*x509.Certificate)) *tls.Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: nextSerial(), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"gateway.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	for _, change := range changes {
		change(template)
	}
	raw := must(x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key))
	return &tls.Certificate{Certificate: append([][]byte{raw}, a.chain...), PrivateKey: key}
}

// lines collects a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, args string) { fmt.Fprintln(l, args) }, funcr.Options{})
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// eventually waits until something is true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// watched reports whether somebody watches. What changes in a fake client after the list and before
// the watch is lost, as it knows no resource versions.
func watched(client interface{ Actions() []clienttesting.Action }) func() bool {
	return func() bool {
		for _, action := range client.Actions() {
			if action.GetVerb() == "watch" {
				return true
			}
		}
		return false
	}
}
