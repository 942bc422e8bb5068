package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
)

// Listener listens on a Unix socket and knows its file.
type Listener struct {
	*net.UnixListener
	path string
	// file is what was made of the path.
	file  fs.FileInfo
	close func() error
}

// Listen opens the socket, which only root may use. A socket that a dead
// process left is taken over; one that somebody answers on is refused, and so
// is a file that is no socket.
func Listen(path string) (*Listener, error) {
	if err := kernel.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make the directory of the socket: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	bound, err := kernel.ListenUnix(path)
	if err != nil {
		return nil, err
	}
	l := &Listener{UnixListener: bound, path: path}
	l.close = sync.OnceValue(l.remove)
	err = kernel.Chmod(path, 0o600)
	if err == nil {
		l.file, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(err, bound.Close())
	}
	// It goes by the path alone, whatever is there.
	bound.SetUnlinkOnClose(false)
	return l, nil
}

// InPlace tells whether the path still leads here: somebody may have removed the
// file, or its directory, or have put another one there.
func (l *Listener) InPlace() bool {
	now, err := os.Lstat(l.path)
	// A file that was made later can have the inode's number.
	return err == nil && os.SameFile(now, l.file) && now.ModTime().Equal(l.file.ModTime())
}

// Lost returns an error as soon as the path does not lead here any more, at which
// it looks after each interval; nil when ctx ends before.
func (l *Listener) Lost(ctx context.Context, interval time.Duration) error {
	look := time.NewTicker(interval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
			if !l.InPlace() {
				return fmt.Errorf("somebody has removed the socket %s, or put another file there", l.path)
			}
		}
	}
}

// Close accepts no further connections and removes the socket's file.
func (l *Listener) Close() error { return l.close() }

func (l *Listener) remove() error {
	var err error
	if l.InPlace() { // before nobody answers any more
		err = kernel.Remove(l.path)
	}
	return errors.Join(err, l.UnixListener.Close())
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket; remove it or choose another path", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		return errors.Join(fmt.Errorf("another process serves %s; stop it or choose another path", path), c.Close())
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("is anybody serving %s: %w", path, err)
	}
	return kernel.Remove(path)
}
