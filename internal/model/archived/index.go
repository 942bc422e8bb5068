package archived

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/katbox/katbox/internal/model/api"
)

// Head is the first line of an index.
type Head struct {
	// Volume is the volume as the node described it. It is a word of the node: whose it is, the key says.
	Volume api.Volume
	// Root is the top directory, which is no entry of the tar. It has no name.
	Root Entry
	// Size is that of the tar.
	Size int64
	// Pieces and Entries are how many there are.
	Pieces, Entries int
	// Skipped counts the entries that a tar cannot hold; Changed the files that changed while they were copied. Their content is
	// that of some moment, with zeros for what was missing.
	Skipped, Changed int
	// ChangedNames are the first few of the latter. They may hold any byte but NUL.
	ChangedNames []string
}

// Entry is a name in an archived volume. What cannot be in a tar, such as a FIFO, is an entry that takes no room in it.
type Entry struct {
	// Name is the path from the top of the volume. It and Link may hold any byte but NUL.
	Name string
	Type api.EntryType
	// Link is where a symbolic link points to. Of a [api.File] it is the name of an entry that came before, which is the
	// same file and has its content: this entry is a hard link.
	Link string
	// Size, Allocated, Mode (with setuid, setgid and sticky), owners, ModTime and Links are those of [api.Entry].
	Size, Allocated int64
	Mode            uint32
	UID, GID        uint32
	ModTime         time.Time
	Links           uint64
	// Header is where the entry begins in the tar, Content where what it contains does, and End where the next one begins.
	// The content of a file with holes begins behind the map of them.
	Header, Content, End int64
	// Sparse: the file has holes. Then Extents are the parts with data, which follow one another at Content.
	Sparse  bool
	Extents []Extent
}

// Extent is a part of a file that holds data, in bytes.
type Extent struct{ Offset, Length int64 }

// Piece is an object of the content.
type Piece struct {
	// Length is that of the object, Sum its SHA-256.
	Length int64 `json:"l"`
	Sum    Sum   `json:"h"`
}

// line is a line of an index: one of its fields is set.
type line struct {
	Head  *headLine  `json:"archive,omitempty"`
	Piece *Piece     `json:"p,omitempty"`
	Entry *entryLine `json:"e,omitempty"`
}

type headLine struct {
	Version      int        `json:"version"`
	Volume       api.Volume `json:"volume"`
	Root         entryLine  `json:"root"`
	Size         int64      `json:"size"`
	Pieces       int        `json:"pieces"`
	Entries      int        `json:"entries"`
	Skipped      int        `json:"skipped,omitempty"`
	Changed      int        `json:"changed,omitempty"`
	ChangedNames []text     `json:"changedNames,omitempty"`
}

// entryLine is an Entry. Its Header is the End of the one before.
type entryLine struct {
	Name      text          `json:"n,omitzero"`
	Type      api.EntryType `json:"t"`
	Link      text          `json:"to,omitzero"`
	Size      int64         `json:"s,omitempty"`
	Allocated int64         `json:"a,omitempty"`
	Mode      uint32        `json:"m,omitempty"`
	UID       uint32        `json:"u,omitempty"`
	GID       uint32        `json:"g,omitempty"`
	// Seconds and Nanos are the ModTime.
	Seconds int64  `json:"mt,omitempty"`
	Nanos   int32  `json:"ns,omitempty"`
	Links   uint64 `json:"nl,omitempty"`
	Content int64  `json:"c,omitempty"`
	End     int64  `json:"z,omitempty"`
	// Extents are there for a file with holes, even if it has no data: pairs of offset and length.
	Extents *[][2]int64 `json:"x,omitempty"`
}

// text is a string that may hold any byte. One that is no UTF-8 is an object with its bytes in base64.
type text string

type rawText struct {
	Bytes []byte `json:"b"`
}

// MarshalJSON returns a string, or an object.
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(rawText{[]byte(t)})
}

// UnmarshalJSON takes both.
func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var raw rawText
		err := json.Unmarshal(b, &raw)
		*t = text(raw.Bytes)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}

func (h *Head) line() *headLine {
	l := &headLine{
		Version: version, Volume: h.Volume, Root: *h.Root.line(), Size: h.Size, Pieces: h.Pieces, Entries: h.Entries,
		Skipped: h.Skipped, Changed: h.Changed,
	}
	l.Root.Name = ""
	for _, name := range h.ChangedNames {
		l.ChangedNames = append(l.ChangedNames, text(name))
	}
	return l
}

func (l *headLine) head() Head {
	h := Head{
		Volume: l.Volume, Root: l.Root.entry(0), Size: l.Size, Pieces: l.Pieces, Entries: l.Entries, Skipped: l.Skipped, Changed: l.Changed,
	}
	h.Root.Name = ""
	for _, name := range l.ChangedNames {
		h.ChangedNames = append(h.ChangedNames, string(name))
	}
	return h
}

// check checks a head by itself.
func (h *Head) check() error {
	switch {
	case h.Pieces > MaxPieces:
		return fmt.Errorf("%w: it has more than %d pieces", ErrTooLarge, MaxPieces)
	case h.Entries > MaxEntries:
		return fmt.Errorf("%w: it has more than %d entries", ErrTooLarge, MaxEntries)
	case h.Size < Trailer, h.Size%Block != 0, h.Entries < 0, h.Skipped < 0, h.Changed < 0:
		return fmt.Errorf("%w: it has %d entries in a tar of %d bytes", ErrForm, h.Entries, h.Size)
	case int64(h.Pieces) != Pieces(h.Size):
		return fmt.Errorf("%w: it has %d pieces, not %d", ErrForm, h.Pieces, Pieces(h.Size))
	case h.Root.Type != api.Directory, h.Root.Mode > 0o7777:
		return fmt.Errorf("%w: its top is no directory", ErrForm)
	}
	return nil
}

