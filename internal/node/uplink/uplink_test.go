package uplink

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/fakepools"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

func TestConfig(t *testing.T) {
	whole := newScene(t, uplinktest.NewAuthority(t)).cfg
	whole.Gateway = "a.svc:9443,[::1]:1"
	must(t, whole.check())
	for name, change := range map[string]func(*Config){
		"Config.Gateway is missing": func(c *Config) { c.Gateway = "" }, "Config.Volumes is missing": func(c *Config) { c.Volumes = nil },
		"both given":                func(c *Config) { c.Controller, c.Pools = "b:1", &fakepools.Node{} },
		"Config.Pools is missing":   func(c *Config) { c.Gateway, c.Controller = "", "b:1" },
		"Config.Handler is missing": func(c *Config) { c.Handler = nil }, "Config.Node is missing": func(c *Config) { c.Node = "" },
		`"a" is not HOST:PORT`:                                      func(c *Config) { c.Gateway = "a" },
		`"" is not HOST:PORT`:                                       func(c *Config) { c.Gateway = "a:1," },
		`"a:0" is not HOST:PORT`:                                    func(c *Config) { c.Gateway = "b:1,a:0" },
		`"a:https" is not HOST:PORT`:                                func(c *Config) { c.Gateway = "a:https" },
		`":9443" is not HOST:PORT`:                                  func(c *Config) { c.Gateway = ":9443" },
		"the file of the CA, \"ca.crt\", is not an absolute path":   func(c *Config) { c.CAFile = "ca.crt" },
		"the file of the token, \"token\", is not an absolute path": func(c *Config) { c.TokenFile = "token" },
	} {
		cfg := whole
		change(&cfg)
		if _, err := Start(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

// TestConnects: the node shows its token, tells what it has, and answers.
func TestConnects(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behave, nodes := good(t, ca.Leaf(t, gatewayName))
	g := startGateway(t, "127.0.0.1:0", behave)
	s := newScene(t, ca)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	s.volumes.holdings = []volume.Holding{
		{Namespace: "ci", NamespaceUID: "u", Verdict: volume.Confirmed, Volumes: 3, Newest: at, Oldest: at.Add(-time.Hour)},
	}
	mine := record("csi-1", "job")
	retained, foreign, owned := record("csi-2", "job2"), record("csi-3", ""), record("csi-4", "job4")
	retained.Phase, owned.Owner.Verdict = volume.Retained, volume.Denied
	s.volumes.awake = []volume.Description{{Record: mine}, {Record: retained}, {Record: foreign}, {Record: owned}}
	u := s.start(g.port())
	n := next(t, "node", nodes)
	header := n.Request.Header
	if n.Request.Method != http.MethodGet || n.Request.URL.Path != api.ConnectPath || header.Get("Authorization") != "Bearer token-1" ||
		header.Get("Upgrade") != api.ConnectProtocol || header.Get("Connection") != "Upgrade" ||
		header.Get(api.HeaderNode) != "n1" || header.Get(api.HeaderVersion) != "v1" || n.State.Version != tls.VersionTLS13 ||
		n.State.ServerName != gatewayName {
		t.Errorf("the node asks with %s %s %v, TLS %x for %q", n.Request.Method, n.Request.URL, header, n.State.Version, n.State.ServerName)
	}
	line := next(t, "summary", n.lines)
	held := api.Holding{Namespace: "ci", NamespaceUID: "u", Verdict: "Confirmed", Volumes: 3, Newest: at, Oldest: at.Add(-time.Hour)}
	if !line.Full || len(line.Holdings) != 1 || line.Holdings[0] != held || line.Time.IsZero() {
		t.Errorf("the first line is %+v", line)
	}
	if asks := n.nextAsks(t); len(asks) != 1 || asks[0] != (api.OwnerAsk{ID: "csi-1", Namespace: "ci", Pod: "job", PodUID: "uid-job"}) {
		t.Errorf("the node asks for %+v, want the volume that is awake, and whose owner nobody has asked for", asks)
	}
	later := record("csi-5", "job5")
	u.Published(later)
	if asks := n.nextAsks(t); len(asks) != 1 || asks[0].ID != "csi-5" {
		t.Errorf("the node asks for %+v, want what was published", asks)
	}

	kept := n.wantAnswer(t, 200, http.MethodPost, api.OwnersPath,
		`{"items":[{"id":"csi-1","podUID":"uid-job","owner":{"verdict":"Confirmed","namespaceUID":"u","job":"nightly"}},
		{"id":"csi-9","podUID":"x","owner":{"verdict":"Denied"}}]}`)
	owner := volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "u", Job: "nightly"}
	if strings.TrimSpace(kept) != `{"kept":1}` || s.volumes.owners["csi-1"] != owner {
		t.Errorf("kept %s: %+v", kept, s.volumes.owners)
	}
	s.volumes.set(func() { s.volumes.holdings = nil })
	gone := api.Holding{Namespace: "ci", NamespaceUID: "u", Verdict: "Confirmed"}
	if line := next(t, "change", n.lines); line.Full || len(line.Holdings) != 1 || line.Holdings[0] != gone {
		t.Errorf("the change is %+v, want that the namespace is gone", line)
	}

	if got := n.wantAnswer(t, 200, http.MethodGet, "/v1/volumes/csi-1/bytes?path=x", ""); got != "/v1/volumes/csi-1/bytes" {
		t.Errorf("the handler got %q", got)
	}
	for _, path := range []string{api.GonePath, api.GrepPath} {
		if got := n.wantAnswer(t, 200, http.MethodGet, path+"?namespace=ci", ""); got != path {
			t.Errorf("the handler got %q", got)
		}
	}
	for _, path := range []string{"/v1/usage", "/v1/report", "/v1/volumesx", "/v1/gone/x", "/v1/grep/x", "/", "/v1//report"} {
		n.wantAnswer(t, 404, http.MethodGet, path, "")
	}
	if got := n.wantAnswer(t, 200, http.MethodGet, "/v1/volumes/../usage", ""); got != "/v1/volumes/../usage" {
		t.Errorf("the handler got %q", got)
	}
	n.wantAnswer(t, 405, http.MethodPost, api.SummaryPath, "{}")
	n.wantAnswer(t, 405, http.MethodGet, api.OwnersPath, "")

	if st := state(t, u); st.Since.IsZero() || st.Err != nil || st.Address != g.listener.Addr().String() {
		t.Errorf("the state is %+v", st)
	}
	metricstest.Of(t, s.cfg.Metrics).Want(t, "connected", metricstest.Values{
		"katbox_gateway_connected": 1, `katbox_gateway_connects_total{outcome="connected"}`: 1,
		`katbox_gateway_asks_total{outcome="sent"}`: 2, `katbox_gateway_asks_total{outcome="answered"}`: 1,
	})
	if s.logged("connected to the gateway") != 1 || s.logged("token-1") != 0 {
		t.Errorf("the log is\n%s", s.logText())
	}
	must(t, u.Stop(t.Context()))
	metricstest.Of(t, s.cfg.Metrics).Want(t, "stopped", metricstest.Values{"katbox_gateway_connected": 0})
	if _, open := <-n.lines; open {
		t.Error("there is another line")
	}
	u.Published(later)
}

// TestOwnersAreChecked: what is malformed is refused as a whole, and nothing is kept.
func TestOwnersAreChecked(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behave, nodes := good(t, ca.Leaf(t, gatewayName))
	g := startGateway(t, "127.0.0.1:0", behave)
	s := newScene(t, ca)
	s.volumes.awake = []volume.Description{{Record: record("csi-1", "job")}}
	s.start(g.port())
	n := next(t, "node", nodes)
	item := `{"id":"csi-1","podUID":"uid-job","owner":{"verdict":"Denied"}}`
	for name, body := range map[string]string{
		"no list of owners": `[]`, "unexpected EOF": `{"items":[` + item,
		"neither Confirmed nor Denied": `{"items":[` + item + `,{"id":"a","podUID":"b"}]}`,
		"podUID":                       `{"items":[` + item + `,{"id":"a","podUID":"../b","owner":{"verdict":"Denied"}}]}`,
		"items[0]":                     `{"items":[{"id":"a/b","podUID":"b","owner":{"verdict":"Denied"}}]}`,
		"may have":                     `{"items":[` + strings.Repeat(item+",", mostAnswers) + item + `]}`,
		"too large":                    `{"items":[` + strings.Repeat(" ", mostOwners) + item + `]}`,
	} {
		if got := n.wantAnswer(t, 400, http.MethodPost, api.OwnersPath, body); !strings.Contains(got, name) {
			t.Errorf("%s, want %q", got, name)
		}
	}
	if len(s.volumes.owners) > 0 {
		t.Errorf("kept %v", s.volumes.owners)
	}
	s.volumes.set(func() { s.volumes.err = errors.New("disk on fire") })
	if got := n.wantAnswer(t, 500, http.MethodPost, api.OwnersPath, `{"items":[`+item+`]}`); !strings.Contains(got, "disk on fire") {
		t.Errorf("%s does not say what is wrong", got)
	}
}

// TestNameNotResolved: the addresses that were known are kept.
func TestNameNotResolved(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behave, nodes := good(t, ca.Leaf(t, gatewayName))
	g := startGateway(t, "127.0.0.1:0", behave)
	s := newScene(t, ca)
	unknown := &net.DNSError{Err: "no such host", Name: gatewayName, Server: "10.0.0.10:53", IsNotFound: true}
	s.resolves(unknown)
	u := s.start(g.port())
	eventually(t, "the name is reported", func() bool { return len(u.States()) > 0 })
	if st := state(t, u); !strings.Contains(fmt.Sprint(st.Err), "resolve the name gateway.test of --gateway: no such host; check") {
		t.Errorf("the state is %+v", st)
	}
	s.resolves(nil)
	eventually(t, "no addresses", func() bool { return strings.Contains(state(t, u).Err.Error(), "has no addresses") })
	s.resolves(nil, g.address())
	next(t, "node", nodes)
	s.resolves(unknown)
	eventually(t, "the name is reported again", func() bool { return len(u.States()) == 2 })
	g.cut()
	next(t, "node", nodes)
	if s.logged("no such host") != 2 {
		t.Errorf("want one line for each time that it began, the log is\n%s", s.logText())
	}
}

// TestTokenRotates: each connection shows the token as it is then, also with another CA.
func TestTokenRotates(t *testing.T) {
	ca, newCA := uplinktest.NewAuthority(t), uplinktest.NewAuthority(t)
	before, nodes := good(t, ca.Leaf(t, gatewayName))
	after, newNodes := good(t, newCA.Leaf(t, gatewayName))
	var mu sync.Mutex
	behave := before
	g := startGateway(t, "127.0.0.1:0", func(c net.Conn) {
		mu.Lock()
		now := behave
		mu.Unlock()
		now(c)
	})
	s := newScene(t, ca)
	s.start(g.port())
	next(t, "node", nodes)
	eventually(t, "the connection is in use", func() bool { return s.logged(`"connected to the gateway"`) == 1 })
	must(t, os.WriteFile(s.cfg.TokenFile, []byte("token-2"), 0o600), os.WriteFile(s.cfg.CAFile, append(ca.PEM, newCA.PEM...), 0o600))
	mu.Lock()
	behave = after
	mu.Unlock()
	g.cut()
	if n := next(t, "node", newNodes); n.Request.Header.Get("Authorization") != "Bearer token-2" {
		t.Errorf("the node shows %q", n.Request.Header.Get("Authorization"))
	}
	if s.logged("the connection to the gateway is lost: the other end closed the connection") != 1 {
		t.Errorf("the log is\n%s", s.logText())
	}
}

// pair returns two gateways on two addresses with the same port.
func pair(t *testing.T, first, second func(net.Conn)) (a, b *gateway) {
	for range 50 {
		one, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		_, port, _ := net.SplitHostPort(one.Addr().String())
		if two, err := net.Listen("tcp", "127.0.0.2:"+port); err == nil {
			return serveGateway(t, one, first), serveGateway(t, two, second)
		}
		one.Close()
	}
	t.Fatal("no port is free on two addresses")
	return nil, nil
}

// TestReplicas: a node connects to each address of the name, and makes no new connection to one that
// is gone.
func TestReplicas(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behaveA, nodesA := good(t, ca.Leaf(t, gatewayName))
	behaveB, nodesB := good(t, ca.Leaf(t, gatewayName))
	a, b := pair(t, behaveA, behaveB)
	s := newScene(t, ca)
	s.resolves(nil, a.address(), b.address(), a.address())
	u := s.start(a.port())
	next(t, "node", nodesA)
	n := next(t, "node", nodesB)
	eventually(t, "both are connected", func() bool { return metricstest.Of(t, s.cfg.Metrics)["katbox_gateway_connected"] == 2 })
	if len(u.States()) != 2 || a.accepted() != 1 || b.accepted() != 1 {
		t.Errorf("%+v after %d and %d connections", u.States(), a.accepted(), b.accepted())
	}
	s.resolves(nil, a.address())
	eventually(t, "the address is not wanted", func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		return !u.links[netip.MustParseAddrPort(b.listener.Addr().String())].wanted
	})
	n.wantAnswer(t, 200, http.MethodGet, "/v1/volumes", "")
	b.cut()
	eventually(t, "the address is forgotten", func() bool { return len(u.States()) == 1 })
	if b.accepted() != 1 {
		t.Errorf("%d connections to an address that the name has no more", b.accepted())
	}
	s.resolves(nil, a.address(), b.address())
	next(t, "node", nodesB)
}

// TestRenewal: the gateway is told to ask on the new connection, and what runs on the old one goes on.
func TestRenewal(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behave, nodes, answers := reading(t, ca)
	g := startGateway(t, "127.0.0.1:0", behave)
	s := newScene(t, ca)
	s.pace.life = 50 * time.Millisecond
	letGo := make(chan struct{})
	s.cfg.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-letGo
		_, _ = io.WriteString(w, "whole")
	})
	s.start(g.port())
	old := next(t, "node", nodes)
	answer := next(t, "answer", answers)
	defer answer.Body.Close()
	next(t, "renewed connection", nodes)
	eventually(t, "the gateway is told to leave the old connection", func() bool { return old.Client.Available() == 0 })
	metricstest.Of(t, s.cfg.Metrics).Want(t, "renewed", metricstest.Values{"katbox_gateway_connected": 1})
	if old.ended() {
		t.Error("the old summary has ended: the gateway may take that for the end of the connection")
	}
	close(letGo)
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "whole" {
		t.Errorf("%q, %v", text, err)
	}
	if g.accepted() != 2 {
		t.Errorf("%d connections, want no third while something runs on the first", g.accepted())
	}
	old.hush()
	eventually(t, "the old connection is closed", func() bool { return old.Client.Err() != nil })
	next(t, "another renewed connection", nodes)
	if s.logged("not connected") > 0 || s.logged("connected to the gateway") != 1 {
		t.Errorf("the log is\n%s", s.logText())
	}
}

