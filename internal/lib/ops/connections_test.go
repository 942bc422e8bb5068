package ops

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"github.com/go-logr/logr"
)

// TestCrowdKeepsNoRequestOut: silent connections are closed before one with a request.
func TestCrowdKeepsNoRequestOut(t *testing.T) {
	s := newServer(t, Config{Endpoint: "127.0.0.1:0", Log: logr.Discard()})
	address := s.listener.Addr().String()
	crowd := make([]net.Conn, maxSilent+10)
	for i := range crowd {
		silent, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		crowd[i] = silent
	}
	answer, err := http.Get("http://" + address + "/")
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%s %v, want an answer", answer.Status, err)
	}
	// The first eleven were closed, which their read shows.
	for _, silent := range crowd[:11] {
		if n, err := silent.Read(make([]byte, 1)); err == nil {
			t.Errorf("read %d bytes on a connection that should be closed", n)
		}
	}
	if open := s.listener.count(); open > maxSilent {
		t.Errorf("%d connections are open, want %d at most", open, maxSilent)
	}
	if err := s.http.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestConnectionsThatEndMakeRoom(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	l := NewBoundedListener(inner, 1, 1)
	for range 3 {
		if _, err := net.Dial("tcp", inner.Addr().String()); err != nil {
			t.Fatal(err)
		}
	}
	var accepted [3]net.Conn
	for i := range accepted {
		if accepted[i], err = l.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	// They are closed twice, by the crowd and by its server, and counted once.
	for _, c := range accepted[:2] {
		_ = c.Close()
	}
	if open := l.count(); open != 1 {
		t.Errorf("%d connections are open, want 1", open)
	}
	if err := accepted[2].Close(); err != nil || l.count() != 0 {
		t.Errorf("closed with %v, and %d are open; want none", err, l.count())
	}
}

// pipes are accepted one after the other.
type pipes struct {
	net.Listener
	all []net.Conn
}

func (p *pipes) Accept() (net.Conn, error) {
	next := p.all[0]
	p.all = p.all[1:]
	return next, nil
}

// TestUnknownSendsTooMuch: of a client that is not known no more than Most is read; of one that is kept, all.
func TestUnknownSendsTooMuch(t *testing.T) {
	const text = "0123456789abcdef"
	for _, keep := range []bool{false, true} {
		here, there := net.Pipe()
		l := NewBoundedListener(&pipes{all: []net.Conn{here}}, 1, 1)
		l.Most = 10
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if keep {
			Keep(c)
		}
		go func() {
			_, _ = io.WriteString(there, text)
			there.Close()
		}()
		got, err := io.ReadAll(c)
		if keep && (string(got) != text || err != nil) || !keep && (string(got) != text[:l.Most] || !errors.Is(err, errTooMuch)) {
			t.Errorf("kept %v: read %q, %v", keep, got, err)
		}
		c.Close()
	}
}

// TestKept: connections that are kept do not count, and are bounded.
func TestKept(t *testing.T) {
	var all []net.Conn
	for range maxKept + 2 {
		here, there := net.Pipe()
		defer there.Close()
		all = append(all, here)
	}
	oldest := all[0]
	l := NewBoundedListener(&pipes{all: all}, 1, 1)
	for range maxKept + 1 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		Keep(c)
		Changed(c, http.StateActive)
		Changed(c, http.StateIdle)
	}
	if last, err := l.Accept(); err != nil || l.count() != 1 || l.kept.byAge.Len() != maxKept {
		t.Errorf("%v; %d in the crowd, %d kept", err, l.count(), l.kept.byAge.Len())
	} else if last.Close(); l.count() != 0 {
		t.Error("a connection that was closed counts")
	}
	if _, err := oldest.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the oldest is open: %v", err)
	}
}

func (l *BoundedListener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silent.byAge.Len() + l.asking.byAge.Len()
}

// TestCrowdDoesNotEndAnAnswer: a connection that has sent a request stays open, no matter how
// many others the same address opens meanwhile.
func TestCrowdDoesNotEndAnAnswer(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	s, err := Start(Config{Endpoint: "127.0.0.1:0", Log: logr.Discard(),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(asked)
			<-goOn
			fmt.Fprint(w, "slow")
		})})
	if err != nil {
		t.Fatal(err)
	}
	defer s.http.Close()
	address := s.listener.Addr().String()
	answered := make(chan error, 1)
	go func() {
		answer, err := http.Get("http://" + address + "/metrics")
		if err == nil {
			_, err = io.ReadAll(answer.Body)
			answer.Body.Close()
		}
		answered <- err
	}()
	<-asked
	crowd := connect(t, address, 2*maxSilent)
	// Half of them were closed, the last of which came after the one with the request.
	waitClosed(t, crowd[:maxSilent])
	close(goOn)
	if err := <-answered; err != nil {
		t.Errorf("a crowd that says nothing has ended an answer: %v", err)
	}
}

