package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// Credentials is where a pod has the token and the CA of its ServiceAccount.
const Credentials = "/var/run/secrets/kubernetes.io/serviceaccount"

// Config is what a Client works with. All fields are required.
type Config struct {
	// Server is the API server's URL, such as https://10.96.0.1:443; see [InCluster].
	Server string
	// Credentials is a directory with the files token and ca.crt. They need not be there yet.
	Credentials string
	// CHAPNamespace is the namespace of the Secrets that nodes log in with.
	CHAPNamespace string
}

// InCluster returns the URL at which pods reach the API server. getenv is os.Getenv.
func InCluster(getenv func(string) string) (string, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return "", errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: " +
			"this is no pod, and the URL of the API server is not known")
	}
	return "https://" + net.JoinHostPort(host, port), nil
}

const (
	// patience bounds a request. The kubelet waits two minutes for a volume.
	patience = 10 * time.Second
	// mostAnswer bounds what is read of an answer. A Secret has at most 1 MiB, in base64.
	mostAnswer = 4 << 20
)

// Client asks the API server. Its methods may be called from several goroutines.
type Client struct {
	cfg Config
	// patience bounds a request.
	patience time.Duration
	// confirming bounds the wait for the controller's word about a disk; confirmPause is the time between two looks.
	confirming, confirmPause time.Duration

	mu sync.Mutex
	// ca is the content of the file for which http was made.
	ca   []byte
	http *http.Client
}

// New returns a client. It asks nothing yet.
func New(cfg Config) (*Client, error) {
	switch u, err := url.Parse(cfg.Server); {
	case err != nil:
		return nil, fmt.Errorf("the URL of the API server: %w", err)
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("the URL of the API server, %q, is not like https://10.96.0.1:443", cfg.Server)
	case cfg.Credentials == "":
		return nil, errors.New("the directory with the credentials for the API server is not given")
	case !isName(cfg.CHAPNamespace):
		return nil, fmt.Errorf("the namespace of the Secrets for iSCSI logins, %q, is no name of a namespace", cfg.CHAPNamespace)
	}
	cfg.Server = strings.TrimSuffix(cfg.Server, "/")
	return &Client{cfg: cfg, patience: patience, confirming: 8 * time.Second, confirmPause: 250 * time.Millisecond}, nil
}

// client returns an HTTP client that trusts the CA that the file has now.
func (c *Client) client() (*http.Client, error) {
	if strings.HasPrefix(c.cfg.Server, "http:") {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.http == nil {
			c.http = newHTTP(nil)
		}
		return c.http, nil
	}
	ca, err := os.ReadFile(filepath.Join(c.cfg.Credentials, "ca.crt"))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil && bytes.Equal(ca, c.ca) {
		return c.http, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s has no certificate", filepath.Join(c.cfg.Credentials, "ca.crt"))
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.ca, c.http = ca, newHTTP(roots)
	return c.http, nil
}

// newHTTP returns an HTTP client. It speaks HTTP/1.1: a request that gets no answer ends its connection,
// where one of HTTP/2 would stay in use for a quarter of an hour.
func newHTTP(roots *x509.CertPool) *http.Client {
	var one http.Protocols
	one.SetHTTP1(true)
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: patience}).DialContext,
			TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: patience,
			IdleConnTimeout:     90 * time.Second,
			MaxIdleConns:        4,
			Protocols:           &one,
		},
		// A token goes to no other server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// request is one request.
type request struct {
	// verb is that of Kubernetes: get, create or patch. Resource and group are what a right is for.
	verb, group, resource string
	// namespace is empty where the resource has none.
	namespace, name, subresource string
	// cached: an answer from the API server's memory will do, which may be some seconds old.
	cached bool
	// body is encoded in JSON; nil for none.
	body any
}

// url returns where a request goes.
func (r *request) url(server string) string {
	path := "/api/v1"
	if r.group != "" {
		path = "/apis/" + r.group + "/v1alpha1"
	}
	if r.namespace != "" {
		path += "/namespaces/" + r.namespace
	}
	path += "/" + r.resource
	if r.verb != "create" {
		path += "/" + r.name
	}
	if r.subresource != "" {
		path += "/" + r.subresource
	}
	if r.cached {
		path += "?resourceVersion=0"
	}
	return server + path
}

// do makes a request and decodes the answer into answer, if that is not nil.
func (c *Client) do(ctx context.Context, r request, answer any) error {
	if !isName(r.name) {
		return fmt.Errorf("%w: %.80q is no name of a %s", volume.ErrInvalid, r.name, kinds[r.resource])
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	status, text, err := c.send(ctx, r)
	if err != nil {
		return r.unreachable(c.cfg.Server, err)
	}
	if status != http.StatusOK && status != http.StatusCreated {
		return r.refused(status, text, c.cfg)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%w: %s: the answer of the API server is not what Kubernetes says: %w", volume.ErrUnavailable, r.what(), err)
	}
	return nil
}

// send makes a request and returns the status and the body of its answer.
func (c *Client) send(ctx context.Context, r request) (status int, text []byte, err error) {
	client, err := c.client()
	if err != nil {
		return 0, nil, err
	}
	token, err := os.ReadFile(filepath.Join(c.cfg.Credentials, "token"))
	if err != nil {
		return 0, nil, err
	}
	var body io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return 0, nil, err
		}
		body = bytes.NewReader(b)
	}
	method, content := http.MethodGet, ""
	switch r.verb {
	case "create":
		method, content = http.MethodPost, "application/json"
	case "patch":
		method, content = http.MethodPatch, "application/merge-patch+json"
	}
	req, err := http.NewRequestWithContext(ctx, method, r.url(c.cfg.Server), body)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+string(bytes.TrimSpace(token)))
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "katbox")
	if content != "" {
		req.Header.Set("Content-Type", content)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err = io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	return resp.StatusCode, text, err
}
