package archiver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// mostCA bounds the file of the CA.
const mostCA = 1 << 20

// NewClient returns a client for the bucket. It uses the proxy of the environment, follows no redirect, and believes the CAs of
// the file beside those of the system; an empty name is no file.
func NewClient(caFile string) (*http.Client, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if caFile != "" {
		content, err := readCA(caFile)
		if err != nil {
			return nil, err
		}
		if !roots.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("%s has no certificate in PEM", caFile)
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: time.Minute, IdleConnTimeout: time.Minute,
			MaxIdleConnsPerHost: uploadsAtOnce, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

func readCA(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > mostCA {
		return nil, fmt.Errorf("%s: %w", path, errors.New("is larger than 1 MiB"))
	}
	return os.ReadFile(path)
}
