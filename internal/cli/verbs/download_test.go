package verbs

import (
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// TestACutDownloadIsNotWhole: what net/http says of a connection that broke is io.ErrUnexpectedEOF, and of a proxy that hung up
// it wraps io.EOF. Neither is the end of a file, and only an archive itself says how long it is.
func TestACutDownloadIsNotWhole(t *testing.T) {
	write := func(from io.Reader) error {
		f, err := os.Create(filepath.Join(t.TempDir(), "partial"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return (&download{file: f}).write(from, 0)
	}
	for what, q := range map[string]api.BytesQuery{"file": {Path: "log"}, "archive": {Archive: true}} {
		v, _ := newCutReader(t, 0)
		in, err := open(t.Context(), v, q)
		if err != nil {
			t.Fatal(err)
		}
		in.stalled, in.answered = time.Now().Add(-2*patience), true
		if err := write(in); !errors.Is(err, api.ErrCut) {
			t.Errorf("%s: %v, want that the stream was cut", what, err)
		}
		in.Close()
	}
	hungUp := &url.Error{Op: "Get", URL: "http://127.0.0.1:8001", Err: io.EOF}
	if err := write(iotest.ErrReader(hungUp)); !errors.Is(err, hungUp) {
		t.Errorf("%v, want %v", err, hungUp)
	}
}
