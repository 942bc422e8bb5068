package archived

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/katbox/katbox/internal/model/api"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// top is the top directory of a volume.
var top = Entry{Type: api.Directory, Size: 4096, Mode: 0o1777, ModTime: time.Unix(1, 2), Links: 2}

// someEntries are one of each kind, side by side.
func someEntries() []Entry {
	modified := time.Unix(1_700_000_000, 123_456_789)
	entries := []Entry{
		{Name: "plain", Type: api.File, Size: 1000, Content: 512, End: 1536, Links: 2},
		{Name: "empty", Type: api.File, Content: 512, End: 512},
		{Name: "dir", Type: api.Directory, Size: 4096, Content: 512, End: 512},
		{Name: "dir/not\xffutf8", Type: api.File, Size: 513, Content: 1024, End: 2048},
		{Name: "dir/deep", Type: api.Directory, Content: 512, End: 512},
		{Name: "dir/deep/ä\n\"<&>", Type: api.Symlink, Link: "\xfe", Size: 1, Content: 512, End: 512},
		{Name: "dir/hard", Type: api.File, Link: "plain", Size: 1000, Content: 512, End: 512, Links: 2},
		{Name: "holes", Type: api.File, Size: 1 << 30, Content: 1536, End: 2048, Sparse: true,
			Extents: []Extent{{4096, 100}, {1 << 20, 12}, {1<<30 - 1, 1}}},
		{Name: "hole", Type: api.File, Size: 1 << 30, Content: 1536, End: 1536, Sparse: true, Extents: []Extent{}},
		{Name: "fifo", Type: api.FIFO, Mode: 0o4755},
		{Name: strings.Repeat("n", MaxName), Type: api.File, Size: 20 << 20, Content: 5120, End: 5120 + 20<<20},
	}
	at := int64(0)
	for i := range entries {
		e := &entries[i]
		e.Header, e.Content, e.End = at, at+e.Content, at+e.End
		e.ModTime, e.UID, e.GID, e.Allocated, e.Mode = modified, 1000, 4_000_000_000, 8192, e.Mode|0o640
		at = e.End
	}
	return entries
}

// encoded is the index of some entries.
func encoded(t testing.TB, entries []Entry) ([]byte, Head, []Piece) {
	t.Helper()
	e, err := NewEncoder()
	must(t, err)
	size := int64(Trailer)
	for _, entry := range entries {
		must(t, e.Entry(entry))
		size = entry.End + Trailer
	}
	pieces := make([]Piece, Pieces(size))
	for i := range pieces {
		pieces[i] = Piece{Length: int64(i + 1), Sum: SumOf([]byte{byte(i)})}
	}
	bytes := int64(42)
	h := Head{Volume: api.Volume{ID: "v", Bytes: &bytes}, Root: top, Size: size, Pieces: len(pieces), Entries: len(entries),
		Skipped: 1, Changed: 1, ChangedNames: []string{"not\xffutf8"}}
	object, err := e.Finish(h, pieces)
	must(t, err)
	return object, h, pieces
}

// decoded reads an index to its end.
func decoded(object []byte) (h Head, pieces []Piece, entries []Entry, err error) {
	d, err := NewDecoder(bytes.NewReader(object))
	if err != nil {
		return h, nil, nil, err
	}
	defer d.Close()
	for {
		e, err := d.Next()
		if errors.Is(err, io.EOF) {
			return d.Head(), d.Pieces(), entries, nil
		}
		if err != nil {
			return h, nil, nil, err
		}
		entries = append(entries, e)
	}
}

// TestIndexComesBack: with names of any bytes.
func TestIndexComesBack(t *testing.T) {
	for _, entries := range [][]Entry{someEntries(), nil} {
		object, wantHead, wantPieces := encoded(t, entries)
		h, pieces, got, err := decoded(object)
		must(t, err)
		if !reflect.DeepEqual(h, wantHead) {
			t.Errorf("%+v\nwant %+v", h, wantHead)
		}
		if !slices.Equal(pieces, wantPieces) {
			t.Errorf("pieces %v, want %v", pieces, wantPieces)
		}
		if !reflect.DeepEqual(got, entries) {
			t.Errorf("%+v\nwant %+v", got, entries)
		}
	}
}

