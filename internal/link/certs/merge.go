package certs

import (
	"crypto/sha256"
	"crypto/x509"
	"time"
)

const (
	// strangerStays is how long a CA stays published that this replica does not know. Replicas learn
	// of a new CA some minutes apart, and must not take it from one another; and clients of a replica
	// that still shows an old certificate need the old CA.
	strangerStays = overlap
	// strangersMost bounds the unknown CAs.
	strangersMost = 8
)

// strangers remembers, for one place, since when it has contained which unknown CAs.
type strangers map[[sha256.Size]byte]time.Time

// merge returns what a place has to contain, and whether that is what it contains now. Damaged
// content is replaced, a missing CA is added at once, and an unknown one is removed after a while.
func (s *strangers) merge(current []byte, bundle []*x509.Certificate) (text []byte, right bool) {
	now := time.Now()
	wanted := make(map[[sha256.Size]byte]bool, len(bundle))
	for _, cert := range bundle {
		wanted[sha256.Sum256(cert.Raw)] = false
	}
	there, err := parseCerts(current)
	if err != nil {
		*s = nil
		return encodeCerts(bundle...), false
	}
	since := make(strangers)
	right = true
	var kept []*x509.Certificate
	for _, cert := range there {
		id := sha256.Sum256(cert.Raw)
		if _, known := wanted[id]; known {
			wanted[id] = true
			continue
		}
		first, seen := (*s)[id]
		if !seen {
			first = now
		}
		if now.Sub(first) >= strangerStays || now.After(cert.NotAfter) || len(kept) == strangersMost {
			right = false
			continue
		}
		since[id] = first
		kept = append(kept, cert)
	}
	*s = since
	for _, found := range wanted {
		right = right && found
	}
	return encodeCerts(append(append([]*x509.Certificate{}, bundle...), kept...)...), right
}
