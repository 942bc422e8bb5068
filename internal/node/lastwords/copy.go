package lastwords

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// batch is how many bytes are copied at once.
	batch = 256 << 10
	// longestLine is how far a cut looks for the beginning of a line. A runtime cuts lines of 16 KiB.
	longestLine = 1 << 20

	directoryMode, fileMode = 0o755, 0o644
)

// Kept says what Copy has kept.
type Kept struct {
	Files int
	// Bytes are those that were kept, Missing those that were not: there were more than the limit allows, or they could
	// not be read.
	Bytes, Missing int64
	// Interrupted: it is what an earlier copy has kept before it was interrupted.
	Interrupted bool
	// End: beside them it is kept how the pod has ended. Copy does not keep that.
	End bool
}

// Copy copies the files of a pod that is followed into the open directory to, each into a directory with the name of its
// container, under the name that the kubelet gave it. Of all together it keeps no more bytes than limit: the end of the
// newest. What is missing then stands in the file [api.MissingLogs]. On a file system that can, a copy shares the blocks
// of what it is a copy of.
//
// It calls pace after each 256 KiB, which may wait. What an earlier Copy has left in the directory is replaced, unless
// there is nothing of the pod any more. The error says why the directory does not take what is copied, or is that of pace;
// what cannot be read is missing.
func (l *Logs) Copy(ctx context.Context, of volume.PodUID, to int, limit int64, pace func(context.Context) error) (Kept, error) {
	p := l.upToDate(of)
	if p == nil {
		return Kept{}, nil
	}
	c := copying{ctx: ctx, pace: pace, to: to, written: map[name]bool{}}
	for _, f := range p.opened() {
		defer unix.Close(f.fd)
		if st, err := kernel.Fstat(f.fd); err == nil {
			c.parts = append(c.parts, part{file: f, size: st.Size})
		}
	}
	if len(c.parts) == 0 {
		return Kept{}, nil
	}
	plan(c.parts, limit)
	return c.kept, c.all()
}

// Has reports whether there is a file of a pod that is followed.
func (l *Logs) Has(of volume.PodUID) bool {
	p := l.upToDate(of)
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found := false
	p.lookAgain(func(name, int) { found = true })
	return found || len(p.files) > 0
}

// copying is one Copy.
type copying struct {
	ctx     context.Context
	pace    func(context.Context) error
	to      int
	parts   []part
	written map[name]bool
	kept    Kept
	missing api.LogsMissing
	// sinceRest is how many bytes were copied since pace was called.
	sinceRest int
}

func (c *copying) all() error {
	for i := range c.parts {
		p := &c.parts[i]
		err := c.ctx.Err()
		if err == nil {
			err = c.file(p)
		}
		if err != nil {
			return fmt.Errorf("keep log %s of container %s: %w", p.file.file, p.container, err)
		}
	}
	if err := c.removeOthers(); err != nil {
		return fmt.Errorf("remove logs that were kept before: %w", err)
	}
	if len(c.missing.Files) == 0 {
		return nil
	}
	return writeMissing(c.to, c.missing)
}

func (c *copying) file(p *part) error {
	if p.from > 0 && p.from < p.size {
		p.from = lineFrom(p.fd, p.from, p.size)
	}
	if p.from > 0 {
		c.lacks(p, p.from, api.LogsLimit)
	}
	if p.from == p.size && p.size > 0 {
		return nil
	}
	err := kernel.Mkdirat(c.to, p.container, directoryMode)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	dir, err := kernel.Openat(c.to, p.container, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	const flags = unix.O_WRONLY | unix.O_EXCL | unix.O_NOFOLLOW
	written := p.file.file
	to, err := kernel.Createat(dir, written, flags, fileMode)
	if errors.Is(err, unix.EEXIST) { // it stays until the new one is whole
		written += ".new"
		if err := kernel.Unlinkat(dir, written); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		to, err = kernel.Createat(dir, written, flags, fileMode)
	}
	if err != nil {
		return err
	}
	defer unix.Close(to)
	if p.from == 0 && kernel.Clone(to, p.fd) == nil {
		c.kept.Bytes += p.size
	} else if err := c.bytes(p, to); err != nil {
		return err
	}
	if written != p.file.file {
		if err := kernel.Renameat(dir, written, dir, p.file.file); err != nil {
			return err
		}
	}
	c.written[p.name] = true
	c.kept.Files++
	return nil
}

// bytes copies what is kept of a file. What a file does not give is missing.
func (c *copying) bytes(p *part, to int) error {
	buffer := make([]byte, min(batch, p.size-p.from))
	for at := p.from; at < p.size; {
		if c.sinceRest >= batch {
			c.sinceRest = 0
			if err := c.pace(c.ctx); err != nil {
				return err
			}
		}
		n, err := read(p.fd, buffer[:min(int64(len(buffer)), p.size-at)], at)
		if err != nil || n == 0 {
			c.lacks(p, p.size-at, api.LogsUnreadable)
			return nil
		}
		if err := kernel.Pwrite(to, buffer[:n], at-p.from); err != nil {
			return err
		}
		at += int64(n)
		c.kept.Bytes += int64(n)
		c.sinceRest += n
	}
	return nil
}

func (c *copying) lacks(p *part, bytes int64, why string) {
	c.kept.Missing += bytes
	c.missing.Files = append(c.missing.Files, api.LogMissing{Container: p.container, File: p.file.file, Bytes: bytes, Why: why})
}

// read reads some bytes of a file from an offset on; none is its end.
func read(fd int, b []byte, offset int64) (n int, err error) {
	err = kernel.IgnoreEINTR(func() error {
		n, err = unix.Pread(fd, b, offset)
		return err
	})
	return n, err
}

// lineFrom returns where the next line begins, from a byte of a file on.
func lineFrom(fd int, from, size int64) int64 {
	buffer := make([]byte, 4<<10)
	for at := from - 1; at < min(size, from+longestLine); {
		n, err := read(fd, buffer, at)
		if err != nil || n == 0 {
			return from
		}
		if i := bytes.IndexByte(buffer[:n], '\n'); i >= 0 {
			return min(at+int64(i)+1, size)
		}
		at += int64(n)
	}
	return from
}
