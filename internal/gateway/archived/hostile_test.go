package archived

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
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

// TestStalledReader: a client that asks for much and reads nothing keeps no other client out.
func TestStalledReader(t *testing.T) {
	s := newStage(t)
	dir := t.TempDir()
	write(t, dir, "large", string(random(form.PieceSize)))
	v := s.archive(dir, shown(alpha, 1))
	s.patience = time.Millisecond // no stream ends meanwhile
	begin := func(user string) error {
		stream, err := s.Client(v).OnBehalf(user, "").Bytes(t.Context(), v.ID, api.BytesQuery{Path: "large"})
		if err == nil {
			t.Cleanup(func() { stream.Close() })
		}
		return err
	}
	for i := range mostOfReader {
		must(t, begin("mallory"))
		must(t, begin(fmt.Sprint("system:serviceaccount:alpha:", i)))
	}
	for _, user := range []string{"mallory", "system:serviceaccount:alpha:other"} {
		if err := begin(user); code(err) != http.StatusTooManyRequests || !strings.Contains(err.Error(), "3 of them yours") {
			t.Errorf("%s: %v", user, err)
		}
	}
	must(t, begin("alice"))
	if mostPieceBytes < mostStreaming*form.MaxPiece {
		t.Errorf("%d bytes do not hold a piece for each of %d requests", int64(mostPieceBytes), mostStreaming)
	}
}
