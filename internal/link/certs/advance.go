package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// overlap is how long a CA is published before it signs what clients see. The API server uses a
// caBundle at once, a node within the 2 min in which its kubelet refreshes ConfigMaps.
const overlap = 10 * time.Minute

// renewAt is the part of its life after which a certificate is renewed.
const renewAt = 2.0 / 3

// jitterMost bounds what a replica adds to renewAt: two that renew in the same moment are in each
// other's way.
const jitterMost = 0.02

// fresh returns the state of a program that has none.
func fresh(program string, names []string, now time.Time) (*state, error) {
	active, err := newAuthority(program, now)
	if err != nil {
		return nil, err
	}
	s := &state{active: active}
	s.leaf, err = active.issue(names, now)
	return s, err
}

// advance does what is due, and says what that was; nothing most of the time. It is the only code
// that decides when a CA or a certificate is replaced.
func (s *state) advance(names []string, now time.Time, jitter float64) (*state, []string, error) {
	done := []string{}
	t := *s
	if t.next != nil && !validAt(t.next.cert, now) {
		t.next, t.published = nil, time.Time{}
		done = append(done, "dropped the next CA, which is not valid now")
	}
	switch {
	case !validAt(t.active.cert, now) && t.next == nil:
		f, err := fresh(t.active.program(), names, now)
		return f, append(done, "made a CA and a certificate, as the CA is not valid now"), err
	case !validAt(t.active.cert, now):
		t.promote()
		done = append(done, "took the next CA before all clients may know it, as the CA before it is not valid now")
	case t.next != nil && !t.published.IsZero() && !now.Before(t.published.Add(overlap)):
		t.promote()
		done = append(done, "took the next CA, which all clients know")
	case t.next == nil && due(t.active.cert, now, jitter):
		next, err := newAuthority(t.active.program(), now)
		if err != nil {
			return nil, nil, err
		}
		t.next = &next
		done = append(done, "made the next CA")
	}
	kept := slices.DeleteFunc(slices.Clone(t.old), func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
	if len(kept) < len(t.old) {
		t.old = kept
		done = append(done, "dropped an old CA, which has ended")
	}
	if why, covered := t.replaceLeaf(names, now, jitter); why != "" {
		leaf, err := t.active.issue(covered, now)
		if err != nil {
			return nil, nil, err
		}
		t.leaf = leaf
		done = append(done, "made a certificate, as "+why)
	}
	return &t, done, nil
}

// promote makes the next CA the active one.
func (s *state) promote() {
	s.old = append([]*x509.Certificate{s.active.cert}, s.old...)
	s.active, s.next, s.published = *s.next, nil, time.Time{}
}

// replaceLeaf says why the certificate has to be replaced, and by one for which names. An empty
// reason: it is good.
func (s *state) replaceLeaf(names []string, now time.Time, jitter float64) (string, []string) {
	if s.leaf == nil {
		return "there is none", names
	}
	if err := verify(s.leaf, []*x509.Certificate{s.active.cert}, "", now); err != nil {
		return fmt.Sprintf("the one before is not valid now: %v", err), names
	}
	for _, name := range names {
		if err := s.leaf.Leaf.VerifyHostname(name); err != nil {
			// The names of the one before are kept: during an update they are those of other replicas.
			covered := slices.Concat(names, s.leaf.Leaf.DNSNames)
			slices.Sort(covered)
			return fmt.Sprintf("the one before is not for %s", name), slices.Compact(covered)
		}
	}
	// In the last month of a CA a new certificate would end when this one does.
	if due(s.leaf.Leaf, now, jitter) && s.active.endOfLeaf(now).After(s.leaf.Leaf.NotAfter) {
		return fmt.Sprintf("the one before ends at %s", s.leaf.Leaf.NotAfter.UTC().Format(time.RFC3339)), names
	}
	return "", nil
}

// due reports whether it is time to renew.
func due(cert *x509.Certificate, now time.Time, jitter float64) bool {
	life := cert.NotAfter.Sub(cert.NotBefore)
	return !now.Before(cert.NotBefore.Add(time.Duration(float64(life) * (renewAt + jitter))))
}

// verify reports why a client that trusts the roots would refuse the certificate.
func verify(certificate *tls.Certificate, roots []*x509.Certificate, name string, now time.Time) error {
	options := x509.VerifyOptions{
		DNSName: name, CurrentTime: now, Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, root := range roots {
		options.Roots.AddCert(root)
	}
	for _, raw := range certificate.Certificate[1:] {
		if cert, err := x509.ParseCertificate(raw); err == nil {
			options.Intermediates.AddCert(cert)
		}
	}
	_, err := certificate.Leaf.Verify(options)
	return err
}
