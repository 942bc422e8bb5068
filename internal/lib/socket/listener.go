// Package socket opens the Unix sockets that the kubelet and people on the node call.
package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// mode lets only root connect.
const mode = 0o600

// Listener listens on a Unix socket and knows its file.
type Listener struct {
	*net.UnixListener
	path  string
	file  fs.FileInfo
	close func() error
}

// Listen opens the socket, which only root may use. It takes over a socket that a dead process
// left. It refuses one that a process answers on, and a file that is no socket.
func Listen(path string) (*Listener, error) {
	if err := kernel.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make the directory of the socket: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	bound, err := kernel.ListenUnix(path, mode)
	if err != nil {
		return nil, err
	}
	l := &Listener{UnixListener: bound, path: path}
	l.close = sync.OnceValue(l.remove)
	// Not every kernel heeds the mode when it makes the file.
	err = kernel.Chmod(path, mode)
	if err == nil {
		l.file, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(err, bound.Close())
	}
	// UnixListener would remove whatever is at the path.
	bound.SetUnlinkOnClose(false)
	return l, nil
}

// InPlace reports whether the path still leads to this socket: the file or its directory may have
// been removed or replaced.
func (l *Listener) InPlace() bool {
	now, err := os.Lstat(l.path)
	// A later file can have the same inode number.
	return err == nil && os.SameFile(now, l.file) && now.ModTime().Equal(l.file.ModTime())
}

// Lost looks after each interval whether the path still leads to this socket, and returns an error
// once it does not. It returns nil when ctx ends.
func (l *Listener) Lost(ctx context.Context, interval time.Duration) error {
	look := time.NewTicker(interval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
			if !l.InPlace() {
				return fmt.Errorf("the socket %s was removed, or another file was put in its place", l.path)
			}
		}
	}
}

// Close accepts no further connections and removes the socket's file, but not another in its place.
func (l *Listener) Close() error { return l.close() }

func (l *Listener) remove() error {
	var err error
	if l.InPlace() { // while it still answers
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
	// The kernel answers at once, so there is no time limit that a busy machine could exceed.
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		return errors.Join(serves(path), c.Close())
	case errors.Is(err, unix.EAGAIN): // so many wait to be accepted that no more may
		return serves(path)
	case !errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("look for a process that serves %s: %w", path, err)
	}
	return kernel.Remove(path)
}

func serves(path string) error {
	return fmt.Errorf("another process serves %s; stop it or choose another path", path)
}

// maxPath is the longest path of a Unix socket in bytes (sun_path, without the final NUL).
const maxPath = 107

// Path returns the absolute path in an endpoint such as unix:///csi/csi.sock.
func Path(endpoint string) (string, error) {
	path, ok := strings.CutPrefix(endpoint, "unix://")
	if !ok {
		path, ok = strings.CutPrefix(endpoint, "unix:")
	}
	switch {
	case !ok:
		return "", fmt.Errorf("endpoint %q is not a Unix socket; write it as unix:///path/to/csi.sock", endpoint)
	case !filepath.IsAbs(path):
		return "", fmt.Errorf("endpoint %q: %q is not an absolute path; write it as unix:///path/to/csi.sock", endpoint, path)
	}
	if err := CheckPath(path); err != nil {
		return "", fmt.Errorf("endpoint %w", err)
	}
	return path, nil
}

// CheckPath refuses a path that is too long for a Unix socket.
func CheckPath(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("%q has %d bytes, and the path of a Unix socket at most %d", path, len(path), maxPath)
	}
	return nil
}
