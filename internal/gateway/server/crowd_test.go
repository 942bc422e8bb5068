package server

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
)

// TestCrowdShutsNoServerOut: any pod may connect to the port of the API, and is asked for a certificate with its first
// request only. What one address does keeps no other one out, and ends no connection of it.
func TestCrowdShutsNoServerOut(t *testing.T) {
	for name, does := range map[string]func(net.Conn, *tls.Config){
		"silent":             func(net.Conn, *tls.Config) {},
		"half a handshake":   func(c net.Conn, _ *tls.Config) { _, _ = c.Write([]byte{22, 3, 1}) },
		"TLS and no request": func(c net.Conn, config *tls.Config) { _ = tls.Client(c, config).Handshake() },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			from := func(address string) func(context.Context, string, string) (net.Conn, error) {
				return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext
			}
			transport := c.http.Client().Transport.(*http.Transport).Clone()
			dials := 0
			transport.DialContext = func(ctx context.Context, network, to string) (net.Conn, error) {
				dials++
				return from("127.0.0.3")(ctx, network, to)
			}
			defer transport.CloseIdleConnections()
			asks := func() {
				t.Helper()
				answer, err := (&http.Client{Transport: transport}).Get(c.http.URL + "/healthz")
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			asks()
			config := transport.TLSClientConfig.Clone()
			for range maxSilent + maxAsking + 10 {
				conn, err := from("127.0.0.2")(t.Context(), "tcp", c.http.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				does(conn, config)
			}
			asks()
			if dials != 1 {
				t.Errorf("another address had to connect %d times", dials)
			}
			transport.CloseIdleConnections()
			asks()
		})
	}
}
