package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/logkeys"
)

// readEvery is how often files are read. The kubelet replaces all of a Secret by one symbolic link,
// so watching single files would miss it.
const readEvery = 10 * time.Second

// FilesConfig is what a Files works with. All fields are required, except Publishing.
type FilesConfig struct {
	// Program is whose certificate it is, such as katbox-gateway.
	Program string
	// Directory contains tls.crt, tls.key and, if anything is to be published, ca.crt.
	Directory  string
	Publishing Publishing
	// Ends is called with the end of the certificate each time that there is a new one.
	Ends func(time.Time)
	Log  logr.Logger
}

func (c FilesConfig) check() error {
	switch {
	case c.Program == "":
		return errors.New("certs: FilesConfig.Program is missing")
	case c.Directory == "":
		return errors.New("certs: FilesConfig.Directory is missing")
	case c.Ends == nil:
		return errors.New("certs: FilesConfig.Ends is missing")
	case c.Log.GetSink() == nil:
		return errors.New("certs: FilesConfig.Log is missing")
	}
	return c.Publishing.check()
}

// Files serves a certificate from files, and reads them again when they change. It is a Source.
type Files struct {
	served
	cfg       FilesConfig
	publisher *publisher
	looks     repeated
	// loaded is what the files contained that are in force.
	loaded contents
	bundle []*x509.Certificate
}

// contents are those of the three files.
type contents struct {
	cert, key, ca []byte
}

func (c contents) equal(d contents) bool {
	return bytes.Equal(c.cert, d.cert) && bytes.Equal(c.key, d.key) && bytes.Equal(c.ca, d.ca)
}

// NewFiles returns a Files that has no certificate until Start.
func NewFiles(cfg FilesConfig) (*Files, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Files{
		served:    served{ends: cfg.Ends, log: cfg.Log},
		cfg:       cfg,
		publisher: newPublisher(cfg.Program, cfg.Publishing, cfg.Log),
		looks:     repeated{interval: readEvery, log: cfg.Log},
	}, nil
}

// Start returns once there is a certificate, and keeps it current until ctx ends. It fails if the
// files contain none.
func (f *Files) Start(ctx context.Context) error {
	changed, err := f.load()
	if err != nil {
		return err
	}
	f.looks.report(ctx, f.publish(ctx, changed))
	f.looks.start(ctx, f.look)
	return nil
}

// Wait returns when all has ended that Start has begun.
func (f *Files) Wait() {
	f.looks.ended.Wait()
}

// look does all that is due. Files that make no sense, as in the middle of a replacement, leave in
// force what was there before.
func (f *Files) look(ctx context.Context) error {
	changed, err := f.load()
	return errors.Join(err, f.publish(ctx, changed))
}

// publish publishes the CA, and then serves the certificate if it is a new one.
func (f *Files) publish(ctx context.Context, changed *tls.Certificate) error {
	err := f.publisher.publish(ctx, f.bundle)
	if changed != nil {
		f.serve(changed)
	}
	return err
}

// load takes over the files and returns the certificate, or nil if they have not changed.
func (f *Files) load() (*tls.Certificate, error) {
	now, err := f.read()
	if err != nil || f.current.Load() != nil && now.equal(f.loaded) {
		return nil, err
	}
	pair, err := tls.X509KeyPair(now.cert, now.key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s in %s are no certificate and its key: %w", keyCert, keyKey, f.cfg.Directory, err)
	}
	var bundle []*x509.Certificate
	if f.publishes() {
		bundle, err = parseCerts(now.ca)
		if err == nil && len(bundle) == 0 {
			err = errors.New("it is empty")
		}
		if err != nil {
			return nil, fmt.Errorf("%s is no CA: %w", filepath.Join(f.cfg.Directory, keyCA), err)
		}
		if err := verify(&pair, bundle, "", time.Now()); err != nil {
			f.cfg.Log.Info("Clients that know this CA will refuse the certificate", logkeys.Directory, f.cfg.Directory, logkeys.Cause, err.Error())
		}
	}
	f.loaded, f.bundle = now, bundle
	f.trust(bundle)
	return &pair, nil
}

// publishes reports whether the CA is needed.
func (f *Files) publishes() bool {
	return f.cfg.Publishing.ConfigMap != "" || f.cfg.Publishing.APIService != ""
}

// read returns what the files contain.
func (f *Files) read() (contents, error) {
	var c contents
	for _, file := range []struct {
		name string
		to   *[]byte
	}{{keyCert, &c.cert}, {keyKey, &c.key}, {keyCA, &c.ca}} {
		if file.name == keyCA && !f.publishes() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(f.cfg.Directory, file.name))
		if err != nil {
			return contents{}, fmt.Errorf("reading the certificate: %w", err)
		}
		*file.to = text
	}
	return c, nil
}
