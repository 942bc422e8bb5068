package fakevpsa

import (
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Running is an array that listens.
type Running struct {
	*Array
	// URL is where it listens, such as http://127.0.0.1:41234.
	URL string

	server *http.Server
	tls    *authority
	done   chan struct{}
}

// Listen says where and how an array listens.
type Listen struct {
	// Address is a host and a port; empty is 127.0.0.1:0.
	Address string
	// TLS: with a certificate of a CA that the array makes, or that of the files.
	TLS               bool
	CertFile, KeyFile string
}

// Start returns an array that listens. Close it.
func Start(o Options, l Listen) (*Running, error) {
	a, err := New(o)
	if err != nil {
		return nil, err
	}
	return a.Listen(l)
}

// Listen serves the array. The same array may listen at several places.
func (a *Array) Listen(l Listen) (*Running, error) {
	fill(&l.Address, "127.0.0.1:0")
	listener, err := net.Listen("tcp", l.Address)
	if err != nil {
		return nil, err
	}
	r := &Running{Array: a, URL: "http://" + listener.Addr().String(), done: make(chan struct{})}
	r.server = &http.Server{
		Handler: a,
		// Broken connections and handshakes are what it is for.
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
		Protocols:         &http.Protocols{},
	}
	r.server.Protocols.SetHTTP1(true)
	if l.TLS {
		r.URL = "https://" + listener.Addr().String()
		if r.tls, err = newAuthority(l, listener.Addr()); err != nil {
			_ = listener.Close()
			return nil, err
		}
		r.server.TLSConfig = r.tls.config()
		a.mu.Lock()
		a.renew = r.tls.renew
		a.mu.Unlock()
	}
	go func() {
		defer close(r.done)
		if l.TLS {
			_ = r.server.ServeTLS(listener, "", "")
		} else {
			_ = r.server.Serve(listener)
		}
	}()
	return r, nil
}

// Close breaks all connections, those that hang too, and stops listening. The state stays.
func (r *Running) Close() {
	_ = r.server.Close()
	<-r.done
}

// CA is the certificate to trust, in PEM; nil without TLS, or with the certificate of a file.
func (r *Running) CA() []byte {
	if r.tls == nil {
		return nil
	}
	return r.tls.ca()
}
