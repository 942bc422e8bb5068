package archiver

import (
	"errors"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/tarball"
)

// index uploads the index: from then on the volume is archived. It returns until when.
func (c *copying) index(head archived.Head) (until time.Time, err error) {
	object, err := c.entries.Finish(head, c.done)
	if err != nil {
		return until, err
	}
	word := c.word
	word.Index = &api.UploadIndex{
		Length: int64(len(object)), SHA256: archived.SumOf(object).String(), Pieces: len(c.done), Shown: c.shown,
	}
	answer, err := c.put(c.ctx, word, object)
	switch {
	case err != nil:
		return until, err
	case answer.Until.IsZero():
		return until, failForGood(refused, errors.New("the gateway does not say until when the archive keeps the volume"))
	case !answer.There:
		c.cfg.Metrics.ArchiveUploaded(len(object))
	}
	return answer.Until, nil
}

// types are those of entries in an index.
var types = map[files.Type]api.EntryType{
	files.Regular: api.File, files.Directory: api.Directory, files.Symlink: api.Symlink, files.FIFO: api.FIFO,
	files.Socket: api.Socket, files.Block: api.Block, files.Char: api.Char, files.Mount: api.Mount,
}

// entryOf returns an entry as an index has it.
func entryOf(p tarball.Placed) archived.Entry {
	e := archived.Entry{
		Name: p.Name, Type: types[p.Type], Link: p.Target, Size: p.Size, Allocated: p.Allocated, Mode: p.Mode, UID: p.UID, GID: p.GID,
		ModTime: p.ModTime, Links: p.Links, Header: p.Header, Content: p.Content, End: p.End, Sparse: p.Sparse,
	}
	if p.HardLink != "" {
		e.Link = p.HardLink
	}
	for _, x := range p.Extents {
		e.Extents = append(e.Extents, archived.Extent(x))
	}
	return e
}
