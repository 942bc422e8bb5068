package cluster

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// nginxConfig is what a proxy_pass to an API server takes, and no more. The first %s is a directory, the
// second the address, the third more directives, and the fourth the API server.
const nginxConfig = `
daemon off;
pid %[1]s/pid;
error_log %[1]s/log;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  server {
    listen %[2]s;
    %[3]s
    location / { proxy_pass %[4]s; }
  }
}
`

// throughNginx starts nginx before the API server, and returns what reaches it as eve.
func throughNginx(t *testing.T, c *clustertest.Cluster, directives string) *rest.Config {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		if nginx, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Skip("this machine lacks nginx: it is a proxy that passes no trailers")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	must(t, l.Close())
	// Its workers belong to another user.
	dir, err := os.MkdirTemp("", "nginx")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o755)) //nolint:gosec // another user's
	config := filepath.Join(dir, "nginx.conf")
	must(t, os.WriteFile(config, fmt.Appendf(nil, nginxConfig, dir, address, directives, c.URL()), 0o600))
	cmd := exec.Command(nginx, "-c", config, "-e", filepath.Join(dir, "log"), "-p", dir)
	must(t, cmd.Start())
	t.Cleanup(func() {
		must(t, cmd.Process.Signal(syscall.SIGQUIT))
		_ = cmd.Wait() // a signal has ended it
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			must(t, conn.Close())
			break
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("nginx does not answer: %v, %s", err, said)
		}
	}
	return &rest.Config{Host: "http://" + address, BearerToken: "eve"}
}

// TestNginx: nginx asks in HTTP/1.0 unless it is told otherwise, where the end of a connection is that of the body.
// So it ends an archive that was cut as if it were whole.
func TestNginx(t *testing.T) {
	for what, directives := range map[string]string{
		"as it comes": "", "without buffers": "proxy_buffering off;", "HTTP/1.1": `proxy_http_version 1.1; proxy_set_header Connection "";`,
	} {
		c := clustertest.New(t)
		name, dir := c.Node("n1").Put(1, "ci", "nightly", "nightly-x7k2p")
		noise := make([]byte, 3_000_000) // compressed, it has as many
		_, err := rand.NewChaCha8([32]byte{}).Read(noise)
		must(t, err)
		content := string(noise)
		must(t, os.WriteFile(filepath.Join(dir, "log.txt"), []byte(content), 0o600))
		client, err := New(throughNginx(t, c, directives), "ci")
		must(t, err)
		page := httptest.NewServer(client.Forward())
		t.Cleanup(page.Close)
		plugin := func() (io.ReadCloser, error) {
			return client.Bytes(t.Context(), ID("ci", name), api.BytesQuery{Archive: true})
		}
		all := func() (io.ReadCloser, error) {
			answer, err := http.Get(page.URL + inCI + "/" + name + "/log?path=%2F&archive=tar&compress=gzip")
			if err != nil {
				return nil, err
			}
			return answer.Body, nil
		}
		for who, open := range map[string]func() (io.ReadCloser, error){"plugin": plugin, "page": all} {
			s, err := open()
			must(t, err)
			wantInTar(t, what+", "+who, s, content)
			must(t, s.Close())
			for _, after := range []int{1, 512, 1024, 4096, 9_000, 15_000, 500_000, 2_900_000} {
				c.Cut(after)
				s, err := open()
				if err != nil {
					continue
				}
				// What was cut before its first byte was asked for again.
				if n, err := io.Copy(io.Discard, s); err == nil && n < int64(len(content)) {
					t.Errorf("%s, %s: cut after %d bytes, and %d look complete", what, who, after, n)
				}
				must(t, s.Close())
			}
		}
	}
}
