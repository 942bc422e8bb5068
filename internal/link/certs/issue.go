package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

const (
	// caLife and leafLife are how long certificates are good for.
	caLife   = 365 * 24 * time.Hour
	leafLife = 30 * 24 * time.Hour
	// clocksDiffer is how far a client's clock may be behind the server's.
	clocksDiffer = time.Hour
)

// authority is a CA with its key.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// commonNameOfCA is in the name of a CA behind that of the program.
const commonNameOfCA = " CA "

// program is whose CA it is.
func (a authority) program() string {
	program, _, _ := strings.Cut(a.cert.Subject.CommonName, commonNameOfCA)
	return program
}

// newAuthority makes a CA. Its name contains the time, so that people can tell two of them apart.
func newAuthority(program string, now time.Time) (authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: program + commonNameOfCA + now.UTC().Format(time.RFC3339)},
		NotBefore:             now.Add(-clocksDiffer),
		NotAfter:              now.Add(caLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, fmt.Errorf("making the key of a CA: %w", err)
	}
	cert, err := sign(template, template, key.Public(), key)
	if err != nil {
		return authority{}, fmt.Errorf("making a CA: %w", err)
	}
	return authority{cert: cert, key: key}, nil
}

// issue makes a certificate for the names. It ends no later than the CA.
func (a authority) issue(names []string, now time.Time) (*tls.Certificate, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: a.program()},
		DNSNames:              names,
		NotBefore:             now.Add(-clocksDiffer),
		NotAfter:              a.endOfLeaf(now),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of a certificate: %w", err)
	}
	cert, err := sign(template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}, nil
}

// endOfLeaf returns the end of a certificate that is issued now. Certificates know whole seconds.
func (a authority) endOfLeaf(now time.Time) time.Time {
	end := now.Add(leafLife).Truncate(time.Second)
	if end.After(a.cert.NotAfter) {
		return a.cert.NotAfter
	}
	return end
}

// sign makes a certificate of a template, with a random serial number.
func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(raw)
}

// parseAuthority reads a CA and its key, which have to fit.
func parseAuthority(certificate, key []byte) (authority, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return authority{}, err
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return authority{}, errors.New("it is not a CA")
	}
	return authority{cert: pair.Leaf, key: signer}, nil
}

// validAt reports whether a time is in the life of a certificate.
func validAt(cert *x509.Certificate, now time.Time) bool {
	return !now.Before(cert.NotBefore) && !now.After(cert.NotAfter)
}

// encodeCerts writes certificates as PEM.
func encodeCerts(certs ...*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, cert := range certs {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
	}
	return out.Bytes()
}

// encodeKey writes a key as PEM.
func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), nil
}

// parseCerts reads certificates as PEM. Anything else between or behind them is an error.
func parseCerts(text []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for len(bytes.TrimSpace(text)) > 0 {
		block, rest := pem.Decode(text)
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, errors.New("it contains something that is no certificate")
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, cert)
		text = rest
	}
	return certs, nil
}
