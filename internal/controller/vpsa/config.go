package vpsa

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/controller/array"
)

// Config says which array a client talks to, and how.
type Config struct {
	// Endpoint is the array's URL: https://host, or http://host:port.
	Endpoint string
	// Token is the access key of one of the array's users.
	Token Token
	// CA has PEM certificates that the array's is trusted by; empty means those of the system.
	CA []byte
	// InsecureSkipVerify: the array's certificate is not checked.
	InsecureSkipVerify bool
	// Timeout is how long one request may take; 0 means three minutes.
	Timeout time.Duration
	// PoolID is the array's pool of new volumes that name none.
	PoolID string
	Log    logr.Logger
	// Inflight is how many requests run at once; 0 means four. Others wait, except those of a health check, one
	// of which runs beside them.
	Inflight int
	// Metrics may be nil.
	Metrics Metrics
	// Transport is how requests get to the array; nil means the network. Tests have others.
	Transport http.RoundTripper
}

// Metrics counts requests.
type Metrics interface {
	// Called tells of a request that is over. The pattern is its path without the object's ID, such as
	// volumes/{id}/expand; the outcome is a word: ok, refused, submitted, credentials, tls, timeout,
	// unreachable, badanswer or cancelled. Waiting for a turn counts as part of the time it took.
	Called(method, pattern, outcome string, took time.Duration)
}

// Token is an access key. It prints as nothing that can be used.
type Token string

// hidden is what is written in place of an access key.
const hidden = "(hidden)"

// String hides the key.
func (Token) String() string { return hidden }

// Format hides the key, for every verb.
func (Token) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText hides the key from logs that write objects as JSON.
func (Token) MarshalText() ([]byte, error) { return []byte(hidden), nil }

const (
	defaultTimeout  = 3 * time.Minute
	defaultInflight = 4
	// page is how many objects of a list are asked for at once.
	page = 1000
	// connectTime is for a connection, and once more for the TLS handshake.
	connectTime = 10 * time.Second
)

// New returns a client of an array. It sends nothing yet.
func New(config Config) (array.Array, error) {
	token := strings.TrimSpace(string(config.Token))
	endpoint, err := url.Parse(config.Endpoint)
	if err != nil {
		// The parser's error repeats the URL, which may have a password.
		return nil, errors.New("the endpoint of an array has to be a URL, such as https://vsa-00000001.example.com")
	}
	switch {
	case endpoint.Scheme != "http" && endpoint.Scheme != "https", endpoint.Host == "":
		return nil, errors.New("the endpoint of an array has to begin with http:// or https://, and a host")
	case endpoint.User != nil, endpoint.RawQuery != "", endpoint.Fragment != "", strings.Trim(endpoint.Path, "/") != "":
		return nil, fmt.Errorf("the endpoint of an array is a host and a port, nothing else: https://%s", endpoint.Host)
	case token == "":
		return nil, errors.New("the array's access key is missing")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("the array's access key has blanks or other characters that no header takes")
	case config.Timeout < 0, config.Inflight < 0:
		return nil, errors.New("the timeout of an array and its calls in flight cannot be negative")
	}
	if config.Timeout == 0 {
		config.Timeout = defaultTimeout
	}
	if config.Inflight == 0 {
		config.Inflight = defaultInflight
	}
	transport := config.Transport
	if transport == nil {
		if transport, err = network(config); err != nil {
			return nil, err
		}
	}
	return &client{
		endpoint: endpoint.Scheme + "://" + endpoint.Host,
		// In a closure it is in nothing that is ever printed.
		authorize: func(r *http.Request) { r.Header.Set("X-Access-Key", token) },
		conceal:   func(s string) string { return strings.ReplaceAll(s, token, hidden) },
		http: &http.Client{
			Transport: transport,
			// The key must not follow a redirect to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		timeout: config.Timeout,
		poolID:  config.PoolID,
		log:     config.Log,
		metrics: config.Metrics,
		turns:   make(chan struct{}, config.Inflight),
		checks:  make(chan struct{}, 1),
		page:    page,
		largest: largest,
		// Only the network tells when a request is under way.
		blind: config.Transport != nil,
	}, nil
}

// network is the way to the array.
func network(config Config) (http.RoundTripper, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: config.InsecureSkipVerify}
	if len(config.CA) > 0 {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(config.CA) {
			return nil, errors.New("the CA bundle of an array has no PEM certificate")
		}
	}
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: connectTime}).DialContext,
		TLSClientConfig:     trust,
		TLSHandshakeTimeout: connectTime,
		// The context of a request ends sooner where its deadline says so.
		ResponseHeaderTimeout:  config.Timeout,
		MaxIdleConnsPerHost:    config.Inflight,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
		// With HTTP/1.1 a request that was begun is never sent again by the library.
		Protocols: http1(),
	}, nil
}

func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}
