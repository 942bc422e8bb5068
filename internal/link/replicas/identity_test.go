package replicas

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// party is a replica with what it has read so far.
type party struct {
	*identity
	certificate tls.Certificate
	roots       *x509.CertPool
}

func newParty(certificate tls.Certificate, roots *x509.CertPool) *party {
	p := &party{certificate: certificate, roots: roots}
	p.identity = &identity{
		name: "gateway", roots: func() *x509.CertPool { return p.roots },
		read: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { c := p.certificate; return &c, nil },
	}
	return p
}

// lets reports whether a replica lets in who shows a certificate.
func (p *party) lets(t *testing.T, certificate *tls.Certificate) bool {
	t.Helper()
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return p.Verify(tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}) == nil
}

// shows returns the certificate that it shows.
func (p *party) shows(t *testing.T) *tls.Certificate {
	t.Helper()
	c, err := p.Show(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func rootsOf(all ...*uplinktest.Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, a := range all {
		pool.AppendCertsFromPEM(a.PEM)
	}
	return pool
}

// TestNewCertificate: replicas know one another at each moment while a new certificate comes to one after the other; in the end the
// key before is of no use. Another one of the same CA and name never is.
func TestNewCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := uplinktest.NewAuthority(t)
		first, second, foreign := ca.Leaf(t, "gateway"), ca.Leaf(t, "gateway"), ca.Leaf(t, "gateway")
		a, b := newParty(first, rootsOf(ca)), newParty(first, rootsOf(ca))
		for minute := range 20 {
			switch minute {
			case 1:
				a.certificate = second
			case 4:
				b.certificate = second
			}
			if !a.lets(t, b.shows(t)) || !b.lets(t, a.shows(t)) {
				t.Errorf("after %d minutes they do not know each other", minute)
			}
			if a.lets(t, &foreign) || b.lets(t, &foreign) {
				t.Errorf("after %d minutes they let in who has another key", minute)
			}
			time.Sleep(time.Minute)
		}
		if a.lets(t, &first) || b.lets(t, &first) {
			t.Error("they still let in who has the key before")
		}
	})
}

// TestNewCA: a certificate is neither shown nor accepted any more whose CA was taken away.
func TestNewCA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := uplinktest.NewAuthority(t), uplinktest.NewAuthority(t)
		first, second := before.Leaf(t, "gateway"), after.Leaf(t, "gateway")
		a, b := newParty(first, rootsOf(before)), newParty(first, rootsOf(before))
		if !a.lets(t, b.shows(t)) {
			t.Fatal("they do not know each other")
		}
		for _, p := range []*party{a, b} {
			p.certificate, p.roots = second, rootsOf(after)
		}
		if !a.lets(t, b.shows(t)) || !b.lets(t, a.shows(t)) || a.lets(t, &first) {
			t.Error("they go by the certificate before")
		}
	})
}

// TestRenewedConnections: what is asked goes over new connections when an hour has passed, or the certificate or the CAs are others.
func TestRenewedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, other := uplinktest.NewAuthority(t), uplinktest.NewAuthority(t)
		p := newParty(ca.Leaf(t, "gateway"), rootsOf(ca))
		r := &Replicas{identity: p.identity, cfg: Config{Roots: func() *x509.CertPool { return p.roots }}}
		r.transport.Store(r.newTransport())
		renews := func(want bool, when string) {
			t.Helper()
			before := r.transport.Load()
			if r.renew(); (before != r.transport.Load()) != want {
				t.Errorf("%s: renewed %v", when, !want)
			}
		}
		renews(true, "at first")
		renews(false, "at once")
		time.Sleep(renewAfter - time.Second)
		renews(false, "within the hour")
		time.Sleep(time.Second)
		renews(true, "after an hour")
		p.roots = rootsOf(ca, other)
		renews(true, "other CAs")
		p.certificate = ca.Leaf(t, "gateway")
		renews(false, "a certificate that others do not know yet")
		time.Sleep(shownFor)
		renews(true, "another certificate")
	})
}
