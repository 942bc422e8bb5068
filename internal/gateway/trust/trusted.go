package trust

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/client-go/util/cert"
)

// Keys of the ConfigMap in which the API server says whom its extensions shall trust.
const (
	keyClientCA     = "client-ca-file"
	keyCA           = "requestheader-client-ca-file"
	keyAllowedNames = "requestheader-allowed-names"
	keyUser         = "requestheader-username-headers"
	keyUID          = "requestheader-uid-headers"
	keyGroup        = "requestheader-group-headers"
	keyExtra        = "requestheader-extra-headers-prefix"
)

// errUnsafe: what the ConfigMap says would let each user of the cluster claim to be any other.
var errUnsafe = errors.New(keyAllowedNames + " is empty, and " + keyCA + " contains a CA of " + keyClientCA +
	": any client with a certificate of the cluster could claim to be any user; set --requestheader-allowed-names of kube-apiserver, " +
	"or give it a CA of its own by --requestheader-client-ca-file")

// trusted is one state of the ConfigMap. It never changes: what is true of one request comes from
// one state.
type trusted struct {
	// roots and request are what a client certificate, and then a request, are checked by.
	roots   *x509.CertPool
	request authenticator.Request
	// subjects and names describe the state in the log.
	subjects, names []string
}

// parse reads the ConfigMap. The error is errUnsafe, or says which key is missing or damaged.
func parse(config *corev1.ConfigMap) (*trusted, error) {
	authorities, err := authoritiesOf(config, keyCA)
	if err != nil {
		return nil, err
	}
	lists := make(map[string][]string)
	for _, key := range []string{keyAllowedNames, keyUser, keyUID, keyGroup, keyExtra} {
		text, found := config.Data[key]
		if !found && key == keyUID {
			continue // The API server is older than 1.32 and forwards no UID.
		}
		var list []string
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("the key %s is not a list of strings: %w", key, err)
		}
		for _, item := range list {
			if key != keyAllowedNames && strings.TrimSpace(item) != item || item == "" {
				return nil, fmt.Errorf("the key %s contains %q", key, item)
			}
		}
		lists[key] = list
	}
	if len(lists[keyUser]) == 0 {
		return nil, fmt.Errorf("the key %s is empty: no header names the user", keyUser)
	}
	if len(lists[keyAllowedNames]) == 0 && config.Data[keyClientCA] != "" {
		users, err := authoritiesOf(config, keyClientCA)
		if err != nil {
			return nil, err
		}
		if shareKey(authorities, users) || issued(authorities, users) {
			return nil, errUnsafe
		}
	}
	t := &trusted{roots: poolOf(authorities), names: lists[keyAllowedNames]}
	for _, authority := range authorities {
		t.subjects = append(t.subjects, authority.Subject.String())
	}
	options := x509request.DefaultVerifyOptions()
	options.Roots = t.roots
	slice := func(key string) headerrequest.StringSliceProvider { return headerrequest.StaticStringSlice(lists[key]) }
	t.request = headerrequest.NewDynamicVerifyOptionsSecure(x509request.StaticVerifierFn(options),
		slice(keyAllowedNames), slice(keyUser), slice(keyUID), slice(keyGroup), slice(keyExtra))
	return t, nil
}

// authoritiesOf returns the certificates below a key.
func authoritiesOf(config *corev1.ConfigMap, key string) ([]*x509.Certificate, error) {
	text := config.Data[key]
	if text == "" {
		return nil, fmt.Errorf("the key %s is missing: has kube-apiserver a flag --%s?", key, key)
	}
	authorities, err := cert.ParseCertsPEM([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the key %s is no certificate: %w", key, err)
	}
	return authorities, nil
}

func poolOf(authorities []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, authority := range authorities {
		pool.AddCert(authority)
	}
	return pool
}

// issued reports whether one of the roots has issued a CA of the users, itself or through another: a
// user who shows the chain would be believed.
func issued(roots, users []*x509.Certificate) bool {
	options := x509.VerifyOptions{
		Roots: poolOf(roots), Intermediates: poolOf(users), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
	return slices.ContainsFunc(users, func(ca *x509.Certificate) bool {
		_, err := ca.Verify(options)
		return err == nil
	})
}

// shareKey reports whether a CA is in both lists. A CA is its key: its certificate may have been
// renewed in one of them.
func shareKey(a, b []*x509.Certificate) bool {
	keys := make(map[string]bool, len(a))
	for _, authority := range a {
		keys[string(authority.RawSubjectPublicKeyInfo)] = true
	}
	for _, authority := range b {
		if keys[string(authority.RawSubjectPublicKeyInfo)] {
			return true
		}
	}
	return false
}
