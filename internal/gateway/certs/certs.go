package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Source is where the gateway's certificate comes from: [*Builtin] or [*Files].
type Source interface {
	// Start returns once there is a certificate, and keeps it current until ctx ends.
	Start(ctx context.Context) error
	// Wait returns when all has ended that Start has begun.
	Wait()
	// GetCertificate is for tls.Config. Until there is a certificate it fails.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// Publishing says where the CA is published.
type Publishing struct {
	// Client and Namespace are where ConfigMap is, whose key ca.crt gets the CA. Empty: nowhere.
	Client    kubernetes.Interface
	Namespace string
	ConfigMap string
	// Dynamic is how APIService is reached, whose caBundle gets the CA. Empty: nowhere.
	Dynamic    dynamic.Interface
	APIService string
}

// BuiltinConfig is what a Builtin works with. All fields are required.
type BuiltinConfig struct {
	Client kubernetes.Interface
	// Namespace and Secret name the Secret that all replicas share.
	Namespace, Secret string
	// Names are the DNS names that the certificate is for.
	Names      []string
	Publishing Publishing
	// Ends is called with the end of the certificate each time that there is a new one.
	Ends func(time.Time)
	Log  logr.Logger
}

// Builtin makes and renews a CA and a certificate.
type Builtin struct{ cfg BuiltinConfig }

// NewBuiltin returns a Builtin that has no certificate until Start.
func NewBuiltin(cfg BuiltinConfig) (*Builtin, error) { return &Builtin{cfg}, nil }

// Start implements Source. It waits for an API server that does not answer.
func (b *Builtin) Start(ctx context.Context) error { return errors.ErrUnsupported }

// Wait implements Source.
func (b *Builtin) Wait() {}

// GetCertificate implements Source.
func (b *Builtin) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.ErrUnsupported
}

// FilesConfig is what a Files works with. All fields are required.
type FilesConfig struct {
	// Directory contains tls.crt, tls.key and, if anything is to be published, ca.crt.
	Directory  string
	Publishing Publishing
	// Ends is called with the end of the certificate each time that there is a new one.
	Ends func(time.Time)
	Log  logr.Logger
}

// Files serves a certificate from files, and reads them again when they change.
type Files struct{ cfg FilesConfig }

// NewFiles returns a Files that has no certificate until Start.
func NewFiles(cfg FilesConfig) (*Files, error) { return &Files{cfg}, nil }

// Start implements Source. It fails if the files are no certificate.
func (f *Files) Start(ctx context.Context) error { return errors.ErrUnsupported }

// Wait implements Source.
func (f *Files) Wait() {}

// GetCertificate implements Source.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.ErrUnsupported
}
