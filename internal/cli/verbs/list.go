package verbs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/terminal"
)

const (
	// levels is how many levels of directories one request lists.
	levels = 16
	// namesAtOnce is how many names one request lists. The daemon reads a directory of as many names as a whole for each.
	namesAtOnce = 10_000
)

// The values of ListOptions.Output.
const (
	OutputTable = ""
	OutputWide  = "wide"
	OutputJSON  = "json"
	OutputName  = "name"
)

// ErrEnough ends a walk through a list.
var ErrEnough = errors.New("enough")

// ListOptions say how files are listed.
type ListOptions struct {
	// Long shows mode, owner, size and time; Recursive lists all that is below.
	Long, Recursive bool
	// Hidden lists names that begin with a dot, too.
	Hidden bool
	// Output is one of the constants above.
	Output string
	// Limit is how many entries are listed at most; 0 for all.
	Limit int
}

// Check refuses values that are not possible.
func (o ListOptions) Check() error {
	switch {
	case o.Output != OutputTable && o.Output != OutputWide && o.Output != OutputJSON && o.Output != OutputName:
		return WrongUsage("--output %s is not wide, json or name", Quoted(o.Output))
	case o.Limit < 0:
		return WrongUsage("--limit %d is negative", o.Limit)
	}
	return nil
}

// fileList writes a list of files page by page.
type fileList struct {
	o ListOptions
	s *Session
	v Volume
	// reader is that of the volume.
	reader Reader
	// base is the path of the directory that is listed. Names are shown from there.
	base  paths.Path
	count int
	// unreachable counts directories whose path is longer than a request may have, hidden entries that
	// were left out for their names.
	unreachable, hidden int
	// unsorted: some of it was not sorted.
	unsorted bool
	table    *terminal.Table
	items    *Items[api.Entry]
}

// ListFiles lists the directory, or the one file, that is at a path.
func (s *Session) ListFiles(ctx context.Context, v Volume, ref string, o ListOptions) error {
	entry, path, err := v.entry(ctx, ref)
	if err != nil {
		return err
	}
	l := &fileList{o: o, s: s, v: v, reader: v.Reader, base: path, table: terminal.NewTable(s.Stdout)}
	// A ref needs no quoting in JSON.
	l.items = NewItems[api.Entry](s.Stdout, `{"path":"`+path.Ref()+`","entries":[`, "]}\n")
	if entry.Type == api.Directory {
		err = l.directory(ctx, ref)
	} else {
		l.base = paths.Path{}
		err = l.page([]api.Entry{entry})
	}
	switch {
	case errors.Is(err, ErrEnough):
	case err != nil:
		return v.Reader.Explain(ctx, v.ID, err)
	}
	if o.Output == OutputJSON {
		if err := l.items.End(); err != nil {
			return err
		}
	}
	if l.hidden > 0 && s.Shown {
		fmt.Fprintf(s.Stderr, "%d names that begin with a dot are not shown; -a shows them\n", l.hidden)
	}
	if l.unsorted && s.Shown {
		fmt.Fprintln(s.Stderr, "a directory with more than 20,000 names is in its own order, not sorted")
	}
	if l.unreachable > 0 {
		return fmt.Errorf("what is in %d directories is not listed: their paths are longer than 4,096 bytes; %s cp copies it",
			l.unreachable, s.Program)
	}
	return nil
}

// directory lists a directory, and with Recursive what is below it. One request goes as deep as
// levels; what is deeper is listed where its directory stands, so that the order is that of one walk.
func (l *fileList) directory(ctx context.Context, ref string) error {
	top, err := paths.ParseRef(ref)
	if err != nil {
		return err
	}
	depth := 1
	if l.o.Recursive {
		depth = levels
	}
	q := api.FilesQuery{Path: ref, Depth: depth, Limit: namesAtOnce}
	if l.o.Limit > 0 {
		q.Limit = min(q.Limit, l.o.Limit)
	}
	for {
		page, err := l.reader.Files(ctx, l.v.ID, q)
		if err != nil {
			return err
		}
		l.reader = patient{l.v.Reader} // some of the list is out
		l.unsorted = l.unsorted || page.Unsorted
		if err := l.walk(ctx, l.visible(page.Entries), len(top.Elements())+depth); err != nil {
			return err
		}
		if page.Continue == "" {
			return nil
		}
		if page.Continue == q.Continue {
			return errors.New("the list of files does not come to its end")
		}
		q.Continue = page.Continue
	}
}

