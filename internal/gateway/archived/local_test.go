package archived

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/katbox/katbox/internal/model/api"
)

// TestPanic: a bug in what answers a request ends that request, and not the gateway with all others. The log says where it is.
func TestPanic(t *testing.T) {
	for what, begins := range map[string]bool{"before the header": false, "in the middle": true} {
		var logged []string
		log := funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
		c := api.NewClient(name, local{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if begins {
				w.Header().Set(api.HeaderLevel, api.LevelHolds)
				_, _ = w.Write([]byte("one"))
			}
			panic(errors.New("no such piece"))
		}), log})
		stream, err := c.Bytes(t.Context(), "v", api.BytesQuery{Path: "file"})
		if err == nil {
			_, err = io.Copy(io.Discard, stream)
			stream.Close()
		}
		if err == nil {
			t.Errorf("%s: no error", what)
		}
		if len(logged) != 1 || !strings.Contains(logged[0], "no such piece") || !strings.Contains(logged[0], "local_test.go") {
			t.Errorf("%s: logged %q", what, logged)
		}
	}
}
