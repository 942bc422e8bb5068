package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// server is the API server.
type server struct {
	url, token string
	http       http.Client
}

// kubeconfig is as much of the file as is needed.
type kubeconfig struct {
	CurrentContext string `yaml:"current-context"`
	Contexts       []struct {
		Name    string
		Context struct{ Cluster, User string }
	}
	Clusters []struct {
		Name    string
		Cluster struct {
			Server string
			CAData string `yaml:"certificate-authority-data"`
			CA     string `yaml:"certificate-authority"`
		}
	}
	Users []struct {
		Name string
		User struct {
			Token    string
			CertData string `yaml:"client-certificate-data"`
			Cert     string `yaml:"client-certificate"`
			KeyData  string `yaml:"client-key-data"`
			Key      string `yaml:"client-key"`
		}
	}
}

// connect reads a kubeconfig. It asks nothing yet.
func connect(path string) (*server, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var k kubeconfig
	if err := yaml.Unmarshal(content, &k); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	used := slices.IndexFunc(k.Contexts, func(c struct {
		Name    string
		Context struct{ Cluster, User string }
	}) bool {
		return c.Name == k.CurrentContext
	})
	if used < 0 {
		return nil, fmt.Errorf("%s has no context %q", path, k.CurrentContext)
	}
	s := &server{http: http.Client{Timeout: 2 * time.Minute}}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	for _, c := range k.Clusters {
		if c.Name == k.Contexts[used].Context.Cluster {
			s.url = strings.TrimSuffix(c.Cluster.Server, "/")
			ca, err := dataOf(c.Cluster.CAData, c.Cluster.CA)
			if err != nil {
				return nil, err
			}
			config.RootCAs = x509.NewCertPool()
			config.RootCAs.AppendCertsFromPEM(ca)
		}
	}
	for _, u := range k.Users {
		if u.Name != k.Contexts[used].Context.User {
			continue
		}
		s.token = u.User.Token
		cert, err := dataOf(u.User.CertData, u.User.Cert)
		key, err2 := dataOf(u.User.KeyData, u.User.Key)
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		if len(cert) > 0 {
			pair, err := tls.X509KeyPair(cert, key)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
	}
	s.http.Transport = &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64}
	return s, nil
}

// dataOf returns what is given as base64, or in a file, or not at all.
func dataOf(data, file string) ([]byte, error) {
	switch {
	case data != "":
		return base64.StdEncoding.DecodeString(data)
	case file != "":
		return os.ReadFile(file)
	}
	return nil, nil
}

// statusError is an answer that is an error.
type statusError struct {
	code    int
	message string
}

// Error returns what the API server says.
func (e *statusError) Error() string { return fmt.Sprintf("%d: %s", e.code, e.message) }

// is reports whether err is an answer with that code.
func is(err error, code int) bool {
	e := (*statusError)(nil)
	return errors.As(err, &e) && e.code == code
}

// do sends a request with an object and reads the answer into another; nil for none.
func (s *server) do(ctx context.Context, method, path string, send, into any) error {
	_, err := s.ask(ctx, method, path, send, into)
	return err
}

// ask is do, and returns the header of the answer.
func (s *server) ask(ctx context.Context, method, path string, send, into any) (http.Header, error) {
	var body io.Reader
	if send != nil {
		text, err := json.Marshal(send)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if send != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	answer, err := s.http.Do(request)
	if err != nil {
		if about := (*url.Error)(nil); errors.As(err, &about) {
			err = about.Err
		}
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		var status struct{ Message string }
		_ = json.Unmarshal(text, &status)
		return nil, fmt.Errorf("%s %s: %w", method, path, &statusError{answer.StatusCode, cmp.Or(status.Message, string(text))})
	}
	if into == nil {
		return answer.Header, nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return answer.Header, nil
}
