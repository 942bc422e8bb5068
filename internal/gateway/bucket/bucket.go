package bucket

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

var (
	// ErrNotFound: there is no such object.
	ErrNotFound = errors.New("there is no such object")
	// ErrAway: the store does not answer, cannot, or does not accept the credentials.
	ErrAway = errors.New("the bucket cannot be reached")
	// ErrDenied is an ErrAway too: the store refuses the credentials, or what they may do.
	ErrDenied = errors.New("the store refuses the credentials")
)

const (
	// mostConnections bounds connections to the store, and mostHeader the headers of an answer.
	mostConnections = 64
	mostHeader      = 64 << 10
	// mostError bounds how much of an error is read.
	mostError = 16 << 10
	// dialLimit and answerLimit bound the time until there is a connection, and until an answer begins.
	dialLimit   = 5 * time.Second
	answerLimit = 30 * time.Second
	idleLimit   = 90 * time.Second
)

// Config says where the bucket is.
type Config struct {
	// Endpoint is the URL of the store: https://minio.example.com. Without a scheme it is https; empty is AWS's for the region.
	Endpoint string
	// Region is a part of signatures.
	Region string
	// Bucket is its name.
	Bucket string
	// Credentials is the directory with the files of the credentials; empty for those that AWS gives a pod.
	Credentials string
	// CA is a file with certificates that sign the store's, beside those of the system; it may be empty.
	CA string
}

// Bucket is a bucket. Its methods may be called from several goroutines.
type Bucket struct {
	name   string
	client *minio.Client
	// http sends what is signed, as a node does.
	http http.Client
	now  func() time.Time
}

var (
	validBucket = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	validRegion = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
)

// New returns a bucket. It asks the store nothing, so one that is away is none.
func New(c Config) (*Bucket, error) {
	switch {
	case !validBucket.MatchString(c.Bucket):
		return nil, fmt.Errorf("%q is not the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens", c.Bucket)
	case !validRegion.MatchString(c.Region):
		return nil, fmt.Errorf("%q is not a region: lower-case letters, digits and hyphens", c.Region)
	}
	at, err := parseEndpoint(cmp.Or(c.Endpoint, "s3."+c.Region+".amazonaws.com"))
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(c.CA)
	if err != nil {
		return nil, err
	}
	keys := credentials.NewIAM("")
	if c.Credentials != "" {
		files := &keyring{dir: c.Credentials, now: time.Now}
		if _, err := files.Retrieve(); err != nil {
			return nil, err
		}
		keys = credentials.New(files)
	}
	client, err := minio.New(at.Host, &minio.Options{
		Creds: keys, Secure: at.Scheme == "https", Transport: bounded{transport}, Region: c.Region, MaxRetries: 1,
	})
	if err != nil {
		return nil, err
	}
	return &Bucket{name: c.Bucket, client: client, now: time.Now, http: http.Client{
		Transport: bounded{transport}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func parseEndpoint(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	at, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not the URL of a store: %w", text, err)
	case at.Scheme != "https" && at.Scheme != "http", at.Host == "", strings.Trim(at.Path, "/") != "", at.RawQuery != "", at.User != nil:
		return nil, fmt.Errorf("%q is not the URL of a store: it is a scheme and a host, such as https://s3.eu-central-1.amazonaws.com", text)
	}
	return &url.URL{Scheme: at.Scheme, Host: at.Host}, nil
}

// newTransport returns how the store is reached: through the proxy that the environment names, if any.
func newTransport(ca string) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("read the CA of the bucket: %w", err)
		}
		if config.RootCAs, err = x509.SystemCertPool(); err != nil {
			config.RootCAs = x509.NewCertPool()
		}
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("the CA of the bucket: there is no certificate in %s", ca)
		}
	}
	dialer := &net.Dialer{Timeout: dialLimit}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: config, TLSHandshakeTimeout: dialLimit,
		ResponseHeaderTimeout: answerLimit, IdleConnTimeout: idleLimit, MaxConnsPerHost: mostConnections,
		MaxIdleConnsPerHost: mostConnections / 2, MaxResponseHeaderBytes: mostHeader, DisableCompression: true,
	}, nil
}