// visible returns the entries that are listed. What is below a hidden directory is hidden, too.
func (l *fileList) visible(entries []api.Entry) []api.Entry {
	if l.o.Hidden {
		return entries
	}
	visible := entries[:0]
	for _, entry := range entries {
		// No dot of a name is encoded in a ref.
		if below := "/" + l.below(entry.Ref, l.base.Ref()); strings.Contains(below, "/.") {
			l.hidden++
			continue
		}
		visible = append(visible, entry)
	}
	return visible
}

// below returns what a path is below the listed directory.
func (l *fileList) below(path, base string) string {
	if l.base.IsTop() {
		return path
	}
	return strings.TrimPrefix(path, base+"/")
}

// walk writes entries. Of the directories among them it lists those that the request did not enter,
// at the level deepest, if all are wanted.
func (l *fileList) walk(ctx context.Context, entries []api.Entry, deepest int) error {
	from := 0
	for i, entry := range entries {
		if !l.o.Recursive || entry.Type != api.Directory || strings.Count(entry.Ref, "/")+1 < deepest {
			continue
		}
		if _, err := paths.ParseRef(entry.Ref); err != nil {
			l.unreachable++
			continue
		}
		if err := l.page(entries[from : i+1]); err != nil {
			return err
		}
		from = i + 1
		if err := l.directory(ctx, entry.Ref); err != nil {
			return err
		}
	}
	return l.page(entries[from:])
}

// page writes some entries. It returns ErrEnough once the limit is reached.
func (l *fileList) page(entries []api.Entry) error {
	enough := l.o.Limit > 0 && l.count+len(entries) >= l.o.Limit
	if enough {
		entries = entries[:l.o.Limit-l.count]
	}
	l.count += len(entries)
	var err error
	if l.o.Output == OutputJSON {
		err = l.items.Write(entries)
	} else {
		err = l.rows(entries)
	}
	if err == nil && enough {
		err = ErrEnough
	}
	return err
}

// rows writes entries as lines.
func (l *fileList) rows(entries []api.Entry) error {
	for _, entry := range entries {
		path, err := url.PathUnescape(entry.Ref)
		if err != nil {
			return err
		}
		switch {
		case l.o.Output == OutputName:
			l.table.Row(l.v.Target + ":" + FormatPath(path, entry.Ref))
		case l.o.Long || l.o.Output == OutputWide:
			l.table.Row(modeOf(entry), fmt.Sprint(entry.Links), fmt.Sprint(entry.UID), fmt.Sprint(entry.GID), terminal.Size(entry.Size),
				Moment(entry.ModTime), l.shown(entry, path))
		default:
			l.table.Row(l.shown(entry, path))
		}
	}
	return l.table.Flush()
}

// shown is the name of an entry below the listed directory, and where it points to.
func (l *fileList) shown(entry api.Entry, path string) string {
	name := terminal.Quote(l.below(path, l.base.String()))
	switch {
	case entry.Type == api.Directory:
		name += "/"
	case entry.Type == api.Symlink && (l.o.Long || l.o.Output == OutputWide):
		name += " -> " + terminal.Quote(entry.Target)
	}
	return name
}

// modeLetters are the first letters of modes, as ls(1) shows them.
var modeLetters = map[api.EntryType]string{
	api.File: "-", api.Directory: "d", api.Symlink: "l", api.FIFO: "p", api.Socket: "s", api.Block: "b", api.Char: "c", api.Mount: "m",
}

// modeOf returns type and permissions as ls(1) does: drwxr-x---. A mount has the letter m.
func modeOf(entry api.Entry) string {
	if entry.Type == api.Mount {
		return modeLetters[api.Mount] + "?????????" // nothing is known of it
	}
	letter, ok := modeLetters[entry.Type]
	mode, err := strconv.ParseUint(entry.Mode, 8, 12)
	if !ok || err != nil {
		return terminal.Unknown
	}
	text := []byte(fs.FileMode(mode & 0o777).String())
	for i, special := range []struct {
		bit         uint64
		with, alone byte
	}{{0o4000, 's', 'S'}, {0o2000, 's', 'S'}, {0o1000, 't', 'T'}} {
		at := 3 * (i + 1)
		switch {
		case mode&special.bit == 0:
		case text[at] == '-':
			text[at] = special.alone
		default:
			text[at] = special.with
		}
	}
	return letter + string(text[1:])
}
