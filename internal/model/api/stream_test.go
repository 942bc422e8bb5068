package api

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/sealed"
)

// TestClientKnowsACutStream: each way in which an answer can lack its end, or say that it is bad.
func TestClientKnowsACutStream(t *testing.T) {
	const (
		ok      = "HTTP/1.1 200 OK\r\n"
		chunked = ok + "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n"
		whole   = "Katbox-Size: 4\r\nKatbox-Offset: 0\r\n\r\n"
	)
	seal := func(body string, notes sealed.Notes) func(word string) string {
		return func(word string) string {
			var text strings.Builder
			w := sealed.NewWriter(&text, word)
			_, _ = io.WriteString(w, body)
			_ = w.Seal(notes)
			return ok + "\r\nbody" + strings.TrimPrefix(text.String(), body)
		}
	}
	plain := func(answer string) func(string) string { return func(string) string { return answer } }
	for name, tt := range map[string]struct {
		answer func(word string) string
		q      BytesQuery
		want   string
	}{
		"all of a file":               {plain(ok + "Content-Length: 4\r\n\r\nbody"), BytesQuery{}, ""},
		"less than announced":         {plain(ok + "Content-Length: 5\r\n\r\nbody"), BytesQuery{}, "after 4 bytes"},
		"no last chunk":               {plain(chunked), BytesQuery{}, "after 4 bytes"},
		"no length, and all":          {plain(ok + whole + "body"), BytesQuery{}, ""},
		"no length, and less":         {plain(ok + whole + "bod"), BytesQuery{}, "after 3 bytes"},
		"no length of a part":         {plain(ok + "Katbox-Size: 9\r\nKatbox-Offset: 5\r\n\r\nbody"), BytesQuery{Offset: 5}, ""},
		"no length of a limited part": {plain(ok + "Katbox-Size: 9\r\nKatbox-Offset: 1\r\n\r\nbody"), BytesQuery{Offset: 1, Limit: 4}, ""},
		"no length of a range":        {plain(ok + "Content-Range: bytes 5-8/9\r\n\r\nbody"), BytesQuery{}, ""},
		"nothing says the length":     {plain(ok + "\r\nbody"), BytesQuery{}, "after 4 bytes"},
		"an archive":                  {seal("body", sealed.Notes{}), BytesQuery{Archive: true}, ""},
		"an archive of other bytes":   {seal("bodies", sealed.Notes{}), BytesQuery{Archive: true}, "4 bytes with the checksum"},
		"an archive of wrong bytes":   {seal("bodx", sealed.Notes{}), BytesQuery{Archive: true}, "4 bytes with the checksum"},
		"an archive without its end":  {plain(chunked + "0\r\n\r\n"), BytesQuery{Archive: true}, "after 0 bytes"},
		"an archive that is not good": {seal("body", sealed.Notes{Fault: "changed"}), BytesQuery{Archive: true}, "changed"},
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
				request, err := http.ReadRequest(bufio.NewReader(conn))
				if err == nil {
					_, _ = io.WriteString(conn, tt.answer(request.Header.Get(sealed.Header)))
				}
			}()
			s, err := Dial(filepath.Join(short, "s")).Bytes(t.Context(), "csi-1", tt.q)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			body, err := io.ReadAll(s)
			if !strings.HasPrefix("body", string(body)) || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q, %v; want an error with %q", body, err, tt.want)
			}
		})
	}
	_, err := Dial("/nowhere/admin.sock").List(t.Context(), Query{})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/admin.sock") || errors.As(err, new(*Error)) {
		t.Errorf("no daemon: %v, want the socket's path", err)
	}
}
