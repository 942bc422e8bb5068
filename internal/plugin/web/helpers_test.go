package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// guard bounds what hangs.
const guard = 2 * time.Minute

const (
	base   = "/apis/katbox.io/v1alpha1/namespaces/ci/retainedvolumes"
	name   = "nightly-x7k2p.q3fd7k2m9c4a"
	volume = base + "/" + name
)

// cluster plays the Kubernetes API.
type cluster struct {
	mu    sync.Mutex
	asked []*http.Request
	do    http.HandlerFunc
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.asked = append(c.asked, r)
	do := c.do
	c.mu.Unlock()
	do(w, r)
}

// requests returns what was asked since the last time.
func (c *cluster) requests() []*http.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	return asked
}

// answers says what is answered from now on.
func (c *cluster) answers(do http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.do = do
}

func listing(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"items":[]}`)
}

// play is a running server, and a browser that has opened its page.
type play struct {
	*Server
	t       *testing.T
	cluster *cluster
	reports chan string
	stop    func() error
}

func start(t *testing.T, c Config) *play {
	t.Helper()
	p := &play{t: t, cluster: &cluster{do: listing}, reports: make(chan string, 100)}
	c.Forward, c.Namespace = p.cluster, "ci"
	c.Report = func(problem string) { p.reports <- problem }
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	p.Server = s
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	p.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(guard):
			t.Error("the server does not end")
			return nil
		}
	})
	t.Cleanup(func() { _ = p.stop() })
	return p
}

// request is one as it goes over the wire.
type request struct {
	method, target string
	header         map[string][]string
	body           string
}

// with returns a request with a header changed; without values, it is missing.
func (r request) with(name string, values ...string) request {
	r.header = maps.Clone(r.header)
	r.header[name] = values
	return r
}

// answered is what came back.
type answered struct {
	code   int
	header http.Header
	body   string
}

// send sends a request to a port, byte by byte as it is.
func (p *play) send(port string, r request) (answered, error) {
	p.t.Helper()
	connection, err := net.Dial("tcp4", "127.0.0.1:"+port)
	if err != nil {
		p.t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(guard))
	fmt.Fprintf(connection, "%s %s HTTP/1.1\r\n", r.method, r.target)
	for _, name := range slices.Sorted(maps.Keys(r.header)) {
		for _, value := range r.header[name] {
			fmt.Fprintf(connection, "%s: %s\r\n", name, value)
		}
	}
	if r.body != "" || r.method == "POST" {
		fmt.Fprintf(connection, "Content-Length: %d\r\n", len(r.body))
	}
	fmt.Fprintf(connection, "\r\n%s", r.body)
	got, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: r.method})
	if err != nil {
		p.t.Fatalf("%s %s: %v", r.method, r.target, err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	return answered{got.StatusCode, got.Header, string(text)}, err
}

// page sends a request to the port of the page.
func (p *play) page(r request) answered {
	p.t.Helper()
	got, err := p.send(p.Server.page.port, r)
	if err != nil {
		p.t.Fatalf("%s %s: %v", r.method, r.target, err)
	}
	return got
}

// first is the request with the first URL, as a user makes it.
func (p *play) first() request {
	return request{"GET", strings.TrimPrefix(p.URL(), "http://127.0.0.1:"+p.Server.page.port), map[string][]string{
		"Host": {"127.0.0.1:" + p.Server.page.port}, "Sec-Fetch-Site": {"none"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"},
	}, ""}
}

// good returns a request as the page makes it.
func (p *play) good(method, target string) request {
	p.t.Helper()
	host := "127.0.0.1:" + p.Server.page.port
	return request{method, target, map[string][]string{
		"Host": {host}, "Sec-Fetch-Site": {"same-origin"}, "Origin": {"http://" + host},
		"Cookie": {p.login.name + "=" + p.login.secret}, "Katbox-Page": {p.login.key},
	}, ""}
}

var goToPage = regexp.MustCompile(`^/#key=([A-Z2-7]{26})$`)

// mustHave fails unless an answer has these headers.
func mustHave(t *testing.T, got http.Header, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if values := got.Values(name); len(values) != 1 || values[0] != value {
			t.Errorf("%s is %q, want %q", name, values, value)
		}
	}
}
