package reader

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/check"
)

// TestConnectionThatEndsBeforeTheAnswer is what a reader sees whose volume goes while it asks. It is another failure than
// a daemon that cannot be asked.
func TestConnectionThatEndsBeforeTheAnswer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	_, err = api.Dial(socket).Bytes(t.Context(), "csi-1", api.BytesQuery{Path: "log"})
	if how := failure(err); how != check.Broken {
		t.Errorf("%v is the failure %d, want %d", err, how, check.Broken)
	}
	server.Close()
	_, err = api.Dial(socket).Bytes(t.Context(), "csi-1", api.BytesQuery{Path: "log"})
	if how := failure(err); how != check.Unserved {
		t.Errorf("%v is the failure %d, want %d", err, how, check.Unserved)
	}
}