// connect opens silent connections.
func connect(t *testing.T, address string, number int) []net.Conn {
	t.Helper()
	all := make([]net.Conn, number)
	for i := range all {
		silent, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { silent.Close() })
		all[i] = silent
	}
	return all
}

// waitClosed waits until the server has closed connections, which their read shows.
func waitClosed(t *testing.T, all []net.Conn) {
	t.Helper()
	for _, silent := range all {
		if n, err := silent.Read(make([]byte, 1)); err == nil {
			t.Errorf("read %d bytes on a connection that should be closed", n)
		}
	}
}

// TestWhoIsSentAway dials one connection after the other and accepts them; each group has
// room for two.
func TestWhoIsSentAway(t *testing.T) {
	const one, other = "127.0.0.1", "127.0.0.2"
	type dial struct{ from, says string }
	for name, tt := range map[string]struct {
		dials []dial
		gone  []int
	}{
		"room for all":                   {[]dial{{one, ""}, {one, ""}}, nil},
		"the oldest":                     {[]dial{{one, ""}, {one, ""}, {one, ""}, {one, ""}}, []int{0, 1}},
		"the oldest of two addresses":    {[]dial{{one, ""}, {other, ""}, {"127.0.0.3", ""}}, []int{0}},
		"whose address has the most":     {[]dial{{one, ""}, {other, ""}, {other, ""}, {other, ""}, {other, ""}}, []int{1, 2, 3}},
		"not who has asked":              {[]dial{{one, "GET"}, {one, ""}, {one, ""}, {one, ""}}, []int{1}},
		"not who has asked, read or not": {[]dial{{one, "G"}, {one, "G"}, {one, ""}, {one, ""}, {one, ""}}, []int{2}},
		"the oldest of too many who ask": {[]dial{{one, "G"}, {one, "G"}, {one, "G"}, {one, ""}, {one, ""}}, []int{0}},
		"who asks from a crowd of its own": {[]dial{{one, "G"}, {other, "G"}, {other, "G"}, {other, "G"}, {other, "G"},
			{other, "G"}}, []int{1, 2}},
		"who has gone is not in the way": {[]dial{{one, "gone"}, {one, ""}, {one, ""}}, []int{0}},
		"who is silent, not who asks":    {[]dial{{one, "G"}, {one, "G"}, {other, ""}, {other, ""}, {other, ""}}, []int{2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer inner.Close()
			l, accepted := NewBoundedListener(inner, 2, 2), make([]*connection, len(tt.dials))
			for i, d := range tt.dials {
				client, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(d.from)}}).Dial("tcp", inner.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				if d.says == "gone" {
					client.Close()
				} else if _, err := io.WriteString(client, d.says); err != nil {
					t.Fatal(err)
				}
				conn, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				accepted[i] = conn.(*connection)
				// The kernel may deliver it after the next connection, of another processor.
				for d.says != "" && d.says != "gone" && !accepted[i].hasSent() {
					runtime.Gosched()
				}
			}
			for i, c := range accepted {
				if gone := c.in == nil; gone != slices.Contains(tt.gone, i) {
					t.Errorf("number %d is gone: %t; want %v gone", i, gone, tt.gone)
				}
			}
		})
	}
}

// someone is a connection from an address that this machine does not have.
type someone struct {
	net.Conn
	from netip.Addr
}

func (s someone) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(s.from, 1000))
}

// arrivals is a listener of them.
type arrivals struct {
	net.Listener
	all []string
}

func (a *arrivals) Accept() (net.Conn, error) {
	from := netip.MustParseAddr(a.all[0])
	a.all = a.all[1:]
	here, there := net.Pipe()
	return someone{here, from}, there.Close()
}

// TestNetworkIsOneClient: a pod may have as many IPv6 addresses as its network.
func TestNetworkIsOneClient(t *testing.T) {
	all := []string{
		"2001:db8:0:1::1", "2001:db8::1", "2001:db8::2", "2001:db8::a:b:c:d", "10.0.0.1", "2001:db8::ffff", "::ffff:10.0.0.1",
	}
	l := NewBoundedListener(&arrivals{all: all}, 3, 3)
	dropped := 0
	l.Dropped = func() { dropped++ }
	accepted := make([]*connection, len(all))
	for i := range all {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		accepted[i] = c.(*connection)
	}
	for i, want := range []bool{true, false, false, false, false, true, true} {
		if open := accepted[i].in != nil; open != want {
			t.Errorf("the connection from %s is open: %t", all[i], open)
		}
	}
	if dropped != 4 {
		t.Errorf("%d connections were told of", dropped)
	}
}

func TestSource(t *testing.T) {
	for remote, want := range map[string]string{
		"10.0.0.1:80": "10.0.0.1", "[::ffff:10.0.0.1]:80": "10.0.0.1", "[2001:db8::1:2:3:4]:80": "2001:db8::/64",
		"[fe80::1%eth0]:80": "fe80::/64", "@": "@", "": "",
	} {
		if got := Source(remote); got != want {
			t.Errorf("%q counts as %q, want %q", remote, got, want)
		}
	}
}
