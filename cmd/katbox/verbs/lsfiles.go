package verbs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/api"
	"github.com/katbox/katbox/internal/paths"
	"github.com/katbox/katbox/internal/terminal"
)

const (
	// levels is how many levels of directories one request lists.
	levels = 16
	// namesAtOnce is how many names one request lists. The daemon reads the whole directory for each.
	namesAtOnce = 10_000
)

// fileList writes a list of files page by page.
type fileList struct {
	o *lsOptions
	s *session
	// id and name are those of the volume; name is a target.
	id, name string
	// base is the path of the directory that is listed. Names are shown from there.
	base  paths.Path
	count int
	// unreachable counts directories whose path is longer than a request may have.
	unreachable int
	table       *terminal.Table
	items       *items[api.Entry]
}

// listFiles lists the directory, or the one file, that a target names.
func (o *lsOptions) listFiles(ctx context.Context, s *session, t target) error {
	v, err := o.choose(ctx, s, t)
	if err != nil {
		return err
	}
	entry, path, err := s.entry(ctx, v.ID, t.path)
	if err != nil {
		return err
	}
	l := &fileList{o: o, s: s, id: v.ID, name: v.ID, base: path, table: terminal.NewTable(s.stdout)}
	if t.id == "" && !o.last {
		l.name = nameOf(v)
	}
	// A ref needs no quoting in JSON.
	l.items = newItems[api.Entry](s.stdout, `{"path":"`+path.Ref()+`","entries":[`, "]}\n")
	if entry.Type == api.Directory {
		err = l.directory(ctx, t.path)
	} else {
		l.base = paths.Path{}
		err = l.page([]api.Entry{entry})
	}
	switch {
	case errors.Is(err, errEnough):
	case err != nil:
		return s.explainRead(ctx, v.ID, err)
	}
	if o.output == outputJSON {
		if err := l.items.end(); err != nil {
			return err
		}
	}
	if l.unreachable > 0 {
		return fmt.Errorf("what is in %d directories is not listed: their paths are longer than 4,096 bytes; katbox cp copies it", l.unreachable)
	}
	return nil
}

// entry asks what is at a path.
func (s *session) entry(ctx context.Context, id, ref string) (api.Entry, paths.Path, error) {
	list, err := s.client.Files(ctx, id, api.FilesQuery{Path: ref, Stat: true})
	if err != nil {
		return api.Entry{}, paths.Path{}, s.explainRead(ctx, id, err)
	}
	if len(list.Entries) != 1 {
		return api.Entry{}, paths.Path{}, fmt.Errorf("the daemon described %d entries and not one", len(list.Entries))
	}
	path, err := paths.ParseRef(list.Entries[0].Ref)
	return list.Entries[0], path, err
}

// directory lists a directory, and with --recursive what is below it. One request goes as deep as
// levels; what is deeper is listed where its directory stands, so that the order is that of one walk.
func (l *fileList) directory(ctx context.Context, ref string) error {
	top, err := paths.ParseRef(ref)
	if err != nil {
		return err
	}
	depth := 1
	if l.o.recursive {
		depth = levels
	}
	q := api.FilesQuery{Path: ref, Depth: depth, Limit: namesAtOnce}
	if l.o.limit > 0 {
		q.Limit = min(q.Limit, l.o.limit)
	}
	for {
		page, err := l.s.client.Files(ctx, l.id, q)
		if err != nil {
			return err
		}
		if err := l.walk(ctx, page.Entries, len(top.Elements())+depth); err != nil {
			return err
		}
		if page.Continue == "" {
			return nil
		}
		if page.Continue == q.Continue {
			return errors.New("the daemon's list does not come to its end")
		}
		q.Continue = page.Continue
	}
}

// walk writes entries. Of the directories among them it lists those that the request did not enter,
// at the level deepest, if all are wanted.
func (l *fileList) walk(ctx context.Context, entries []api.Entry, deepest int) error {
	from := 0
	for i, entry := range entries {
		if !l.o.recursive || entry.Type != api.Directory || strings.Count(entry.Ref, "/")+1 < deepest {
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

// page writes some entries. It returns errEnough once the limit is reached.
func (l *fileList) page(entries []api.Entry) error {
	enough := l.o.limit > 0 && l.count+len(entries) >= l.o.limit
	if enough {
		entries = entries[:l.o.limit-l.count]
	}
	l.count += len(entries)
	var err error
	if l.o.output == outputJSON {
		err = l.items.write(entries)
	} else {
		err = l.rows(entries)
	}
	if err == nil && enough {
		err = errEnough
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
		case l.o.output == outputName:
			l.table.Row(l.name + ":" + argument(path, entry.Ref))
		case l.o.long || l.o.output == outputWide:
			l.table.Row(modeOf(entry), fmt.Sprint(entry.Links), fmt.Sprint(entry.UID), fmt.Sprint(entry.GID), terminal.Size(entry.Size),
				moment(entry.ModTime), l.shown(entry, path))
		default:
			l.table.Row(l.shown(entry, path))
		}
	}
	return l.table.Flush()
}

// shown is the name of an entry below the listed directory, and where it points to.
func (l *fileList) shown(entry api.Entry, path string) string {
	name := path
	if !l.base.IsTop() {
		name = strings.TrimPrefix(name, l.base.String()+"/")
	}
	name = terminal.Quote(name)
	switch {
	case entry.Type == api.Directory:
		name += "/"
	case entry.Type == api.Symlink && (l.o.long || l.o.output == outputWide):
		name += " -> " + terminal.Quote(entry.Target)
	}
	return name
}

// argument returns a path as parseTarget reads it behind a colon: as it is, or as its ref if a terminal
// or a line of text cannot hold it.
func argument(path, ref string) string {
	if terminal.IsPlain(path) && !strings.HasPrefix(path, ":") {
		return path
	}
	return ":" + ref
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
