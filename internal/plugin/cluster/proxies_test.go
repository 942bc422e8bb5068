package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// way is how a program reaches the API server.
type way func(t *testing.T, c *clustertest.Cluster) *rest.Config

// ways are those that have lost archives: in HTTP/1.1 no trailer follows a body of known length, and
// many proxies pass none at all.
var ways = map[string]way{
	"HTTP/2": func(_ *testing.T, c *clustertest.Cluster) *rest.Config { return c.Config("eve") },
	"HTTP/1.1": func(_ *testing.T, c *clustertest.Cluster) *rest.Config {
		config := c.Config("eve")
		config.NextProtos = []string{"http/1.1"}
		return config
	},
	"kubectl proxy": func(t *testing.T, c *clustertest.Cluster) *rest.Config {
		return through(t, kubectlProxy(t, c.Config("eve")))
	},
	"a proxy without trailers": func(t *testing.T, c *clustertest.Cluster) *rest.Config {
		return through(t, &narrow{t: t, to: c.Config("eve")})
	},
	"a proxy of HTTP/1.0": func(t *testing.T, c *clustertest.Cluster) *rest.Config {
		return through(t, &narrow{t: t, to: c.Config("eve"), old: true})
	},
}

// through returns what reaches a handler.
func through(t *testing.T, h http.Handler) *rest.Config {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// kubectlProxy is what "kubectl proxy" does once it has chosen where to.
func kubectlProxy(t *testing.T, config *rest.Config) http.Handler {
	t.Helper()
	to, err := url.Parse(config.Host)
	must(t, err)
	handler := httputil.NewSingleHostReverseProxy(to)
	handler.FlushInterval, handler.ErrorLog = 200*time.Millisecond, log.New(io.Discard, "", 0)
	handler.Transport, err = rest.TransportFor(config)
	must(t, err)
	return handler
}

// narrow is a proxy that passes a header and a body, and nothing behind it.
type narrow struct {
	t  *testing.T
	to *rest.Config
	// old answers as in HTTP/1.0, where the end of the connection is that of the body.
	old bool
	// keep, if it is not 0, is how many bytes of a body are passed; then it ends as if it were complete.
	keep atomic.Int64
	// sent is how many bytes the last body had.
	sent atomic.Int64
}

func (n *narrow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	transport, err := rest.TransportFor(n.to)
	must(n.t, err)
	q, err := http.NewRequestWithContext(r.Context(), r.Method, n.to.Host+r.URL.RequestURI(), nil)
	must(n.t, err)
	q.Header = r.Header.Clone()
	answer, err := transport.RoundTrip(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	header := answer.Header.Clone()
	for _, name := range []string{"Trailer", "Transfer-Encoding", "Connection"} {
		header.Del(name)
	}
	body := io.Reader(answer.Body)
	if keep := n.keep.Load(); keep > 0 {
		body = io.LimitReader(body, keep)
		header.Del("Content-Length")
	}
	var to io.Writer = w
	if n.old {
		header.Del("Content-Length")
		conn, _, err := http.NewResponseController(w).Hijack()
		must(n.t, err)
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.0 "+strconv.Itoa(answer.StatusCode)+" OK\r\nConnection: close\r\n")
		_ = header.Write(conn)
		_, _ = io.WriteString(conn, "\r\n")
		to = conn
	} else {
		maps.Copy(w.Header(), header)
		w.WriteHeader(answer.StatusCode)
	}
	n.sent.Store(0)
	if _, err := io.Copy(counting{to, &n.sent}, body); err != nil && !errors.Is(err, net.ErrClosed) {
		panic(http.ErrAbortHandler)
	}
}

// counting counts what is written, before a client can have read it.
type counting struct {
	io.Writer
	bytes *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return c.Writer.Write(p)
}

// sizes of the one file in a directory: less than fits into a buffer, and more.
var sizes = map[string]int{"10 bytes": 10, "3 MiB": 3 << 20}

// TestArchivesPassProxies: what proves that an archive is complete is in its bytes, so it comes through
// whatever passes bytes.
func TestArchivesPassProxies(t *testing.T) {
	for size, bytes := range sizes {
		c := clustertest.New(t)
		name, dir := c.Node("n1").Put(1, "ci", "nightly", "nightly-x7k2p")
		content := strings.Repeat("0123456789", bytes/10)
		must(t, os.WriteFile(filepath.Join(dir, "log.txt"), []byte(content), 0o600))
		for what, way := range ways {
			t.Run(size+"/"+what, func(t *testing.T) {
				client, err := New(way(t, c), "ci")
				must(t, err)
				for range 2 { // a connection is used again
					s, err := client.Bytes(t.Context(), ID("ci", name), api.BytesQuery{Archive: true})
					must(t, err)
					wantInTar(t, "plugin", s, content)
					must(t, s.Close())
				}
				s, err := client.Bytes(t.Context(), ID("ci", name), api.BytesQuery{Path: "log.txt"})
				must(t, err)
				defer s.Close()
				if text, err := io.ReadAll(s); err != nil || string(text) != content {
					t.Errorf("file: %d bytes, %v", len(text), err)
				}
				for _, packed := range []string{"", "&compress=gzip"} {
					page := httptest.NewServer(client.Forward())
					t.Cleanup(page.Close)
					answer, err := http.Get(page.URL + inCI + "/" + name + "/log?path=%2F&archive=tar" + packed)
					must(t, err)
					defer answer.Body.Close()
					wantInTar(t, "page"+packed, answer.Body, content)
				}
			})
		}
	}
}

// wantInTar reads an archive to its end, compressed or not. It has one file with that content.
func wantInTar(t *testing.T, what string, from io.Reader, content string) {
	t.Helper()
	text, err := io.ReadAll(from)
	if err != nil {
		t.Errorf("%s: %d bytes, %v", what, len(text), err)
		return
	}
	var unpacked io.Reader = bytes.NewReader(text)
	if z, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
		unpacked = z
	}
	archive := tar.NewReader(unpacked)
	_, err = archive.Next()
	must(t, err)
	if got, err := io.ReadAll(archive); err != nil || string(got) != content {
		t.Errorf("%s: a file of %d bytes, want %d; %v", what, len(got), len(content), err)
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("%s: behind the file: %v", what, err)
	}
	if rest, err := io.ReadAll(unpacked); err != nil || len(bytes.Trim(rest, "\x00")) > 0 {
		t.Errorf("%s: %d bytes behind the end, %v", what, len(rest), err)
	}
}

// TestCutArchivesAreNoticed: wherever a proxy ends a body as if it were complete, what came is not called
// complete: neither by the plugin nor for the page.
func TestCutArchivesAreNoticed(t *testing.T) {
	for size, length := range sizes {
		c := clustertest.New(t)
		name, dir := c.Node("n1").Put(1, "ci", "nightly", "nightly-x7k2p")
		content := strings.Repeat("0123456789", length/10)
		must(t, os.WriteFile(filepath.Join(dir, "log.txt"), []byte(content), 0o600))
		for _, old := range []bool{false, true} {
			cutting := &narrow{t: t, to: c.Config("eve"), old: old}
			client, err := New(through(t, cutting), "ci")
			must(t, err)
			page := httptest.NewServer(client.Forward())
			t.Cleanup(page.Close)
			readers := map[string]func() (io.ReadCloser, error){
				"archive": func() (io.ReadCloser, error) {
					return client.Bytes(t.Context(), ID("ci", name), api.BytesQuery{Archive: true})
				},
				"file": func() (io.ReadCloser, error) {
					return client.Bytes(t.Context(), ID("ci", name), api.BytesQuery{Path: "log.txt"})
				},
				"a part of a file": func() (io.ReadCloser, error) {
					return client.Bytes(t.Context(), ID("ci", name), api.BytesQuery{Path: "log.txt", Offset: 2, Limit: 7})
				},
			}
			for _, query := range []string{"path=%2F&archive=tar", "path=%2F&archive=tar&compress=gzip", "path=log.txt", "path=log.txt&limit=9"} {
				readers["page: "+query] = func() (io.ReadCloser, error) {
					answer, err := http.Get(page.URL + inCI + "/" + name + "/log?" + query)
					if err != nil {
						return nil, err
					}
					return answer.Body, nil
				}
			}
			for what, open := range readers {
				read := func() (int, error) {
					s, err := open()
					if err != nil {
						return 0, err
					}
					defer s.Close()
					text, err := io.ReadAll(s)
					return len(text), err
				}
				cutting.keep.Store(0)
				if n, err := read(); err != nil {
					t.Errorf("%s, %s, not cut: %d bytes, %v", size, what, n, err)
				}
				whole := cutting.sent.Load()
				for _, keep := range places(whole) {
					if keep < 1 || keep >= whole {
						continue
					}
					cutting.keep.Store(keep)
					if n, err := read(); err == nil {
						t.Errorf("%s, %s, HTTP/1.0 %t, cut after %d of %d bytes: %d that look complete", size, what, old, keep, whole, n)
					}
				}
			}
		}
	}
}

// places are where a body is cut: everywhere evenly, and near its end: in the seal of an archive, at its beginning, and
// in what ends a tar.
func places(whole int64) []int64 {
	all := []int64{1, whole - 1, whole - 512, whole - 4095, whole - 4096, whole - 4097, whole - 4608, whole - 5120}
	for at := int64(3); at < whole; at += max(1, whole/17) {
		all = append(all, at)
	}
	return all
}