// TestAsksAreRepeated: what was not answered when the connection is lost is asked on the next one.
func TestAsksAreRepeated(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behave, nodes := good(t, ca.Leaf(t, gatewayName))
	g := startGateway(t, "127.0.0.1:0", behave)
	s := newScene(t, ca)
	s.volumes.awake = []volume.Description{{Record: record("csi-1", "a")}, {Record: record("csi-2", "b")}}
	s.start(g.port())
	n := next(t, "node", nodes)
	if asks := n.nextAsks(t); len(asks) != 2 {
		t.Fatalf("asks %+v", asks)
	}
	body, err := json.Marshal(api.OwnerAnswers{Items: []api.OwnerAnswer{{ID: "csi-1", PodUID: "uid-a", Owner: api.Owner{Verdict: "Denied"}}}})
	must(t, err)
	n.wantAnswer(t, 200, http.MethodPost, api.OwnersPath, string(body))
	g.cut()
	if asks := next(t, "node", nodes).nextAsks(t); len(asks) != 1 || asks[0].ID != "csi-2" {
		t.Errorf("asks %+v, want the one that was not answered", asks)
	}
}

// TestStopLetsReadersEnd: the gateway is told to ask elsewhere, and what runs goes on for a moment.
func TestStopLetsReadersEnd(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behave, nodes := good(t, ca.Leaf(t, gatewayName))
	g := startGateway(t, "127.0.0.1:0", behave)
	s := newScene(t, ca)
	letGo := make(chan struct{})
	s.cfg.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-letGo
		_, _ = io.WriteString(w, "whole")
	})
	u := s.start(g.port())
	n := next(t, "node", nodes)
	answer, err := n.Ask(http.MethodGet, "/v1/volumes", nil)
	must(t, err)
	defer answer.Body.Close()
	stopped := make(chan error, 1)
	go func() { stopped <- u.Stop(t.Context()) }()
	eventually(t, "the gateway is told to leave", func() bool { return n.Client.Available() == 0 })
	if n.ended() {
		t.Error("the summary has ended: the gateway may take that for the end of the connection")
	}
	close(letGo)
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "whole" {
		t.Errorf("%q, %v", text, err)
	}
	if err := next(t, "end", stopped); err != nil {
		t.Error(err)
	}
}

func TestStopCutsReaders(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behave, nodes := good(t, ca.Leaf(t, gatewayName))
	g := startGateway(t, "127.0.0.1:0", behave)
	s := newScene(t, ca)
	s.cfg.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1000)); err != nil {
				return
			}
		}
	})
	u := s.start(g.port())
	answer, err := next(t, "node", nodes).Ask(http.MethodGet, "/v1/volumes", nil)
	must(t, err)
	defer answer.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := u.Stop(ctx); !errors.Is(err, errCut) {
		t.Errorf("%v, want that readers were cut", err)
	}
	if n, err := io.Copy(io.Discard, answer.Body); err == nil {
		t.Errorf("after %d bytes the stream looks complete", n)
	}
}
