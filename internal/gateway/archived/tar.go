package archived

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/lib/patterns"
	"github.com/katbox/katbox/internal/lib/sparse"
	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/asked"
	"github.com/katbox/katbox/internal/model/sealed"
)

const (
	// mostElsewhere bounds the files outside of a directory that are remembered for hard links in it.
	mostElsewhere = 16 << 10
	// mostNamed is how many names a report has of a kind.
	mostNamed = 8
	// block is what is written at once.
	block = 256 << 10
)

var (
	// errTooLarge: a tar would be longer than it may be.
	errTooLarge = errors.New("the archive is larger than allowed")
	// errBadSkip: a tar has fewer bytes than those that are to be left out.
	errBadSkip = errors.New("the archive has fewer bytes than that")
)

// tarOptions say what a tar contains. They mean what those of internal/node/tarball mean.
type tarOptions struct {
	path     paths.Path
	exclude  []string
	maxBytes int64
	skip     int64
}

// tar writes the tar of a directory, or of a file, to w: the same bytes that the node would have sent, as long as the index says all
// of it. It returns what there is to say of it.
func (x *index) tar(ctx context.Context, w io.Writer, o tarOptions) (sealed.Notes, error) {
	exclude, err := patterns.Parse(o.exclude)
	if err != nil {
		return sealed.Notes{}, err
	}
	again, err := patterns.Parse(o.exclude)
	if err != nil {
		return sealed.Notes{}, err
	}
	top, err := x.stat(ctx, o.path)
	if err != nil {
		return sealed.Notes{}, err
	}
	if top.Type != api.Directory {
		if err := at(o.path, readable(top)); err != nil {
			return sealed.Notes{}, err
		}
	}
	t := &tarWriter{tarOptions: o, index: x, patterns: exclude, others: again, single: top.Type == api.File, w: w, from: x.reader(ctx)}
	defer t.from.close()
	if err := x.each(ctx, t.lookElsewhere); err != nil {
		return sealed.Notes{}, err
	}
	t.names, t.excluded = map[string]string{}, ""
	if err := x.entries(ctx, t.entry); err != nil {
		return sealed.Notes{}, err
	}
	if err := t.write(make([]byte, form.Trailer)); err != nil {
		return sealed.Notes{}, err
	}
	if t.position < o.skip {
		return sealed.Notes{}, fmt.Errorf("resume at %d: %w: %d", o.skip, errBadSkip, t.position)
	}
	return t.notes(), nil
}

// tarWriter is one call of tar.
type tarWriter struct {
	tarOptions
	*index
	// patterns are for the entries, one after the other; others are the same, for any other name.
	patterns, others patterns.Patterns
	// single: it is the tar of a file.
	single bool
	w      io.Writer
	from   *content
	// position is how many bytes the tar has so far. Those before skip are not written.
	position int64
	blocks   bytes.Buffer
	buffer   []byte
	// excluded is the directory at hand that is excluded, with a slash; empty if none is.
	excluded string
	// elsewhere are files that hard links in the tar have the content of, and that are not in it; nil before their entries have come.
	elsewhere map[string]*form.Entry
	// names are the names in the tar of those among them that it has by now, under the name of a link.
	names   map[string]string
	skipped []string
	count   int
}

// inside returns the name of an entry in the tar; false if it is not in it. The names of excluded directories come first.
func (t *tarWriter) inside(e *form.Entry) (string, bool) {
	name := e.Name
	switch {
	case t.single && name != t.path.String():
		return "", false
	case t.single:
		name = t.path.Base()
	case !t.path.IsTop():
		below, ok := strings.CutPrefix(name, t.path.String()+"/")
		if !ok {
			return "", false
		}
		name = below
	}
	if t.excluded != "" && strings.HasPrefix(name, t.excluded) {
		return "", false
	}
	t.excluded = ""
	if t.patterns.Match(name, e.Type == api.Directory) {
		if e.Type == api.Directory {
			t.excluded = name + "/"
		}
		return "", false
	}
	return name, true
}

// lookElsewhere notes the hard links whose file is not in the tar.
func (t *tarWriter) lookElsewhere(e *form.Entry) error {
	name, ok := t.inside(e)
	if !ok || e.Type != api.File || e.Link == "" || t.has(e.Link) {
		return nil
	}
	if t.elsewhere == nil {
		t.elsewhere = map[string]*form.Entry{}
	}
	if t.elsewhere[e.Link] = nil; len(t.elsewhere) > mostElsewhere {
		return fmt.Errorf("%q: it has more than %d hard links to files outside of it; read a directory further up", name, mostElsewhere)
	}
	return nil
}

// has reports whether the tar has a file, by its name alone.
func (t *tarWriter) has(name string) bool {
	below := name
	switch {
	case t.single:
		return name == t.path.String()
	case !t.path.IsTop():
		var ok bool
		if below, ok = strings.CutPrefix(name, t.path.String()+"/"); !ok {
			return false
		}
	}
	for i, c := range below {
		if c == '/' && t.others.Match(below[:i], true) {
			return false
		}
	}
	return !t.others.Match(below, false)
}

