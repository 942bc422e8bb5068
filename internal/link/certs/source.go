package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
)

// Source is where a certificate comes from: [*Builtin] or [*Files].
type Source interface {
	// Start returns once there is a certificate, and keeps it current until ctx ends.
	Start(ctx context.Context) error
	// Wait returns when all has ended that Start has begun.
	Wait()
	// GetCertificate is for tls.Config. Until there is a certificate it fails.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Roots are the CAs by which clients know the certificate, and by which another replica is known. Until there is a
	// certificate there are none.
	Roots() *x509.CertPool
}

// errNone: no client can connect yet.
var errNone = errors.New("there is no certificate yet")

// served is the certificate that clients see.
type served struct {
	current atomic.Pointer[tls.Certificate]
	roots   atomic.Pointer[x509.CertPool]
	// ends is called with the end of each new certificate.
	ends func(time.Time)
	log  logr.Logger
}

// GetCertificate returns the certificate of the moment.
func (s *served) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := s.current.Load(); current != nil {
		return current, nil
	}
	return nil, errNone
}

// Roots implements Source.
func (s *served) Roots() *x509.CertPool {
	if roots := s.roots.Load(); roots != nil {
		return roots
	}
	return x509.NewCertPool()
}

// trust makes these the CAs that clients have to trust.
func (s *served) trust(bundle []*x509.Certificate) {
	roots := x509.NewCertPool()
	for _, ca := range bundle {
		roots.AddCert(ca)
	}
	s.roots.Store(roots)
}

// serve shows a certificate to those who connect from now on.
func (s *served) serve(certificate *tls.Certificate) {
	before := s.current.Swap(certificate)
	if before != nil && before.Leaf.Equal(certificate.Leaf) {
		return
	}
	s.log.Info("Serving a certificate", "serial", certificate.Leaf.SerialNumber.Text(16), "issuer", certificate.Leaf.Issuer.CommonName,
		"names", certificate.Leaf.DNSNames, "ends", certificate.Leaf.NotAfter)
	s.ends(certificate.Leaf.NotAfter)
}

// repeated runs a function again and again, and logs an error only when it differs from the one
// before.
type repeated struct {
	interval time.Duration
	log      logr.Logger
	last     string
	ended    sync.WaitGroup
}

// start begins to run the function after the interval, until ctx ends.
func (r *repeated) start(ctx context.Context, run func(context.Context) error) {
	r.ended.Go(func() {
		for r.pause(ctx) == nil {
			r.report(ctx, run(ctx))
		}
	})
}

// report logs an error that is news.
func (r *repeated) report(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil:
		r.last = ""
	case err.Error() != r.last:
		r.last = err.Error()
		r.log.Info("The certificates cannot be kept right; trying again", logkeys.Cause, r.last, logkeys.Interval, r.interval.String())
	}
}

// pause waits for the interval and up to a fifth more, so that replicas do not keep step. It returns
// the error of ctx if that ends before.
func (r *repeated) pause(ctx context.Context) error {
	return retry.Pause(ctx, r.interval+retry.Below(r.interval/5))
}
