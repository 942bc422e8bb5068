package archived

import (
	"fmt"
	"testing"

	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
)

// BenchmarkLargeIndex lists one directory of a volume with 200,000 files, whose index is in memory.
func BenchmarkLargeIndex(b *testing.B) {
	s := newStage(b)
	encoder, err := form.NewEncoder()
	must(b, err)
	const many = 200_000
	at := int64(0)
	entry := func(name string, kind api.EntryType) {
		must(b, encoder.Entry(form.Entry{
			Name: name, Type: kind, Mode: 0o644, ModTime: epoch, Links: 1, Header: at, Content: at + form.Block, End: at + form.Block,
		}))
		at += form.Block
	}
	for i := range many {
		if i%1000 == 0 {
			entry(fmt.Sprintf("directory-%03d", i/1000), api.Directory)
		}
		entry(fmt.Sprintf("directory-%03d/checkpoint-%06d.bin", i/1000, i), api.File)
	}
	size := at + form.Trailer
	pieces := make([]form.Piece, form.Pieces(size))
	for i := range pieces {
		pieces[i].Length = 1
	}
	v := shown(alpha, 1)
	index, err := encoder.Finish(form.Head{Volume: v, Root: form.Entry{Type: api.Directory}, Size: size}, pieces)
	must(b, err)
	v.Archived = key(b, v)
	s.store.Put(v.Archived, index)
	b.ReportMetric(float64(len(index)), "index-bytes")
	c := s.Client(v)
	for b.Loop() {
		list, err := c.Files(b.Context(), v.ID, api.FilesQuery{Path: "directory-100"})
		if err != nil || len(list.Entries) != 1000 {
			b.Fatal(len(list.Entries), err)
		}
	}
}