// entry writes an entry.
func (t *tarWriter) entry(e *form.Entry) error {
	if _, wanted := t.elsewhere[e.Name]; wanted && e.Type == api.File && e.Link == "" {
		kept := *e
		t.elsewhere[e.Name] = &kept
	}
	name, ok := t.inside(e)
	if !ok {
		return nil
	}
	h := &tar.Header{
		Name: name, Mode: int64(e.Mode & 0o1777), Uid: int(e.UID), Gid: int(e.GID),
		ModTime: time.Unix(e.ModTime.Unix(), int64(e.ModTime.Nanosecond())),
	}
	switch e.Type {
	case api.File:
		return t.file(h, e)
	case api.Directory:
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
	case api.Symlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
	default:
		t.count++
		if len(t.skipped) < mostNamed {
			t.skipped = append(t.skipped, name)
		}
		return nil
	}
	return t.header(h, 0)
}

// file writes a regular file, or a hard link.
func (t *tarWriter) file(h *tar.Header, e *form.Entry) error {
	h.Typeflag = tar.TypeReg
	if e.Link != "" {
		first, elsewhere := t.elsewhere[e.Link]
		link, linked := t.names[e.Link]
		switch {
		case !elsewhere:
			link, linked = strings.TrimPrefix(e.Link, t.path.String()+"/"), true
			if t.path.IsTop() {
				link = e.Link
			}
		case !linked && first == nil:
			return fmt.Errorf("the index of the archive: %w: %q is another name of a file that did not come before", form.ErrForm, e.Name)
		case !linked:
			t.names[e.Link] = h.Name
			// It has the content of the other one.
			e = &form.Entry{Size: first.Size, Content: first.Content, Sparse: first.Sparse, Extents: first.Extents}
		}
		if linked {
			h.Typeflag, h.Linkname = tar.TypeLink, link
			return t.header(h, 0)
		}
	}
	h.Size = e.Size
	if !e.Sparse {
		if err := t.header(h, e.Size); err != nil {
			return err
		}
		return t.stored(e.Content, e.Size)
	}
	extents := make([]sparse.Extent, len(e.Extents))
	data := int64(0)
	for i, x := range e.Extents {
		extents[i] = sparse.Extent{Offset: x.Offset, Length: x.Length}
		data += x.Length
	}
	holes := sparse.AppendMap(nil, extents, e.Size)
	stored := int64(len(holes)) + data
	sparse.SetHeader(h, stored)
	if err := t.header(h, stored); err != nil {
		return err
	}
	if err := t.write(holes); err != nil {
		return err
	}
	return t.stored(e.Content, data)
}

// header writes a header. stored is the size of what follows.
func (t *tarWriter) header(h *tar.Header, stored int64) error {
	if h.Typeflag != tar.TypeReg {
		h.Size = 0
	}
	if h.ModTime.Nanosecond() != 0 {
		h.Format = tar.FormatPAX // Any other rounds the time.
	}
	if !utf8.ValidString(h.Name) || !utf8.ValidString(h.Linkname) {
		if h.PAXRecords == nil {
			h.PAXRecords = map[string]string{}
		}
		h.PAXRecords["hdrcharset"] = "BINARY"
	}
	t.blocks.Reset()
	if err := tar.NewWriter(&t.blocks).WriteHeader(h); err != nil {
		return fmt.Errorf("%q: %w", h.Name, err)
	}
	if err := sparse.Show(t.blocks.Bytes()); err != nil {
		return fmt.Errorf("%q: %w", h.Name, err)
	}
	if t.maxBytes > 0 && int64(t.blocks.Len()+form.Trailer)+sparse.Padded(stored) > t.maxBytes-t.position {
		return fmt.Errorf("%q and what follows: %w: %d bytes", h.Name, errTooLarge, t.maxBytes)
	}
	return t.write(t.blocks.Bytes())
}

// stored writes what the archive has stored from an offset on, and pads it to whole blocks.
func (t *tarWriter) stored(offset, length int64) error {
	padding := sparse.Padded(length) - length
	left := max(0, min(length, t.skip-t.position)) // out
	t.position += left
	offset, length = offset+left, length-left
	if length > 0 {
		if t.buffer == nil {
			t.buffer = make([]byte, block)
		}
		t.from.seek(offset)
		for length > 0 {
			n, err := t.from.Read(t.buffer[:min(int64(len(t.buffer)), length)])
			if n > 0 {
				if _, err := t.w.Write(t.buffer[:n]); err != nil {
					return err
				}
			}
			t.position, length = t.position+int64(n), length-int64(n)
			if err != nil {
				return err
			}
		}
	}
	return t.write(make([]byte, padding))
}

// write appends to the tar, except for what is to be left out.
func (t *tarWriter) write(b []byte) error {
	left := max(0, min(int64(len(b)), t.skip-t.position)) // out
	t.position += int64(len(b))
	if b = b[left:]; len(b) == 0 {
		return nil
	}
	_, err := t.w.Write(b)
	return err
}

// notes returns what there is to say. Of files that changed while they were archived the first few are known by name.
func (t *tarWriter) notes() sealed.Notes {
	notes := sealed.Notes{Skipped: t.count, SkippedRefs: asked.Refs(t.skipped), Unmatched: t.patterns.Unmatched()}
	var changed []string
	for _, name := range t.head.ChangedNames {
		if t.has(name) {
			changed = append(changed, name)
		}
	}
	if len(changed) > 0 || t.head.Changed > len(t.head.ChangedNames) {
		notes.Fault = fmt.Sprintf("%d files of the volume changed while it was archived: %s",
			t.head.Changed, strings.Join(append(asked.Refs(changed), "..."), " "))
	}
	return notes
}
