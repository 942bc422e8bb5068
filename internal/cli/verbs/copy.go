package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/unpack"
	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/terminal"
)

// ToStdout is the destination that is standard output.
const ToStdout = "-"

// CopyOptions are the flags of cp.
type CopyOptions struct {
	exclude   []string
	symlinks  string
	overwrite bool
	tar       bool
	from      int64
}

// Define adds the flags.
func (o *CopyOptions) Define(flags *pflag.FlagSet) {
	flags.BoolVar(&o.tar, "tar", false, "write a tar archive to the file DEST, instead of the files into a directory")
	flags.StringArrayVar(&o.exclude, "exclude", nil, "leave out what matches this pattern, such as '*.tmp'; may be repeated")
	flags.StringVar(&o.symlinks, "symlinks", "skip", "skip or keep the symbolic links of a directory; nothing follows them")
	flags.BoolVar(&o.overwrite, "overwrite", false, "replace files that exist")
	flags.Int64Var(&o.from, "from", 0, "with DEST -, leave out this many bytes at the beginning: an earlier copy that was cut has them")
}

// Check refuses flags that are wrong or do not go with the destination, before anything is asked.
func (o *CopyOptions) Check(dest string) error {
	switch {
	case o.symlinks != "skip" && o.symlinks != "keep":
		return WrongUsage("--symlinks %s is neither skip nor keep", Quoted(o.symlinks))
	case o.from < 0:
		return WrongUsage("--from %d is negative", o.from)
	case o.from > 0 && dest != ToStdout:
		return WrongUsage("--from is for DEST -; a copy to a file goes on by itself")
	case dest == "":
		return WrongUsage("DEST is empty: give a file, a directory or -")
	}
	return nil
}

// Copy copies the file or the directory that is at a path. The contents of a directory go into the
// directory dest. If a copy of a file is cut, its beginning stays, and the next copy goes on from there.
func (s *Session) Copy(ctx context.Context, v Volume, ref, dest string, o *CopyOptions) error {
	if err := o.Check(dest); err != nil {
		return err
	}
	c, err := s.copying(ctx, v, ref, o)
	if err != nil {
		return err
	}
	switch {
	case dest == ToStdout:
		return c.toStdout(ctx)
	case c.unpacks():
		if _, err := os.Lstat(dest); errors.Is(err, fs.ErrNotExist) {
			return c.newTree(ctx, filepath.Clean(dest))
		}
		if !isDirectory(dest) {
			return fmt.Errorf("%s is not a directory: give a directory, or a new name", Quoted(dest))
		}
		return c.tree(ctx, dest)
	}
	if into := isDirectory(dest); into || endsInSeparator(dest) {
		if !into {
			return fmt.Errorf("%s is not a directory: make it, or give the name of a file", Quoted(dest))
		}
		name, err := c.fileName()
		if err != nil {
			return err
		}
		dest = filepath.Join(dest, name)
	}
	return c.toFile(ctx, dest)
}

