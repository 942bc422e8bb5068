package uplink

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// counted counts the calls of the kernel.
type counted struct {
	net.Conn
	writes int
	err    error
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes++
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Write(p)
}

// TestAFrameIsOneWrite: all records of what is written to a wire go to the kernel at once, in their order.
func TestAFrameIsOneWrite(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	got := make(chan []byte, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		text, _ := io.ReadAll(tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{ca.Leaf(t, "gateway")}}))
		got <- text
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	kernel := &counted{Conn: raw}
	together := &gathered{Conn: kernel}
	secure := tls.Client(together, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // its own gateway
	must(t, secure.HandshakeContext(t.Context()))
	w := newWire(secure, together, nil)
	var want bytes.Buffer
	for i, size := range []int{1, 100, 32<<10 + 9, 9, 100_000, 16 << 10} {
		text := bytes.Repeat([]byte{byte('a' + i)}, size)
		want.Write(text)
		before := kernel.writes
		if n, err := w.Write(text); err != nil || n != size || kernel.writes != before+1 {
			t.Errorf("%d bytes: %d, %v in %d writes", size, n, err, kernel.writes-before)
		}
	}
	w.Close()
	if text := <-got; !bytes.Equal(text, want.Bytes()) {
		t.Errorf("%d bytes came, of %d", len(text), want.Len())
	}
	broken := errors.New("no cable")
	kernel.err = broken
	if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, broken) || !errors.Is(w.failure(), broken) {
		t.Errorf("a connection that broke: %d, %v, %v", n, err, w.failure())
	}
}