// TestBadEntriesAreRefused: by who writes an index, with the rules of who reads it.
func TestBadEntriesAreRefused(t *testing.T) {
	for name, bad := range map[string]Entry{
		"no name":            {Type: api.File, Content: 512, End: 512},
		"absolute":           {Name: "/a", Type: api.File, Content: 512, End: 512},
		"upwards":            {Name: "..", Type: api.File, Content: 512, End: 512},
		"upwards further":    {Name: "d/..", Type: api.File, Content: 512, End: 512},
		"here":               {Name: "d/.", Type: api.File, Content: 512, End: 512},
		"slash at the end":   {Name: "d/", Type: api.Directory, Content: 512, End: 512},
		"two slashes":        {Name: "d//a", Type: api.File, Content: 512, End: 512},
		"NUL":                {Name: "a\x00", Type: api.File, Content: 512, End: 512},
		"no such directory":  {Name: "e/a", Type: api.File, Content: 512, End: 512},
		"below a file":       {Name: "f/a", Type: api.File, Content: 512, End: 512},
		"like a directory":   {Name: "dd/a", Type: api.File, Content: 512, End: 512},
		"long":               {Name: strings.Repeat("n", MaxName+1), Type: api.File, Content: 512, End: 512},
		"long target":        {Name: "l", Type: api.Symlink, Link: strings.Repeat("n", MaxName+1), Content: 512, End: 512},
		"NUL in a target":    {Name: "l", Type: api.Symlink, Link: "\x00", Content: 512, End: 512},
		"another type":       {Name: "a", Type: "door", Content: 512, End: 512},
		"negative size":      {Name: "a", Type: api.File, Size: -1, Content: 512, End: 512},
		"mode":               {Name: "a", Type: api.File, Mode: 0o10000, Content: 512, End: 512},
		"content before":     {Name: "a", Type: api.File, Content: -512, End: 512},
		"ends before":        {Name: "a", Type: api.File, Content: 512, End: 0},
		"no block":           {Name: "a", Type: api.File, Content: 513, End: 1025},
		"content too short":  {Name: "a", Type: api.File, Size: 1, Content: 512, End: 512},
		"content too long":   {Name: "a", Type: api.File, Size: 1, Content: 512, End: 1536},
		"directory with it":  {Name: "a", Type: api.Directory, Content: 512, End: 1024},
		"FIFO with it":       {Name: "a", Type: api.FIFO, Content: 512, End: 512},
		"too far":            {Name: "a", Type: api.File, Size: MaxPieces * PieceSize, Content: 512, End: 512 + MaxPieces*PieceSize},
		"extents beyond":     {Name: "a", Type: api.File, Size: 9, Sparse: true, Extents: []Extent{{8, 2}}, Content: 512, End: 1024},
		"extents overlap":    {Name: "a", Type: api.File, Size: 9, Sparse: true, Extents: []Extent{{0, 2}, {1, 2}}, Content: 512, End: 1024},
		"extents before":     {Name: "a", Type: api.File, Size: 9, Sparse: true, Extents: []Extent{{-1, 2}}, Content: 512, End: 1024},
		"empty extent":       {Name: "a", Type: api.File, Size: 9, Sparse: true, Extents: []Extent{{1, 0}}, Content: 512, End: 512},
		"extents overflow":   {Name: "a", Type: api.File, Size: 9, Sparse: true, Extents: []Extent{{8, 1<<63 - 1}}, Content: 512, End: 1024},
		"directory of holes": {Name: "a", Type: api.Directory, Sparse: true, Content: 512, End: 512},
		"too many extents": {Name: "a", Type: api.File, Size: 1 << 40, Sparse: true, Extents: make([]Extent, MaxExtents+1),
			Content: 512, End: 512},
	} {
		e, err := NewEncoder()
		must(t, err)
		must(t, e.Entry(Entry{Name: "d", Type: api.Directory, Content: 512, End: 512}))
		must(t, e.Entry(Entry{Name: "f", Type: api.File, Header: 512, Content: 1024, End: 1024}))
		bad.Header, bad.Content, bad.End = 1024, bad.Content+1024, bad.End+1024
		if err := e.Entry(bad); !errors.Is(err, ErrForm) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e, err := NewEncoder()
	must(t, err)
	if err := e.Entry(Entry{Name: "a", Type: api.File, Header: 512, Content: 1024, End: 1024}); !errors.Is(err, ErrForm) {
		t.Errorf("a gap: %v", err)
	}
}

// lines is an index with these lines.
func lines(t testing.TB, all ...string) []byte {
	t.Helper()
	var object bytes.Buffer
	w, err := zstd.NewWriter(&object)
	must(t, err)
	_, err = io.WriteString(w, strings.Join(all, "\n"))
	must(t, errors.Join(err, w.Close()))
	return object.Bytes()
}

// TestHostileIndexes: what anyone may have put into the bucket ends in an error, and takes little memory.
func TestHostileIndexes(t *testing.T) {
	const (
		head  = `{"archive":{"version":1,"volume":{},"root":{"t":"directory"},"size":%d,"pieces":%d,"entries":%d}}`
		piece = `{"p":{"l":1,"h":"0000000000000000000000000000000000000000000000000000000000000000"}}`
		file  = `{"e":{"n":"a","t":"file","c":512,"z":512}}`
	)
	good := fmt.Sprintf(head, 1536, 1, 1)
	if _, _, _, err := decoded(lines(t, good, piece, file)); err != nil {
		t.Fatal(err)
	}
	whole, _, _ := encoded(t, someEntries())
	later := strings.Replace(good, `"version":1`, `"version":2`, 1)
	for name, object := range map[string][]byte{
		"empty":               {},
		"no zstd":             []byte("<html>"),
		"cut":                 whole[:len(whole)-5],
		"no head":             lines(t, piece),
		"no version":          lines(t, `{"archive":{}}`),
		"no line":             lines(t, "x"),
		"later version":       lines(t, later, piece, file),
		"no piece":            lines(t, good, file),
		"no entry":            lines(t, good, piece),
		"two heads":           lines(t, good, good),
		"more entries":        lines(t, good, piece, file, file),
		"more pieces":         lines(t, good, piece, piece, file),
		"another size":        lines(t, fmt.Sprintf(head, 2048, 1, 1), piece, file),
		"too few pieces":      lines(t, fmt.Sprintf(head, 1<<30, 1, 1), piece, file),
		"too many pieces":     lines(t, fmt.Sprintf(head, int64(1)<<50, 1<<27, 1), piece),
		"negative":            lines(t, fmt.Sprintf(head, -1536, 0, -1)),
		"too many entries":    lines(t, fmt.Sprintf(head, 1536, 1, MaxEntries+1), piece, file),
		"long piece":          lines(t, good, strings.Replace(piece, `"l":1`, `"l":100000000`, 1), file),
		"no sum":              lines(t, good, `{"p":{"l":1,"h":"00"}}`, file),
		"a line without end":  lines(t, `{"archive":{"version":1,"x":"`+strings.Repeat("x", maxLine)+`"}}`),
		"a bomb":              bomb(t, MaxIndexText+1),
		"a bomb behind":       append(lines(t, good, piece, file+"\n"), bomb(t, MaxIndexText)...),
		"too much compressed": noise(t, MaxIndex+1<<20),
		"large window":        windowed(t),
	} {
		if _, _, _, err := decoded(object); err == nil {
			t.Errorf("%s: no error", name)
		} else if name == "later version" && !errors.Is(err, ErrVersion) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEntryBehindTheEnd: it is refused itself. Who looks for it alone never reads what the whole of the entries says.
func TestEntryBehindTheEnd(t *testing.T) {
	const (
		head  = `{"archive":{"version":1,"volume":{},"root":{"t":"directory"},"size":2048,"pieces":1,"entries":%d}}`
		piece = `{"p":{"l":1,"h":"0000000000000000000000000000000000000000000000000000000000000000"}}`
		fits  = `{"e":{"n":"a","t":"file","s":512,"c":512,"z":1024}}`
		far   = `{"e":{"n":"b","t":"file","s":512,"c":10240,"z":10752}}`
	)
	for want, entries := range [][]string{{far}, {fits, far}} {
		all := append([]string{fmt.Sprintf(head, len(entries)), piece}, entries...)
		d, err := NewDecoder(bytes.NewReader(lines(t, all...)))
		must(t, err)
		defer d.Close()
		got := 0
		for ; err == nil; got++ {
			_, err = d.Next()
		}
		if got-1 != want || !errors.Is(err, ErrForm) {
			t.Errorf("%d entries, then %v; want %d", got-1, err, want)
		}
	}
}

// bomb is n line breaks, which take almost no room.
func bomb(t testing.TB, n int) []byte {
	t.Helper()
	var object bytes.Buffer
	w, err := zstd.NewWriter(&object, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	must(t, err)
	for chunk := bytes.Repeat([]byte(" "), 1<<16); n > 0; n -= len(chunk) {
		_, err = w.Write(chunk[:min(n, len(chunk))])
		must(t, err)
	}
	must(t, w.Close())
	return object.Bytes()
}

// noise is a line of n bytes that zstd cannot shorten, in many lines.
func noise(t testing.TB, n int) []byte {
	t.Helper()
	var object bytes.Buffer
	w, err := zstd.NewWriter(&object, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	must(t, err)
	rng := rand.NewChaCha8([32]byte{})
	_, err = io.Copy(w, io.LimitReader(rng, int64(n)))
	must(t, errors.Join(err, w.Close()))
	return object.Bytes()
}

// windowed is an index whose reader would need 64 MiB at once.
func windowed(t testing.TB) []byte {
	t.Helper()
	var object bytes.Buffer
	w, err := zstd.NewWriter(&object, zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false))
	must(t, err)
	_, err = w.Write(bytes.Repeat([]byte("x"), 4<<20))
	must(t, errors.Join(err, w.Close()))
	return object.Bytes()
}

// TestPieces: a piece comes back, one that was changed does not, and no more than it may have is expanded.
func TestPieces(t *testing.T) {
	c, err := NewCompressor()
	must(t, err)
	x, err := NewExpander(2)
	must(t, err)
	defer x.Close()
	rng := rand.NewChaCha8([32]byte{})
	random := make([]byte, PieceSize)
	_, err = rng.Read(random)
	must(t, err)
	for name, piece := range map[string][]byte{
		"zeros": make([]byte, PieceSize), "random": random, "short": []byte("x"), "text": bytes.Repeat([]byte("hello, "), 100_000),
	} {
		object := c.Compress(nil, piece)
		if len(object) > MaxPiece {
			t.Errorf("%s: the object has %d bytes", name, len(object))
		}
		if again := c.Compress(nil, piece); !bytes.Equal(again, object) {
			t.Errorf("%s: another object of the same bytes", name)
		}
		got, err := x.Expand(nil, object, int64(len(piece)))
		if err != nil || !bytes.Equal(got, piece) {
			t.Errorf("%s: %v, or other bytes", name, err)
		}
		for _, length := range []int64{int64(len(piece)) - 1, int64(len(piece)) + 1, PieceSize + 1, -1} {
			if _, err := x.Expand(nil, object, length); !errors.Is(err, ErrForm) {
				t.Errorf("%s: %d bytes are wanted: %v", name, length, err)
			}
		}
		if _, err := x.Expand(nil, object[:len(object)/2], int64(len(piece))); err == nil {
			t.Errorf("%s: half an object is one", name)
		}
	}
	if _, err := x.Expand(nil, bomb(t, 1<<26), PieceSize); !errors.Is(err, ErrForm) {
		t.Errorf("a bomb: %v", err)
	}
}
