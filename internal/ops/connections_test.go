package ops

import (
	"net"
	"net/http"
	"testing"

	"github.com/go-logr/logr"
)

// TestCrowdKeepsNobodyOut: those who connect and say nothing have to go before
// the one who asks.
func TestCrowdKeepsNobodyOut(t *testing.T) {
	s := newServer(t, Config{Endpoint: "127.0.0.1:0", Log: logr.Discard()})
	address := s.listener.Addr().String()
	crowd := make([]net.Conn, maxConnections+10)
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
	// The eleven that came first were sent away, which their read tells.
	for _, silent := range crowd[:11] {
		if n, err := silent.Read(make([]byte, 1)); err == nil {
			t.Errorf("read %d bytes on a connection that should be closed", n)
		}
	}
	if open := s.listener.count(); open > maxConnections {
		t.Errorf("%d connections are open, want %d at most", open, maxConnections)
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
	l := &latest{Listener: inner, most: 1}
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
	// Closed twice, by the crowd and by its server, which takes no place away.
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

func (l *latest) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open.Len()
}
