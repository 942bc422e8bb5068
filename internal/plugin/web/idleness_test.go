package web

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestIdleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var over atomic.Bool
		i := newIdleness(30*time.Minute, func() { over.Store(true) })
		pass := func(d time.Duration) bool {
			time.Sleep(d)
			synctest.Wait()
			return over.Load()
		}
		if pass(29 * time.Minute) {
			t.Fatal("over after 29 minutes")
		}
		i.use()()
		i.due() // it may come late
		if pass(29 * time.Minute) {
			t.Fatal("over 29 minutes after a request")
		}
		one, two := i.use(), i.use()
		one()
		if pass(5 * time.Hour) {
			t.Fatal("over during a download")
		}
		two()
		if pass(30*time.Minute - time.Second) {
			t.Fatal("over too soon after a download")
		}
		if !pass(time.Second) {
			t.Fatal("not over 30 minutes after a download")
		}
		i.stop()
	})
}

func TestAnUnusedServerEnds(t *testing.T) {
	s, err := New(Config{Forward: &cluster{}, Namespace: "ci", Report: func(string) {}, idle: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); !errors.Is(err, ErrIdle) {
		t.Errorf("it ends with %v", err)
	}
}

// What strangers ask keeps no server alive; what the page asks does.
func TestWhatCountsAsUse(t *testing.T) {
	p := start(t, Config{})
	until := func() time.Time {
		p.idle.mu.Lock()
		defer p.idle.mu.Unlock()
		return p.idle.until
	}
	before := until()
	p.refused(p.good("GET", base).with("Cookie"))
	p.refused(p.good("GET", base).with("Katbox-Page"))
	p.refused(request{"GET", "/?token=x", p.first().header, ""})
	if got, err := p.send(p.Server.raw.port, p.fetch("/raw/x/y")); err != nil || got.code != 403 {
		t.Errorf("a made-up ticket: %d, %v", got.code, err)
	}
	if !until().Equal(before) {
		t.Error("a stranger's request counts as use")
	}
	during := 0
	p.cluster.answers(func(w http.ResponseWriter, r *http.Request) {
		p.idle.mu.Lock()
		during = p.idle.users
		p.idle.mu.Unlock()
		listing(w, r)
	})
	p.page(p.good("GET", base))
	if !until().After(before) || during != 1 {
		t.Errorf("a request of the page does not count as use; %d during it", during)
	}
}

func TestItListensOnLoopbackAlone(t *testing.T) {
	p := start(t, Config{})
	for _, one := range []site{p.Server.page, p.Server.raw} {
		address := one.listener.Addr().(*net.TCPAddr)
		if !address.IP.Equal(net.IPv4(127, 0, 0, 1)) || strconv.Itoa(address.Port) != one.port {
			t.Errorf("it listens on %s", address)
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		ip := address.(*net.IPNet).IP
		if ip.IsLoopback() && ip.To4() != nil || ip.IsLinkLocalUnicast() {
			continue
		}
		for _, port := range []string{p.Server.page.port, p.Server.raw.port} {
			if connection, err := net.Dial("tcp", net.JoinHostPort(ip.String(), port)); err == nil {
				connection.Close()
				t.Errorf("it answers on %s", net.JoinHostPort(ip.String(), port))
			}
		}
	}
}

func TestPorts(t *testing.T) {
	for _, port := range []int{-1, 1, 80, 1023, 65535, 70000} {
		if _, err := New(Config{Forward: &cluster{}, Namespace: "ci", Report: func(string) {}, Port: port}); err == nil {
			t.Errorf("--port=%d is taken", port)
		}
	}
	// The error says what to do about a port in use.
	taken := start(t, Config{})
	port, _ := strconv.Atoi(taken.Server.page.port)
	if port < 1024 || port > 65534 {
		t.Fatalf("port %d is no ordinary free one", port)
	}
	if _, err := New(Config{Forward: &cluster{}, Namespace: "ci", Report: func(string) {}, Port: port}); err == nil {
		t.Error("a port in use is taken")
	}
}

func TestItEndsAtOnce(t *testing.T) {
	p := start(t, Config{})
	begun := make(chan struct{})
	p.cluster.answers(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	})
	answer := make(chan error, 1)
	go func() {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1:"+p.Server.page.port+volume, nil)
		r.AddCookie(&http.Cookie{Name: p.login.name, Value: p.login.secret})
		r.Header.Set("Katbox-Page", p.login.key)
		got, err := http.DefaultClient.Do(r)
		if err == nil {
			got.Body.Close()
		}
		answer <- err
	}()
	<-begun
	if err := p.stop(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if err := <-answer; err == nil {
		t.Error("a request outlived the server")
	}
}