func (e *Entry) line() *entryLine {
	l := &entryLine{
		Name: text(e.Name), Type: e.Type, Link: text(e.Link), Size: e.Size, Allocated: e.Allocated, Mode: e.Mode, UID: e.UID, GID: e.GID,
		Seconds: e.ModTime.Unix(), Nanos: int32(e.ModTime.Nanosecond()), Links: e.Links, Content: e.Content, End: e.End,
	}
	if e.Sparse {
		pairs := make([][2]int64, len(e.Extents))
		for i, x := range e.Extents {
			pairs[i] = [2]int64{x.Offset, x.Length}
		}
		l.Extents = &pairs
	}
	return l
}

func (l *entryLine) entry(header int64) Entry {
	e := Entry{
		Name: string(l.Name), Type: l.Type, Link: string(l.Link), Size: l.Size, Allocated: l.Allocated, Mode: l.Mode, UID: l.UID, GID: l.GID,
		ModTime: time.Unix(l.Seconds, int64(l.Nanos)), Links: l.Links, Header: header, Content: l.Content, End: l.End,
	}
	if l.Extents != nil {
		e.Sparse, e.Extents = true, make([]Extent, len(*l.Extents))
		for i, x := range *l.Extents {
			e.Extents[i] = Extent{x[0], x[1]}
		}
	}
	return e
}

// order checks entries as they come.
type order struct {
	// end is that of the last entry, most what it may be at most, and dir the directory that the next one may be in, or in one above;
	// "" is the top.
	end, most int64
	dir       string
	count     int
}

// next checks that an entry may follow.
func (o *order) next(e *Entry) error {
	if o.count++; o.count > MaxEntries {
		return fmt.Errorf("%w: it has more than %d entries", ErrTooLarge, MaxEntries)
	}
	if len(e.Name) > MaxName || len(e.Link) > MaxName {
		return fmt.Errorf("%w: %.80q... is longer than %d bytes, or its target is", ErrTooLarge, e.Name, MaxName)
	}
	parent := ""
	if i := strings.LastIndexByte(e.Name, '/'); i >= 0 {
		parent = e.Name[:i]
	}
	base := strings.TrimPrefix(e.Name[len(parent):], "/")
	switch {
	case base == "", base == ".", base == "..", strings.ContainsRune(e.Name, 0), strings.HasPrefix(e.Name, "/"):
		return fmt.Errorf("%w: %.300q is no name of an entry", ErrForm, e.Name)
	case parent != "" && parent != o.dir && !strings.HasPrefix(o.dir, parent+"/"):
		return fmt.Errorf("%w: %.300q comes before the directory that it is in", ErrForm, e.Name)
	case e.Header != o.end:
		return fmt.Errorf("%w: %.300q does not begin where the entry before it ends", ErrForm, e.Name)
	case e.End > o.most:
		return fmt.Errorf("%w: %.300q ends at %d, and the last entry at %d", ErrForm, e.Name, e.End, o.most)
	}
	if err := e.check(); err != nil {
		return fmt.Errorf("%.300q: %w", e.Name, err)
	}
	if o.end, o.dir = e.End, parent; e.Type == api.Directory {
		o.dir = e.Name
	}
	return nil
}

// check checks an entry by itself.
func (e *Entry) check() error {
	switch {
	case e.Size < 0, e.Allocated < 0, e.Mode > 0o7777, e.ModTime.Nanosecond() < 0:
		return fmt.Errorf("%w: its size or its mode cannot be", ErrForm)
	case e.Content < e.Header, e.End < e.Content, e.Header%Block != 0, e.Content%Block != 0, e.End%Block != 0:
		return fmt.Errorf("%w: it is not from %d over %d to %d in the tar", ErrForm, e.Header, e.Content, e.End)
	case strings.ContainsRune(e.Link, 0):
		return fmt.Errorf("%w: its target has a NUL", ErrForm)
	}
	stored := int64(0)
	switch e.Type {
	case api.File:
		if e.Link != "" {
			break
		}
		if !e.Sparse {
			stored = e.Size
			break
		}
		var err error
		if stored, err = e.data(); err != nil {
			return err
		}
	case api.Directory, api.Symlink:
	case api.FIFO, api.Socket, api.Block, api.Char, api.Mount:
		if e.End != e.Header {
			return fmt.Errorf("%w: a %s is not in a tar", ErrForm, e.Type)
		}
	default:
		return fmt.Errorf("%w: its type is %.20q", ErrForm, e.Type)
	}
	if e.End-e.Content < stored || e.End-e.Content-stored >= Block {
		return fmt.Errorf("%w: it has %d bytes of content, and room for %d", ErrForm, stored, e.End-e.Content)
	}
	if e.Sparse && (e.Type != api.File || e.Link != "") {
		return fmt.Errorf("%w: it has extents, and is no file", ErrForm)
	}
	return nil
}

// data checks the extents, and returns how long they are together.
func (e *Entry) data() (stored int64, err error) {
	if len(e.Extents) > MaxExtents {
		return 0, fmt.Errorf("%w: it has more than %d extents", ErrForm, MaxExtents)
	}
	end := int64(0)
	for _, x := range e.Extents {
		if x.Offset < end || x.Offset > e.Size || x.Length <= 0 || x.Length > e.Size-x.Offset {
			return 0, fmt.Errorf("%w: it has an extent of %d bytes at %d", ErrForm, x.Length, x.Offset)
		}
		end = x.Offset + x.Length
		stored += x.Length
	}
	return stored, nil
}
