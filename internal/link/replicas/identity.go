package replicas

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// shownFor is how long a replica still shows the certificate before: until then the others have read the new one, too, also where
	// kubelets bring it. acceptedFor is how long it accepts the key of that one: of who has read the new one last.
	shownFor    = 5 * time.Minute
	acceptedFor = 10 * time.Minute
	// verifiedFor is how long a certificate is believed that was verified with the same CAs.
	verifiedFor = time.Minute
	// mostCertificates bounds what has to be verified of a client.
	mostCertificates = 4
)

// errKey: the certificate may be a good one. But the replicas of a gateway have one key, in one Secret.
var errKey = errors.New("its certificate has another key than the gateway's; do all replicas use the same Secret?")

// identity is by what the replicas of a gateway know one another: each shows a certificate of the gateway's name and key. A
// certificate of the gateway's CA and name is not enough: a company's CA may give that to others.
//
// A new certificate comes to the replicas one after the other. For a while each accepts two keys, therefore, and first shows the one
// that the others know.
type identity struct {
	name  string
	read  func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	roots func() *x509.CertPool

	mu          sync.Mutex
	now, before *own
	changed     time.Time
	verified    verified
}

// own is a certificate of this replica.
type own struct {
	certificate *tls.Certificate
	chain       []*x509.Certificate
}

// verified is which certificate was verified last, with which CAs, and when.
type verified struct {
	leaf  *x509.Certificate
	roots *x509.CertPool
	at    time.Time
}

// current looks whether there is a new certificate, and returns it.
func (i *identity) current() (*own, error) {
	read, err := i.read(nil)
	if err != nil {
		return nil, err
	}
	if i.now != nil && bytes.Equal(i.now.chain[0].Raw, read.Certificate[0]) {
		return i.now, nil
	}
	o := &own{certificate: read}
	for _, der := range read.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("the gateway's certificate cannot be read: %w", err)
		}
		o.chain = append(o.chain, c)
	}
	i.now, i.before, i.changed = o, i.now, time.Now()
	return o, nil
}

// Show returns the certificate that the other replicas know.
func (i *identity) Show(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	o, err := i.current()
	if err != nil {
		return nil, err
	}
	// One whose CA was taken away is not shown any more: it was taken away for a reason.
	if i.before != nil && time.Since(i.changed) < shownFor && i.verify(i.before.chain) == nil {
		o = i.before
	}
	return o.certificate, nil
}

// Verify lets in who shows a certificate of the gateway's name, CA and key. It is called for each request, too: a connection may be
// older than what it was let in by.
func (i *identity) Verify(state tls.ConnectionState) error {
	if n := len(state.PeerCertificates); n == 0 || n > mostCertificates {
		return fmt.Errorf("a replica of the gateway shows its certificate, and what signs that: not %d certificates", n)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	o, err := i.current()
	if err != nil {
		return err
	}
	leaf := state.PeerCertificates[0]
	same := func(o *own) bool {
		return bytes.Equal(leaf.RawSubjectPublicKeyInfo, o.chain[0].RawSubjectPublicKeyInfo)
	}
	if !same(o) && (i.before == nil || time.Since(i.changed) >= acceptedFor || !same(i.before)) {
		return errKey
	}
	roots := i.roots()
	if v := i.verified; v.leaf != nil && v.leaf.Equal(leaf) && v.roots == roots && time.Since(v.at) < verifiedFor {
		return nil
	}
	if err := i.verify(state.PeerCertificates); err != nil {
		return err
	}
	i.verified = verified{leaf, roots, time.Now()}
	return nil
}

// verify verifies a certificate as nodes do. It is that of a server, also where a client shows it.
func (i *identity) verify(chain []*x509.Certificate) error {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		DNSName: i.name, Roots: i.roots(), Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}
