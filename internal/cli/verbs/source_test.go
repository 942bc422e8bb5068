package verbs

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// cutReader is a reader whose streams end after a few bytes of the hundred that they announce.
type cutReader struct {
	*api.Client
	explained error
}

func (r cutReader) Explain(_ context.Context, _ string, err error) error {
	return errors.Join(r.explained, err)
}

// newCutReader returns the volume of a server that sends that many bytes in each stream.
func newCutReader(t *testing.T, bytes int) (Volume, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		if from := r.Header.Get("Range"); from != "" {
			w.Header().Set("Katbox-Offset", strings.Trim(from, "bytes=-"))
		}
		_, _ = io.WriteString(w, strings.Repeat("x", bytes))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	rt := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server.Listener.Addr().String())
	}}
	t.Cleanup(rt.CloseIdleConnections)
	client := api.NewClient("the daemon", rt)
	return Volume{Reader: cutReader{client, errors.New("explained")}, ID: "csi-1"}, server
}

// TestAStreamIsNotAskedForForEver: neither a daemon that is gone nor an unreadable sector, which cuts
// the stream at the same byte each time.
func TestAStreamIsNotAskedForForEver(t *testing.T) {
	v, server := newCutReader(t, 10)
	in, err := open(t.Context(), v, api.BytesQuery{Path: "log"})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := io.ReadFull(in, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	server.Listener.Close()
	server.CloseClientConnections()
	in.stalled = time.Now().Add(-patience)
	if _, err := in.Read(make([]byte, 100)); !errors.Is(err, api.ErrCut) || !strings.Contains(err.Error(), "explained") {
		t.Errorf("%v, want that the stream was cut, and why it does not go on", err)
	}
}

func TestAStreamThatIsAlwaysCutEnds(t *testing.T) {
	v, _ := newCutReader(t, 0)
	in, err := open(t.Context(), v, api.BytesQuery{Path: "log"})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	in.stalled, in.answered = time.Now().Add(-2*patience), true
	if _, err := in.Read(make([]byte, 100)); !errors.Is(err, api.ErrCut) {
		t.Errorf("%v, want that the stream was cut", err)
	}
}