// mostAnswer bounds an answer that is no object: that of a list has 1,000 keys of 1,024 bytes, each byte encoded in three.
const mostAnswer = 4 << 20

// bounded bounds what is read of answers. Objects are bounded by who reads them.
type bounded struct{ *http.Transport }

// RoundTrip sends a request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.Transport.RoundTrip(r)
	if err == nil && (r.Method != http.MethodGet || r.URL.Query().Has("list-type") || answer.StatusCode >= http.StatusMultipleChoices) {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, mostAnswer), answer.Body}
	}
	return answer, err
}

// Close closes the connections that no request uses.
func (b *Bucket) Close() { b.http.CloseIdleConnections() }

// Head returns what the store says of an object.
func (b *Bucket) Head(ctx context.Context, key string) (Object, error) {
	o, err := b.client.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	if err != nil {
		return Object{}, fmt.Errorf("look at %s: %w", named(key), errorOf(err))
	}
	if o.Size < 0 || o.LastModified.IsZero() {
		return Object{}, fmt.Errorf("look at %s: %w: it does not say how long it is, or since when it is there", named(key), ErrAway)
	}
	return Object{key, o.Size, o.LastModified}, nil
}

// Get returns the first most bytes of an object, or all of it if it is shorter. The caller closes it.
func (b *Bucket) Get(ctx context.Context, key string, most int64) (io.ReadCloser, error) {
	options := minio.GetObjectOptions{}
	options.Set("Range", fmt.Sprintf("bytes=0-%d", most-1))
	body, _, _, err := minio.Core{Client: b.client}.GetObject(ctx, b.name, key, options)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", named(key), errorOf(err))
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, most), body}, nil
}

// Delete deletes an object. One that is not there is no error.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	err := errorOf(b.client.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{}))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("delete %s: %w", named(key), err)
	}
	return nil
}

// errorOf returns the error of a request in the words of this package.
func errorOf(err error) error {
	if err == nil {
		return nil
	}
	said := minio.ErrorResponse{}
	if !errors.As(err, &said) {
		return fmt.Errorf("%w: %w", ErrAway, withoutURL(err))
	}
	why := strings.TrimSpace(fmt.Sprintf("%d %s %s", said.StatusCode, oneLine(said.Code), oneLine(said.Message)))
	return ofStatus(said.StatusCode, said.Code, why)
}

// ofStatus returns the error of an answer that is one.
func ofStatus(status int, code, why string) error {
	switch {
	case status == http.StatusNotFound && code != "NoSuchBucket":
		return ErrNotFound
	case status == http.StatusForbidden, status == http.StatusUnauthorized:
		return fmt.Errorf("%w: %w: %s", ErrAway, ErrDenied, why)
	}
	return fmt.Errorf("%w: %s", ErrAway, why)
}

// withoutURL returns the error of a request without its URL, which may be signed.
func withoutURL(err error) error {
	if about := (*url.Error)(nil); errors.As(err, &about) {
		return about.Err
	}
	return err
}

// refusal returns the error of an answer to what was signed.
func refusal(answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, mostError))
	var said struct{ Code, Message string }
	_ = xml.Unmarshal(text, &said) // the status says enough where it is none
	return ofStatus(answer.StatusCode, said.Code, strings.TrimSpace(answer.Status+" "+oneLine(said.Code)+" "+oneLine(said.Message)))
}

// mostNamed bounds how much of a key a message shows: its end tells objects apart.
const mostNamed = 120

func named(key string) string {
	if len(key) > mostNamed {
		key = "..." + key[len(key)-mostNamed:]
	}
	return oneLine(key)
}

// mostWhy bounds how much of a text of the store is shown.
const mostWhy = 200

// oneLine returns a text of the store as it may stand in a log.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, text)
	return text[:min(len(text), mostWhy)]
}