// isDirectory reports whether a name is that of a directory, or of a symbolic link to one.
func isDirectory(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func endsInSeparator(name string) bool { return name != "" && os.IsPathSeparator(name[len(name)-1]) }

// copying is one copy of a file or a directory.
type copying struct {
	*CopyOptions
	s     *Session
	v     Volume
	entry api.Entry
	path  paths.Path
	// total, if this is a part of a larger copy, counts the bytes of all of it.
	total *terminal.Progress
	part  bool
	// unmatched, if this is a part, counts for each place in exclude the parts in which it left nothing out.
	unmatched map[int]int
	archives  *int
}

// copying looks at what is to be copied.
func (s *Session) copying(ctx context.Context, v Volume, ref string, o *CopyOptions) (*copying, error) {
	entry, path, err := v.entry(ctx, ref)
	if err != nil {
		return nil, err
	}
	c := &copying{CopyOptions: o, s: s, v: v, entry: entry, path: path}
	switch {
	case entry.Type != api.File && entry.Type != api.Directory:
		return nil, fmt.Errorf("%s is a %s: only files and directories are copied", Quoted(path.String()), entry.Type)
	case !c.archive() && len(c.exclude) > 0:
		return nil, WrongUsage("--exclude is for directories, and %s is a file", Quoted(path.String()))
	}
	return c, nil
}

// archive reports whether the bytes that come are a tar archive, and unpacks whether it is unpacked.
func (c *copying) archive() bool { return c.tar || c.entry.Type == api.Directory }
func (c *copying) unpacks() bool { return !c.tar && c.entry.Type == api.Directory }

// fileName is what the copy is called in a directory. A pod has chosen the name, on a system that has
// other rules for names.
func (c *copying) fileName() (string, error) {
	name := c.path.Base()
	if c.path.IsTop() {
		name = c.v.Target
	}
	err := unpack.CheckName(name)
	if err == nil && (!filepath.IsLocal(name) || filepath.Base(name) != name) {
		err = errors.New("it is no name of a file")
	}
	if err != nil {
		return "", fmt.Errorf("no file can be called %s on this system (%w): give the name of a file as DEST", Quoted(name), err)
	}
	if c.tar {
		name += ".tar"
	}
	return name, nil
}

func (c *copying) query() api.BytesQuery {
	return api.BytesQuery{Path: c.path.Ref(), Archive: c.archive(), Exclude: c.exclude}
}

// progress shows on stderr how much was copied. size is that of the file; below 0 if it is an archive.
func (c *copying) progress(done, size int64) *terminal.Progress {
	if c.part {
		c.total.Add(done)
		return c.total
	}
	if size < 0 && c.path.IsTop() && len(c.exclude) == 0 {
		size = c.v.Bytes // nearly
	}
	what := c.path.Base()
	if what == "" {
		what = c.v.What
	}
	if name := []rune(terminal.Quote(what)); len(name) > 40 {
		what = "..." + string(name[len(name)-37:])
	}
	return terminal.NewProgress(c.s.Stderr, what, done, max(0, size))
}

// note tells the user about the copy, in a line of its own.
func (c *copying) note(format string, values ...any) {
	if c.part {
		format = terminal.Clean(c.v.Target) + ": " + format
	}
	fmt.Fprintf(c.s.Stderr, format+"\n", values...)
}

// toStdout writes the bytes of a file or the tar of a directory to standard output.
func (c *copying) toStdout(ctx context.Context) error {
	if c.s.Shown {
		return WrongUsage("the copy is not for a terminal: send standard output to a file or a program; %s cat shows a file", c.s.Program)
	}
	q := c.query()
	q.From = c.from
	in, err := open(ctx, c.v, q)
	if err != nil {
		return err
	}
	defer in.Close()
	if in.next != c.from {
		return fmt.Errorf("the answer did not begin at byte %d", c.from)
	}
	progress := c.progress(in.next, in.stream.Size)
	err = copyTo(c.s.Stdout, io.TeeReader(in, progress))
	progress.End()
	switch {
	case isBad(err):
		return fmt.Errorf("%w; something in the %d bytes that were written is wrong: to begin anew, repeat the command", err, in.next-c.from)
	case err != nil:
		return fmt.Errorf("%w; %d bytes were written: to go on behind them, repeat the command with --from %d", err, in.next, in.next)
	}
	c.noteEnd(in)
	return nil
}

// tree copies a directory into one that exists.
func (c *copying) tree(ctx context.Context, dest string) error {
	in, err := open(ctx, c.v, c.query())
	if err != nil {
		return err
	}
	defer in.Close()
	progress := c.progress(0, in.stream.Size)
	report, err := unpack.Unpack(ctx, io.TeeReader(in, progress), unpack.Options{
		Dir: dest, Overwrite: c.overwrite, Symlinks: c.symlinks == "keep",
	})
	progress.End()
	switch {
	case err == nil, errors.As(err, new(*unpack.LeftOutError)):
		return c.unpacked(in, report, err)
	}
	return fmt.Errorf("%w; what came until then is in %s: repeat the command with --overwrite", err, Quoted(dest))
}

// unpacked says what is missing in a copy of a directory that has come to its end.
func (c *copying) unpacked(in *source, report unpack.Report, err error) error {
	if left := (*unpack.LeftOutError)(nil); errors.As(err, &left) {
		if left.Exist > 0 && !c.overwrite {
			err = fmt.Errorf("%w; --overwrite replaces files", err)
		}
		if left.Exist < left.Count {
			err = fmt.Errorf("%w; copy such a file alone to a name of your own, or all of it as a tar archive: --tar", err)
		}
	}
	if report.Untimed > 0 {
		c.note("%d files and directories cannot have the times of the originals here", report.Untimed)
	}
	if report.SkippedSymlinks > 0 {
		c.note("%d symbolic links were left out; --symlinks=keep makes them", report.SkippedSymlinks)
	}
	c.noteEnd(in)
	return err
}

// toFile copies a file, or the tar of a directory, to a file.
func (c *copying) toFile(ctx context.Context, dest string) error {
	d := download{copying: c, dest: dest}
	return d.run(ctx)
}

// noteEnd says what an archive that has ended leaves out, and which patterns have left nothing out.
func (c *copying) noteEnd(in *source) {
	if c.archives != nil {
		*c.archives++
	}
	for _, place := range in.stream.Unmatched() {
		switch {
		case place < 0 || place >= len(c.exclude):
		case c.part:
			c.unmatched[place]++
		default:
			c.note("%s", c.unmatchedNote(place))
		}
	}
	c.noteSkipped(in)
}

func (o *CopyOptions) unmatchedNote(place int) string {
	return fmt.Sprintf("--exclude %s left nothing out", Quoted(o.exclude[place]))
}

// noteSkipped says what an archive that has ended leaves out.
func (c *copying) noteSkipped(in *source) {
	count, first := in.stream.Skipped()
	if count == 0 {
		return
	}
	var names []string
	for _, ref := range first {
		if path, err := paths.ParseRef(ref); err == nil {
			names = append(names, Quoted(path.String()))
		}
	}
	if count > len(names) {
		names = append(names, "...")
	}
	c.note("%d entries were left out, which are neither files, directories nor symbolic links: %s", count, strings.Join(names, ", "))
}
