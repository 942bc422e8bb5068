package api

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClientKnowsACutStream: each way in which an answer can lack its end, or say that it is bad.
func TestClientKnowsACutStream(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTrailer: Katbox-Error, Katbox-Bytes\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n"
	for name, tt := range map[string]struct {
		answer string
		q      BytesQuery
		want   string
	}{
		"all of a file":               {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", BytesQuery{}, ""},
		"less than announced":         {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody", BytesQuery{}, "after 4 bytes"},
		"no last chunk":               {chunked, BytesQuery{}, "after 4 bytes"},
		"an archive":                  {chunked + "0\r\nKatbox-Bytes: 4\r\n\r\n", BytesQuery{Archive: true}, ""},
		"an archive of other bytes":   {chunked + "0\r\nKatbox-Bytes: 5\r\n\r\n", BytesQuery{Archive: true}, "after 4 bytes"},
		"an archive without its end":  {chunked + "0\r\n\r\n", BytesQuery{Archive: true}, "after 4 bytes"},
		"an archive that is not good": {chunked + "0\r\nKatbox-Bytes: 4\r\nKatbox-Error: changed\r\n\r\n", BytesQuery{Archive: true}, "changed"},
	} {
		t.Run(name, func(t *testing.T) {
			short, err := os.MkdirTemp("", "api")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(short)
			l, err := net.Listen("unix", filepath.Join(short, "s"))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, tt.answer)
			}()
			s, err := Dial(filepath.Join(short, "s")).Bytes(t.Context(), "csi-1", tt.q)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			body, err := io.ReadAll(s)
			if string(body) != "body" || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q, %v; want an error with %q", body, err, tt.want)
			}
		})
	}
	_, err := Dial("/nowhere/admin.sock").List(t.Context(), Query{})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/admin.sock") || errors.As(err, new(*Error)) {
		t.Errorf("no daemon: %v, want the socket's path", err)
	}
}
