package reader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/history"
)

// mostLevels is how many levels of directories a list may have.
const mostLevels = 16

// entryTypes are the types as the driver calls them.
var entryTypes = map[fs.FileMode]api.EntryType{
	0: api.File, fs.ModeDir: api.Directory, fs.ModeSymlink: api.Symlink, fs.ModeNamedPipe: api.FIFO, fs.ModeSocket: api.Socket,
}

// there reports whether the data directory is there.
func (s *subject) there() bool {
	_, err := os.Lstat(s.volume.Data)
	return !errors.Is(err, fs.ErrNotExist)
}

// checkFiles lists the files of a volume, page by page, and compares all.
func (p *person) checkFiles(ctx context.Context, s *subject, things []content.Written) error {
	depth := 1 + p.random.IntN(mostLevels)
	wanted := make(map[string]content.Written)
	for _, w := range things {
		if w.Depth <= depth {
			wanted[w.Path] = w
		}
	}
	q := api.FilesQuery{Depth: depth, Limit: 1 + len(wanted)/(1+p.random.IntN(4))}
	began := time.Now()
	var last []string
	for {
		page, err := p.filesPage(ctx, s, q)
		if err != nil {
			return p.judge(ctx, s, began, "a list of the files", err)
		}
		for _, e := range page.Entries {
			path, err := url.PathUnescape(e.Ref)
			elements := strings.Split(path, "/")
			if err != nil || slices.Compare(elements, last) <= 0 {
				p.wrong(history.ReadsTrue, s, "in the list of the files %q comes after %q", e.Ref, strings.Join(last, "/"))
				return errOver
			}
			last = elements
			if err := p.checkEntry(s, wanted, path, e); err != nil {
				return err
			}
			delete(wanted, path)
		}
		if q.Continue = page.Continue; q.Continue == "" {
			break
		}
	}
	for path := range wanted {
		p.wrong(history.ReadsTrue, s, "the list of the files, %d levels deep, does not have %q and %d more", depth, path, len(wanted)-1)
		return errOver
	}
	return nil
}

func (p *person) filesPage(ctx context.Context, s *subject, q api.FilesQuery) (api.FileList, error) {
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	return p.client.Files(limited, s.volume.ID, q)
}

// checkEntry compares one entry with what was written.
func (p *person) checkEntry(s *subject, wanted map[string]content.Written, path string, e api.Entry) error {
	w, known := wanted[path]
	if s.isMount(path) {
		return p.checkMount(s, path, e)
	}
	if !known {
		p.wrong(history.ReadsTrue, s, "the list of the files has %q, which no pod wrote", path)
		return errOver
	}
	var differs string
	switch {
	case e.Type != entryTypes[w.Type]:
		differs = fmt.Sprintf("a %s instead of a %s", e.Type, entryTypes[w.Type])
	case w.Type == 0 && e.Size != w.Size:
		differs = fmt.Sprintf("%d bytes long instead of %d", e.Size, w.Size)
	case w.Type == 0 && e.Links != uint64(w.Links):
		differs = fmt.Sprintf("a file with %d names instead of %d", e.Links, w.Links)
	case w.Type == fs.ModeSymlink && e.Target != w.Target:
		differs = fmt.Sprintf("a symlink to %.100q instead of %.100q", e.Target, w.Target)
	case w.Type != fs.ModeSymlink && e.Mode != fmt.Sprintf("%04o", w.Mode):
		differs = fmt.Sprintf("of mode %s instead of %04o", e.Mode, w.Mode)
	case w.Sparse && e.Allocated > e.Size/2:
		differs = fmt.Sprintf("a sparse file that takes %d bytes of %d on the disk", e.Allocated, e.Size)
	default:
		return nil
	}
	p.wrong(history.ReadsTrue, s, "in the list of the files %q is %s", path, differs)
	return errOver
}

// checkMount looks at the directory on which something may be mounted: nothing of
// what is mounted may be seen.
func (p *person) checkMount(s *subject, path string, e api.Entry) error {
	if path != mountName {
		p.wrong(history.ReadsInside, s, "the list of the files has %q, which is in a mount", path)
		return errOver
	}
	if e.Type != api.Mount && e.Type != api.Directory {
		p.wrong(history.ReadsTrue, s, "in the list of the files %q is a %s", path, e.Type)
		return errOver
	}
	return nil
}
