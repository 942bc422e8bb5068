package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/katbox/katbox/internal/model/terminal"
)

// longestETag bounds what is read of a file with an ETag, in bytes.
const longestETag = 1024

// errBusy: another process writes a file.
var errBusy = errors.New("another process writes it")

// etagForm is what an ETag looks like. What is in the file is sent as a header.
var etagForm = regexp.MustCompile(`^"[!#-~]+"$`)

// download copies one file, or the archive of a directory, to a file. If it ends in the middle, the next one goes on from there.
type download struct {
	*copying
	dest string
	// partial is the name of the file until it is complete, and state that of the file with its ETag.
	partial, state string
	file           *os.File
}

func (d *download) run(ctx context.Context) error {
	if err := d.mayReplace(); err != nil {
		return err
	}
	d.partial, d.state = partialNames(d.dest)
	var err error
	if d.file, err = d.openPartial(); err != nil {
		return err
	}
	defer d.file.Close()
	q := d.query()
	if q.From, q.ETag = d.had(); q.From > 0 {
		d.note("%s is there: going on after %s", Quoted(d.partial), terminal.Size(q.From))
	}
	in, err := open(ctx, d.v, q)
	if err != nil {
		return errors.Join(err, d.forgetEmpty())
	}
	defer in.Close()
	if err := d.begin(in); err != nil {
		return err
	}
	progress := d.progress(in.next, in.stream.Size)
	err = d.write(io.TeeReader(in, progress), in.next)
	progress.End()
	switch {
	case isBad(err):
		err = fmt.Errorf("%w; something in %s is wrong: to begin anew, repeat the command", err, Quoted(d.partial))
		return errors.Join(err, os.Truncate(d.state, 0))
	case err != nil:
		return fmt.Errorf("%w; %s holds the first %s: to go on, repeat the command", err, Quoted(d.partial), terminal.Size(in.next))
	}
	return d.finish(in)
}

// mayReplace refuses a destination that exists, except for a file with --overwrite.
func (d *download) mayReplace() error {
	info, err := os.Lstat(d.dest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", Quoted(d.dest))
	case !d.overwrite:
		return fmt.Errorf("%s exists already; --overwrite replaces it", Quoted(d.dest))
	}
	return nil
}

// openPartial opens the file that becomes the copy, for this process alone.
func (d *download) openPartial() (*os.File, error) {
	mode := fs.FileMode(0o666)
	if !d.archive() {
		number, err := strconv.ParseUint(d.entry.Mode, 8, 12)
		if err != nil {
			return nil, fmt.Errorf("the daemon gives %q as the mode of the file", d.entry.Mode)
		}
		mode = fs.FileMode(number&0o777 | 0o600)
	}
	name := d.partial
	f, err := openOwn(name, os.O_CREATE, mode)
	switch {
	case errors.Is(err, errBusy):
		return nil, fmt.Errorf("another %s cp writes %s", d.s.Program, Quoted(name))
	case err != nil:
		if isDirectory(filepath.Dir(name)) && !errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("no file can be called %s here (%w): give the name of a file as DEST", Quoted(d.dest), err)
		}
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a file: remove it", Quoted(name))
	case info.Size() > 0 && !d.overwrite && !d.isOurs():
		err = fmt.Errorf("%s exists already, and is not the beginning of a copy; remove it, or --overwrite replaces it", Quoted(name))
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// isOurs reports whether a copy has left what the partial file becomes.
func (d *download) isOurs() bool {
	_, err := os.Lstat(d.state)
	return err == nil
}

// had returns how much of which file is there from an earlier download. The last byte is asked for
// again: a range behind the last byte is an error.
func (d *download) had() (bytes int64, etag string) {
	info, err := d.file.Stat()
	if err != nil || info.Size() < 2 {
		return 0, ""
	}
	f, err := openOwn(d.state, 0, 0)
	if err != nil {
		return 0, ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, longestETag))
	if err != nil || !etagForm.Match(text) {
		return 0, ""
	}
	return info.Size() - 1, string(text)
}

// begin makes the partial file end where the stream begins, and records what it becomes.
func (d *download) begin(in *source) error {
	if err := d.file.Truncate(in.next); err != nil || in.next > 0 {
		return err
	}
	f, err := openOwn(d.state, os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteString(in.stream.ETag)
	}
	return errors.Join(err, f.Close())
}

// write writes the stream from a place of the file on. Blocks of zeros become holes. If it fails, the
// file ends with the last byte that came.
func (d *download) write(in io.Reader, at int64) error {
	var zeros [64 << 10]byte
	buf := make([]byte, len(zeros))
	for {
		n, err := io.ReadFull(in, buf)
		if n > 0 && !bytes.Equal(buf[:n], zeros[:n]) {
			if _, err := d.file.WriteAt(buf[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if err == nil {
			continue
		}
		// That of a stream that was cut wraps one of these.
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = nil
		}
		return errors.Join(err, d.file.Truncate(at))
	}
}

// finish gives the copy its time and its name.
func (d *download) finish(in *source) error {
	if in.stream.Size >= 0 && in.next != in.stream.Size {
		return fmt.Errorf("%d bytes came of a file of %d", in.next, in.stream.Size)
	}
	d.setTime(d.partial)
	err := d.file.Sync()
	if err == nil {
		err = d.mayReplace()
	}
	if err == nil {
		err = os.Rename(d.partial, d.dest)
	}
	if err != nil {
		return err
	}
	d.noteEnd(in)
	return os.Remove(d.state)
}

// forgetEmpty removes the partial file of a download that did not begin.
func (d *download) forgetEmpty() error {
	if info, err := d.file.Stat(); err != nil || info.Size() > 0 {
		return err
	}
	return os.Remove(d.partial)
}
