package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/api"
	"github.com/katbox/katbox/internal/paths"
	"github.com/katbox/katbox/internal/terminal"
	"github.com/katbox/katbox/internal/unpack"
)

// ToStdout is the destination that is standard output.
const ToStdout = "-"

// CopyOptions are the flags of cp.
type CopyOptions struct {
	exclude   []string
	symlinks  string
	overwrite bool
	from      int64
}

// Define adds the flags.
func (o *CopyOptions) Define(flags *pflag.FlagSet) {
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
	entry, path, err := v.entry(ctx, ref)
	if err != nil {
		return err
	}
	c := &copying{CopyOptions: o, s: s, v: v, entry: entry, path: path}
	return c.to(ctx, dest)
}

// copying is one copy of a file or a directory.
type copying struct {
	*CopyOptions
	s     *Session
	v     Volume
	entry api.Entry
	path  paths.Path
}

func (c *copying) to(ctx context.Context, dest string) error {
	isDirectory := c.entry.Type == api.Directory
	switch {
	case !isDirectory && c.entry.Type != api.File:
		return fmt.Errorf("%s is a %s: only files and directories are copied", Quoted(c.path.String()), c.entry.Type)
	case !isDirectory && len(c.exclude) > 0:
		return WrongUsage("--exclude is for directories, and %s is a file", Quoted(c.path.String()))
	case dest == ToStdout:
		return c.toStdout(ctx)
	case isDirectory:
		return c.tree(ctx, dest)
	}
	if info, err := os.Stat(dest); strings.HasSuffix(dest, "/") || err == nil && info.IsDir() {
		dest = filepath.Join(dest, c.path.Base())
	}
	d := download{copying: c, dest: dest}
	return d.run(ctx)
}

func (c *copying) query() api.BytesQuery {
	return api.BytesQuery{Path: c.path.Ref(), Archive: c.entry.Type == api.Directory, Exclude: c.exclude}
}

// progress shows on stderr how much was copied. total is 0 if it is not known.
func (c *copying) progress(done, total int64) *terminal.Progress {
	what := c.path.Base()
	if what == "" {
		what = c.v.What
	}
	if name := []rune(terminal.Quote(what)); len(name) > 40 {
		what = "..." + string(name[len(name)-37:])
	}
	return terminal.NewProgress(c.s.Stderr, what, done, total)
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
	progress := c.progress(in.next, max(0, in.stream.Size))
	err = copyTo(c.s.Stdout, io.TeeReader(in, progress))
	progress.End()
	if err != nil {
		return fmt.Errorf("%w; %d bytes were written: to go on behind them, repeat the command with --from %d", err, in.next, in.next)
	}
	c.reportSkipped(in)
	return nil
}

// tree copies a directory.
func (c *copying) tree(ctx context.Context, dest string) error {
	in, err := open(ctx, c.v, c.query())
	if err != nil {
		return err
	}
	defer in.Close()
	progress := c.progress(0, 0)
	report, err := unpack.Unpack(ctx, io.TeeReader(in, progress), unpack.Options{
		Dir: dest, Overwrite: c.overwrite, Symlinks: c.symlinks == "keep",
	})
	progress.End()
	switch {
	case errors.Is(err, unpack.ErrExists) && !c.overwrite:
		return fmt.Errorf("%w; --overwrite replaces files", err)
	case err != nil:
		return fmt.Errorf("%w; what came until then is in %s: repeat the command with --overwrite", err, Quoted(dest))
	}
	if report.SkippedSymlinks > 0 {
		fmt.Fprintf(c.s.Stderr, "%d symbolic links were left out; --symlinks=keep makes them\n", report.SkippedSymlinks)
	}
	c.reportSkipped(in)
	return nil
}

// reportSkipped says what an archive that has ended leaves out.
func (c *copying) reportSkipped(in *source) {
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
	fmt.Fprintf(c.s.Stderr, "%d entries were left out, which are neither files, directories nor symbolic links: %s\n",
		count, strings.Join(names, ", "))
}
