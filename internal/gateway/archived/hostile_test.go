package archived

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/katbox/katbox/internal/model/api"
)

// TestEntryBehindTheEnd: an index that says a file is where the tar has ended, which anyone who can write to the bucket may put there, is
// an error, and no request that runs for ever.
func TestEntryBehindTheEnd(t *testing.T) {
	s := newStage(t)
	dir := t.TempDir()
	write(t, dir, "small", "text")
	v := s.archive(dir, shown(alpha, 1))
	var index bytes.Buffer
	w, err := zstd.NewWriter(&index)
	must(t, err)
	_, err = io.WriteString(w, `{"archive":{"version":1,"volume":{},"root":{"t":"directory"},"size":2048,"pieces":1,"entries":1}}
{"p":{"l":1,"h":"0000000000000000000000000000000000000000000000000000000000000000"}}
{"e":{"n":"small","t":"file","s":512,"c":10240,"z":10752}}
`)
	must(t, errors.Join(err, w.Close()))
	s.store.Put(v.Archived, index.Bytes())
	c := s.Client(v)
	for what, q := range map[string]api.BytesQuery{
		"whole": {Path: "small"}, "part": {Path: "small", Offset: 100, Limit: 10}, "end": {Path: "small", TailLines: 1},
		"tar": {Path: "small", Archive: true},
	} {
		stream, err := c.Bytes(t.Context(), v.ID, q)
		if err == nil {
			_, err = io.Copy(io.Discard, stream)
			stream.Close()
		}
		if err == nil || what != "tar" && code(err) != http.StatusInternalServerError {
			t.Errorf("%s: %v", what, err)
		}
	}
}
