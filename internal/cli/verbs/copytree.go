package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/cli/unpack"
	"github.com/katbox/katbox/internal/model/terminal"
)

// newTree copies a directory to one that does not exist. Until the copy is complete, the directory has
// another name; see partialNames. A copy that was cut goes on there, behind the last file that is known to be complete.
type newTree struct {
	*copying
	dest, partial string
	// file is beside the directory. It has a line for each checkpoint, of which the last is the one. ours says
	// that it had one before, so the directory is a copy's, and end where the next line goes.
	file *os.File
	ours bool
	end  int64
}

// state is a line of that file: of which archive a checkpoint is, and how symbolic links are copied.
type state struct {
	ETag     string `json:"etag"`
	Symlinks string `json:"symlinks"`
	unpack.Checkpoint
}

// longestState bounds that file, in bytes. A longer line is left out: the one before is good too.
const longestState = 4 << 20

// newTree copies a directory to dest, which does not exist.
func (c *copying) newTree(ctx context.Context, dest string) error {
	partial, name := partialNames(dest)
	t := &newTree{copying: c, dest: dest, partial: partial}
	var err error
	t.file, err = openOwn(name, os.O_CREATE, 0o600)
	switch {
	case errors.Is(err, errBusy):
		return fmt.Errorf("another %s cp writes %s", c.s.Program, Quoted(partial))
	case err != nil:
		return err
	}
	defer t.file.Close()
	info, err := t.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is not a file: remove it", Quoted(name)))
	}
	t.ours = info.Size() > 0
	return t.run(ctx)
}

func (t *newTree) run(ctx context.Context) error {
	from := t.had()
	q := t.query()
	q.From, q.ETag = from.Next, from.ETag
	in, err := open(ctx, t.v, q)
	if err != nil {
		if !t.ours {
			err = errors.Join(err, os.Remove(t.file.Name()))
		}
		return err
	}
	defer in.Close()
	if in.next == 0 {
		from = state{}
	}
	if err := t.begin(from.Next); err != nil {
		return err
	}
	etag := in.stream.ETag
	progress := t.progress(from.Next, in.stream.Size)
	report, err := unpack.Unpack(ctx, io.TeeReader(in, progress), unpack.Options{
		Dir: t.partial, Symlinks: t.symlinks == "keep", From: from.Checkpoint,
		Save: func(c unpack.Checkpoint) error { return t.save(state{etag, t.symlinks, c}) },
	})
	progress.End()
	if err != nil && !errors.As(err, new(*unpack.LeftOutError)) {
		return t.keep(err, from.Next+report.Next, in.isBadFor(err))
	}
	if err := t.finish(err == nil); err != nil {
		return err
	}
	return t.unpacked(in, report, err)
}

// had returns how far an earlier copy came. It is zero if that is not known.
func (t *newTree) had() state {
	text, err := io.ReadAll(io.LimitReader(t.file, longestState))
	if err != nil {
		return state{}
	}
	t.end = int64(len(text))
	// The last line may be cut.
	for _, line := range slices.Backward(strings.Split(string(text), "\n")) {
		s := state{}
		if json.Unmarshal([]byte(line), &s) != nil || !etagForm.MatchString(s.ETag) || s.Symlinks != t.symlinks {
			continue
		}
		if s.Next > 0 && s.Check() == nil {
			return s
		}
	}
	return state{}
}

// save notes how far the copy came, once the disk has that.
func (t *newTree) save(s state) error {
	if err := settle(t.partial); err != nil {
		return err
	}
	line, err := json.Marshal(s)
	if err != nil || len(line) >= longestState {
		return err
	}
	line = append(line, '\n')
	if t.end+int64(len(line)) > longestState {
		t.end = 0
	}
	if _, err := t.file.WriteAt(line, t.end); err != nil {
		return err
	}
	t.end += int64(len(line))
	// Lines of before that are in the rest are good too, if this one is not whole.
	if err := t.file.Truncate(t.end); err != nil || t.ours {
		return err
	}
	// The first line says that what comes into the directory is a copy's, after a power cut too.
	t.ours = true
	return t.file.Sync()
}

// begin prepares the directory for what comes, from a place of the archive on.
func (t *newTree) begin(next int64) error {
	info, err := os.Lstat(t.partial)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a directory, and nothing is followed: remove it", Quoted(t.partial))
	case err == nil && !t.ours && os.Remove(t.partial) != nil: // One that is empty may be that of a copy, and is no loss.
		return errors.Join(fmt.Errorf("%s exists already, and is not the beginning of a copy: remove it", Quoted(t.partial)),
			os.Remove(t.file.Name()))
	case errors.Is(err, fs.ErrNotExist) && next > 0:
		return errors.Join(fmt.Errorf("%s is gone: repeat the command to begin anew", Quoted(t.partial)), os.Remove(t.file.Name()))
	case err == nil && next > 0:
		t.note("%s is there: going on after %s", Quoted(t.partial), terminal.Size(next))
		return nil
	case err == nil && t.ours:
		t.note("%s is not the beginning of this copy, or not known well enough: beginning anew", Quoted(t.partial))
		err = removeAll(t.partial)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Mkdir(t.partial, 0o777)
	}
	if err != nil {
		return err
	}
	t.end, t.ours = 0, false
	return t.file.Truncate(0)
}

// removeAll removes a directory with all that is in it, also where directories in it may not be written.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// keep says how far a copy came that failed, and what to do. Unpacking has saved that. bad says that something in it is
// wrong.
func (t *newTree) keep(why error, next int64, bad bool) error {
	switch {
	case next == 0:
		return errors.Join(why, removeAll(t.partial), os.Remove(t.file.Name()))
	case bad:
		why = fmt.Errorf("%w; something in %s is wrong: to begin anew, repeat the command", why, Quoted(t.partial))
		return errors.Join(why, t.forget())
	}
	return fmt.Errorf("%w; %s holds what was in the first %s: to go on, repeat the command", why, Quoted(t.partial), terminal.Size(next))
}

// forget leaves a line that is no checkpoint: the directory stays a copy's, and the next run begins anew.
func (t *newTree) forget() error {
	if err := t.file.Truncate(0); err != nil {
		return err
	}
	_, err := t.file.WriteAt([]byte("{}\n"), 0)
	return err
}

// finish gives the directory its name, and if it is complete its time, by which a later run knows it.
func (t *newTree) finish(complete bool) error {
	if complete {
		t.setTime(t.partial)
	}
	if err := settle(t.partial); err != nil {
		return err
	}
	if err := os.Rename(t.partial, t.dest); err != nil {
		return err
	}
	return os.Remove(t.file.Name())
}
