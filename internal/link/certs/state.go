package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// Keys of the Secret.
const (
	keyVersion   = "version"
	keyCert      = "tls.crt"
	keyKey       = "tls.key"
	keyCA        = "ca.crt"
	keyCAKey     = "ca.key"
	keyNextCA    = "next-ca.crt"
	keyNextKey   = "next-ca.key"
	keyPublished = "next-ca.published"
	keyOldCAs    = "old-ca.crt"
)

// keys are all keys that are written.
var keys = []string{keyVersion, keyCert, keyKey, keyCA, keyCAKey, keyNextCA, keyNextKey, keyPublished, keyOldCAs}

// version is that of the Secret's format.
const version = "1"

// errFuture: a newer version has written the Secret. It is left alone.
var errFuture = errors.New("a newer version of the program has written it")

// state is the content of the Secret.
type state struct {
	// active has issued leaf, which is what clients see.
	active authority
	leaf   *tls.Certificate
	// next takes over from active once all clients know it. It is nil most of the time.
	next *authority
	// published is when next was in all places that clients read; zero if it was not yet.
	published time.Time
	// old are earlier CAs that have not ended yet.
	old []*x509.Certificate
}

// bundle returns the CAs that clients have to trust.
func (s *state) bundle() []*x509.Certificate {
	bundle := []*x509.Certificate{s.active.cert}
	if s.next != nil {
		bundle = append(bundle, s.next.cert)
	}
	return append(bundle, s.old...)
}

// encode returns the keys and values of the Secret.
func (s *state) encode() (map[string][]byte, error) {
	data := map[string][]byte{
		keyVersion: []byte(version),
		keyCert:    encodeCerts(s.leaf.Leaf),
		keyCA:      encodeCerts(s.active.cert),
	}
	var err error
	if data[keyKey], err = encodeKey(s.leaf.PrivateKey); err != nil {
		return nil, err
	}
	if data[keyCAKey], err = encodeKey(s.active.key); err != nil {
		return nil, err
	}
	if s.next != nil {
		data[keyNextCA] = encodeCerts(s.next.cert)
		if data[keyNextKey], err = encodeKey(s.next.key); err != nil {
			return nil, err
		}
		if !s.published.IsZero() {
			data[keyPublished] = []byte(s.published.UTC().Format(time.RFC3339))
		}
	}
	if len(s.old) > 0 {
		data[keyOldCAs] = encodeCerts(s.old...)
	}
	return data, nil
}

// decode reads a Secret. An error says that it is from the future, or of no use. Of the other parts
// those are missing in the state that are damaged, and the strings say which.
func decode(data map[string][]byte) (*state, []string, error) {
	switch v := string(data[keyVersion]); v {
	case version:
	case "":
		return nil, nil, fmt.Errorf("the key %s is missing", keyVersion)
	default:
		return nil, nil, fmt.Errorf("%w: its format is %q, and this program knows %s; update it, or delete the Secret to begin anew",
			errFuture, v, version)
	}
	active, err := parseAuthority(data[keyCA], data[keyCAKey])
	if err != nil {
		return nil, nil, fmt.Errorf("the keys %s and %s are damaged: %w", keyCA, keyCAKey, err)
	}
	s := &state{active: active}
	var damage []string
	if pair, err := tls.X509KeyPair(data[keyCert], data[keyKey]); err != nil {
		damage = append(damage, fmt.Sprintf("the keys %s and %s are damaged: %v", keyCert, keyKey, err))
	} else {
		s.leaf = &pair
	}
	if len(data[keyNextCA]) > 0 {
		if next, err := parseAuthority(data[keyNextCA], data[keyNextKey]); err != nil {
			damage = append(damage, fmt.Sprintf("the keys %s and %s are damaged: %v", keyNextCA, keyNextKey, err))
		} else {
			s.next = &next
			// A time that cannot be read is none: the CA is published once more.
			s.published, _ = time.Parse(time.RFC3339, string(data[keyPublished]))
		}
	}
	if s.old, err = parseCerts(data[keyOldCAs]); err != nil {
		damage = append(damage, fmt.Sprintf("the key %s is damaged: %v", keyOldCAs, err))
	}
	return s, damage, nil
}
