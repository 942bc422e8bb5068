package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/terminal"
	"github.com/katbox/katbox/internal/unpack"
)

// newTree copies a directory to one that does not exist. Until the copy is complete, the directory has
// the name with partialSuffix. A copy that was cut goes on there, behind the last file that is complete.
type newTree struct {
	*copying
	dest string
	// state is the file beside the directory that says what it is the beginning of: the ETag of the
	// archive, where the rest of that begins, and --symlinks. It is empty while a copy runs. ours says
	// that it was there before.
	state *os.File
	ours  bool
}

// newTree copies a directory to dest, which does not exist.
func (c *copying) newTree(ctx context.Context, dest string) error {
	_, err := os.Lstat(dest + etagSuffix)
	t := &newTree{copying: c, dest: dest, ours: err == nil}
	t.state, err = openOwn(dest+etagSuffix, os.O_CREATE, 0o600)
	switch {
	case errors.Is(err, errBusy):
		return fmt.Errorf("another %s cp writes %s", c.s.Program, Quoted(t.partial()))
	case err != nil:
		return err
	}
	defer t.state.Close()
	if info, err := t.state.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is not a file: remove it", Quoted(t.state.Name())))
	}
	return t.run(ctx)
}

func (t *newTree) partial() string { return t.dest + partialSuffix }

func (t *newTree) run(ctx context.Context) error {
	q := t.query()
	q.From, q.ETag = t.had()
	in, err := open(ctx, t.v, q)
	if err != nil {
		if !t.ours {
			err = errors.Join(err, os.Remove(t.state.Name()))
		}
		return err
	}
	defer in.Close()
	begin := in.next
	if err := t.begin(begin); err != nil {
		return err
	}
	progress := t.progress(begin, in.stream.Size)
	report, err := unpack.Unpack(ctx, io.TeeReader(in, progress), unpack.Options{
		Dir: t.partial(), Symlinks: t.symlinks == "keep", Resumable: true,
	})
	progress.End()
	if err != nil && !errors.As(err, new(*unpack.LeftOutError)) {
		return t.keep(err, in.stream.ETag, begin+report.Next, report.LeftOut == 0)
	}
	if err := t.finish(err == nil); err != nil {
		return err
	}
	return t.unpacked(in, report, err)
}

// had returns where the archive goes on that an earlier copy has begun to unpack, and what it is.
func (t *newTree) had() (next int64, etag string) {
	text, err := io.ReadAll(io.LimitReader(t.state, longestETag))
	if err != nil {
		return 0, ""
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 3 || !etagForm.MatchString(lines[0]) || lines[2] != t.symlinks {
		return 0, ""
	}
	next, err = strconv.ParseInt(lines[1], 10, 64)
	if err != nil || next <= 0 {
		return 0, ""
	}
	return next, lines[0]
}

// begin prepares the directory for what comes, from a place of the archive on.
func (t *newTree) begin(next int64) error {
	info, err := os.Lstat(t.partial())
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a directory, and nothing is followed: remove it", Quoted(t.partial()))
	case err == nil && !t.ours:
		return errors.Join(fmt.Errorf("%s exists already, and is not the beginning of a copy: remove it", Quoted(t.partial())),
			os.Remove(t.state.Name()))
	case errors.Is(err, fs.ErrNotExist) && next > 0:
		return errors.Join(fmt.Errorf("%s is gone: repeat the command to begin anew", Quoted(t.partial())), os.Remove(t.state.Name()))
	case err == nil && next > 0:
		t.note("%s is there: going on after %s", Quoted(t.partial()), terminal.Size(next))
	case err == nil:
		err = os.RemoveAll(t.partial())
	}
	if next == 0 && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		err = os.Mkdir(t.partial(), 0o777)
	}
	if err != nil {
		return err
	}
	// A copy that is killed leaves the directory in a state that is not known.
	return t.state.Truncate(0)
}

// keep records how far a copy came that failed, and returns what to do.
func (t *newTree) keep(why error, etag string, next int64, resumable bool) error {
	switch {
	case next == 0:
		return errors.Join(why, os.RemoveAll(t.partial()), os.Remove(t.state.Name()))
	case !resumable:
		return fmt.Errorf("%w; what came until then is in %s: to begin anew, repeat the command", why, Quoted(t.partial()))
	}
	if _, err := t.state.WriteAt(fmt.Appendf(nil, "%s\n%d\n%s", etag, next, t.symlinks), 0); err != nil {
		return errors.Join(why, err)
	}
	return fmt.Errorf("%w; %s holds what was in the first %s: to go on, repeat the command", why, Quoted(t.partial()), terminal.Size(next))
}

// finish gives the directory its name, and if it is complete its time, by which a later run knows it.
func (t *newTree) finish(complete bool) error {
	if complete {
		if err := os.Chtimes(t.partial(), t.entry.ModTime, t.entry.ModTime); err != nil {
			return err
		}
	}
	if err := os.Rename(t.partial(), t.dest); err != nil {
		return err
	}
	return os.Remove(t.state.Name())
}
