package tarball

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/lib/patterns"
	"github.com/katbox/katbox/internal/lib/sparse"
	"github.com/katbox/katbox/internal/node/files"
)

// Options say what an archive contains.
type Options struct {
	// Path is a directory or a regular file. The zero Path is the whole volume.
	Path paths.Path
	// Exclude are [patterns.Patterns]. What is in an excluded directory is excluded.
	Exclude []string
	// MaxBytes, if not 0, bounds the archive.
	MaxBytes int64
	// Skip leaves out the first bytes of the archive.
	Skip int64
	// LowPriority, if not nil, lowers the I/O priority of the goroutine that walks ahead of what is
	// read, until end is called. What is read has the priority of the caller of Write.
	LowPriority func() (end func())
	// Each, if not nil, is called for each entry once all of it is written or left out by Skip, and for what cannot be in an
	// archive. Its error ends Write.
	Each func(Placed) error
}

// Placed is an entry, and where it stands in the archive.
type Placed struct {
	files.Entry
	// Name is that in the archive, without the slash at the end of a directory's.
	Name string
	// Header is where it begins, Content where what it contains does, behind the map of a file with holes, and End where the
	// next entry begins. All three are the same for what cannot be in an archive.
	Header, Content, End int64
	// HardLink is the name of the entry before that is the same file, if this is a hard link.
	HardLink string
	// Sparse: it is a file with holes, whose parts with data are Extents. They follow one another at Content.
	Sparse  bool
	Extents []sparse.Extent
}

// Report says what an archive lacks, including what Skip left out.
type Report struct {
	// Skipped counts what cannot be in an archive: FIFOs, sockets, devices, mounts, and directories
	// that are too deep to be entered. Changed counts the files that changed while they were read.
	// The names are the first few of them, as they are in the archive: they may hold any byte but
	// NUL.
	Skipped, Changed           int
	SkippedNames, ChangedNames []string
	// Unmatched are the places in Options.Exclude of the patterns that have left nothing out that was not left out
	// already.
	Unmatched []int
	// Bytes is the length of the archive.
	Bytes int64
}

// maxNames is how many names a report has of a kind.
const maxNames = 8

var (
	// ErrTooLarge: the archive would be longer than Options.MaxBytes.
	ErrTooLarge = errors.New("the archive is larger than allowed")
	// ErrBadSkip: the archive has fewer bytes than Options.Skip.
	ErrBadSkip = errors.New("the archive has fewer bytes than that")
)

// Write writes an archive to w, in pieces of 256 KiB. It ends with an error, and the archive then lacks
// its end, if ctx ends, if r is lost, and if the archive is too large: then w has got the entries
// that are not. Before it has read anything it returns the errors of [files.Tree.Walk] and
// [patterns.ErrBad]. A write that blocks is the caller's to end.
func Write(ctx context.Context, w io.Writer, r *files.Reading, o Options) (Report, error) {
	exclude, err := patterns.Parse(o.Exclude)
	if err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(r.Lost, func() { cancel(context.Cause(r.Lost)) })
	defer stop()

	a := &archiver{Options: o, ctx: ctx, pace: r.Pace, exclude: exclude, out: newOutput(ctx, w, o.Skip, r.Pace)}
	err = a.each(r.Tree, a.entry)
	if err == nil {
		err = a.end()
	}
	a.report.Bytes, a.report.Unmatched = a.out.position, exclude.Unmatched()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return a.report, fmt.Errorf("archive %q: %w", o.Path, err)
	}
	return a.report, nil
}

// archiver is one call of Write.
type archiver struct {
	Options
	ctx     context.Context // that of Write, which makes an archiver for itself alone
	pace    files.Pace
	exclude patterns.Patterns
	links   links
	out     *output
	// blocks are those of the last header.
	blocks bytes.Buffer
	// at is the entry at hand.
	at Placed
	// kept is about how much of what was read the kernel still has in memory.
	kept   int64
	report Report
}

// entry writes one entry, and says where it is.
func (a *archiver) entry(i *item) error {
	a.at = Placed{Entry: i.Entry, Name: i.name, Header: a.out.position, Content: a.out.position}
	if err := a.write(i); err != nil || a.Each == nil {
		return err
	}
	a.at.End = a.out.position
	return a.Each(a.at)
}

func (a *archiver) write(i *item) error {
	h := header(i.Entry, i.name)
	switch i.Type {
	case files.Regular:
		return a.file(h, i)
	case files.Directory:
		if i.TooDeep {
			a.skip(i.name)
		}
		h.Typeflag = tar.TypeDir
		h.Name += "/"
	case files.Symlink:
		h.Typeflag = tar.TypeSymlink
		h.Linkname = i.Target
	default:
		a.skip(i.name)
		return nil
	}
	return a.header(h, 0)
}

// lowPriority lowers the I/O priority of the calling goroutine until end is called.
func (a *archiver) lowPriority() (end func()) {
	if a.LowPriority == nil {
		return func() {}
	}
	return a.LowPriority()
}

// name returns the name of an entry in the archive. It is empty for the directory itself.
func (a *archiver) name(e files.Entry) (string, error) {
	if e.Path != a.Path {
		return strings.TrimPrefix(strings.TrimPrefix(e.Path.String(), a.Path.String()), "/"), nil
	}
	switch e.Type {
	case files.Directory:
		return "", nil
	case files.Regular:
		return e.Name, nil
	case files.Symlink:
		return "", files.ErrSymlink
	case files.Mount:
		return "", files.ErrCrossesMount
	default:
		return "", files.ErrNotRegular
	}
}

// skip notes what is not in the archive.
func (a *archiver) skip(name string) {
	a.report.Skipped++
	if len(a.report.SkippedNames) < maxNames {
		a.report.SkippedNames = append(a.report.SkippedNames, name)
	}
}

// file writes a regular file, or a hard link to it if the archive has it already.
func (a *archiver) file(h *tar.Header, i *item) error {
	if first, ok := a.links.find(i.Entry, h.Name); ok {
		h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
		a.at.HardLink = first
		return a.header(h, 0)
	}
	c := &content{archiver: a, item: i}
	if err := c.plan(); err != nil {
		return err
	}
	if c.sparse {
		sparse.SetHeader(h, c.stored)
	}
	if err := a.header(h, c.stored); err != nil {
		return err
	}
	return c.write()
}

// header writes a header. stored is the size of what follows.
func (a *archiver) header(h *tar.Header, stored int64) error {
	b, err := encode(&a.blocks, h)
	if err != nil {
		return fmt.Errorf("%q: %w", h.Name, err)
	}
	if a.MaxBytes > 0 && int64(len(b)+len(trailer))+sparse.Padded(stored) > a.MaxBytes-a.out.position {
		return fmt.Errorf("%q and what follows: %w: %d bytes", h.Name, ErrTooLarge, a.MaxBytes)
	}
	err = a.out.write(b)
	a.at.Content = a.out.position
	return err
}

// trailer ends an archive.
var trailer [2 * sparse.BlockSize]byte

func (a *archiver) end() error {
	if err := a.out.write(trailer[:]); err != nil {
		return err
	}
	if a.out.position < a.Skip {
		return fmt.Errorf("resume at %d: %w: %d", a.Skip, ErrBadSkip, a.out.position)
	}
	return a.out.flush()
}
