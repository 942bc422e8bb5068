package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// listenAsGateway listens, and handles each connection until the test ends.
func listenAsGateway(t testing.TB, handle func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go handle(conn)
		}
	}()
	return l.Addr().String()
}

// reportText returns the daemon's report.
func (d *daemon) reportText() string {
	r, err := d.admin().Report(d.t.Context())
	if err != nil {
		return ""
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return ""
	}
	return string(text)
}

// TestGatewayHangs: the daemon serves and stops as if there were none.
func TestGatewayHangs(t *testing.T) {
	connected := make(chan struct{}, 100)
	address := listenAsGateway(t, func(conn net.Conn) {
		defer conn.Close()
		connected <- struct{}{}
		_, _ = io.Copy(io.Discard, conn) // the node has left
	})
	d := newDaemon(t, "--afterlifespan", "1h", "--gateway", address)
	d.flags = append(d.flags, "--gateway-ca", filepath.Join(d.dir, "ca.crt"), "--gateway-token", filepath.Join(d.dir, "token"))
	d.start()
	d.eventually("the missing files are reported", func() bool {
		return strings.Contains(d.reportText(), "name its file with --gateway-token")
	})
	must(t, os.WriteFile(filepath.Join(d.dir, "token"), []byte("token"), 0o600),
		os.WriteFile(filepath.Join(d.dir, "ca.crt"), uplinktest.NewAuthority(t).PEM, 0o600))
	<-connected
	for i := range 20 {
		d.publish(testPod, volumeID(i))
		d.unpublish(testPod, volumeID(i))
	}
	list, err := d.admin().List(t.Context(), api.Query{})
	if err != nil || len(list.Items) != 20 {
		t.Errorf("%d volumes, %v", len(list.Items), err)
	}
	if code := d.signal(syscall.SIGTERM); code != 0 || d.stderr.String() != "" {
		t.Errorf("exit code %d, %s", code, d.stderr)
	}
	if got := strings.Count(d.stdout.String(), "read the token for the gateway"); got != 1 {
		t.Errorf("the cause is logged %d times:\n%s", got, d.stdout)
	}
}

// TestGateway: it learns what the node has, and reads what is retained.
func TestGateway(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	nodes := make(chan *uplinktest.Node, 100)
	address := listenAsGateway(t, func(conn net.Conn) {
		if n, err := uplinktest.Take(t.Context(), conn, ca.Leaf(t, "localhost")); err == nil {
			nodes <- n
		}
	})
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	d := newDaemon(t, "--afterlifespan", "1h", "--gateway", "localhost:"+port)
	d.flags = append(d.flags, "--gateway-ca", filepath.Join(d.dir, "ca.crt"), "--gateway-token", filepath.Join(d.dir, "token"))
	must(t, os.WriteFile(filepath.Join(d.dir, "token"), []byte("token"), 0o600), os.WriteFile(filepath.Join(d.dir, "ca.crt"), ca.PEM, 0o600))
	d.start()
	<-nodes
	req := d.request(testPod, volumeID(1))
	req.VolumeContext["csi.storage.k8s.io/pod.name"], req.VolumeContext["csi.storage.k8s.io/pod.namespace"] = "job-x7k2p", "ci"
	_, err = d.node.NodePublishVolume(t.Context(), req)
	must(t, err)
	d.writeMarker(testPod)
	d.crash()

	var n *uplinktest.Node
	var summary *http.Response
	for err = io.EOF; err != nil; { // a connection from before the crash is dead
		n = next(t, nodes)
		summary, err = n.Ask(http.MethodGet, api.SummaryPath, nil)
	}
	defer summary.Body.Close()
	if n.Request.Header.Get(api.HeaderNode) != "node-1" || n.Request.Header.Get(api.HeaderVersion) != version {
		t.Errorf("the node says %v", n.Request.Header)
	}
	lines := json.NewDecoder(summary.Body)
	var full, asked bool
	for !full || !asked {
		var line api.Summary
		must(t, lines.Decode(&line))
		full = full || line.Full
		for _, ask := range line.Asks {
			if asked = true; ask != (api.OwnerAsk{ID: volumeID(1), Namespace: "ci", Pod: "job-x7k2p", PodUID: testPod}) {
				t.Errorf("the node asks for %+v", ask)
			}
		}
	}
	d.eventually("the report says that it is connected", func() bool {
		return strings.Contains(d.reportText(), "localhost:"+port+" 127.0.0.1:"+port+" connected since ")
	})

	d.unpublish(testPod, volumeID(1))
	client := api.NewClient("node-1", n.Client).OnBehalf("alice", "audit-1")
	s, err := client.Bytes(t.Context(), volumeID(1), api.BytesQuery{Path: "marker"})
	must(t, err)
	content, err := io.ReadAll(s)
	if err != nil || string(content) != testPod {
		t.Errorf("%q, %v", content, err)
	}
	if _, err := client.Usage(t.Context()); err == nil {
		t.Error("the gateway gets what root may ask for")
	}
	if code := d.signal(syscall.SIGTERM); code != 0 || d.stderr.String() != "" {
		t.Errorf("exit code %d, %s", code, d.stderr)
	}
	if !strings.Contains(d.stdout.String(), `"user":"alice","auditID":"audit-1"`) {
		t.Errorf("the log does not say who reads:\n%s", d.stdout)
	}
}

// next waits for a node that connects.
func next(t *testing.T, nodes <-chan *uplinktest.Node) *uplinktest.Node {
	t.Helper()
	select {
	case n := <-nodes:
		return n
	case <-time.After(time.Minute):
		t.Fatal("the node does not connect")
	}
	panic("not reached")
}
