package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/crashpoint"
)

// maxSocketPath is the longest path of a Unix socket in bytes (sun_path,
// without the final NUL).
const maxSocketPath = 107

// SocketPath returns the path in an endpoint such as unix:///csi/csi.sock.
func SocketPath(endpoint string) (string, error) {
	path, ok := strings.CutPrefix(endpoint, "unix://")
	if !ok {
		path, ok = strings.CutPrefix(endpoint, "unix:")
	}
	switch {
	case !ok:
		return "", fmt.Errorf("endpoint %q is not a Unix socket; write it as unix:///path/to/csi.sock", endpoint)
	case path == "":
		return "", fmt.Errorf("endpoint %q has no path; write it as unix:///path/to/csi.sock", endpoint)
	case len(path) > maxSocketPath:
		return "", fmt.Errorf("endpoint %q: the path of a Unix socket has at most %d bytes", endpoint, maxSocketPath)
	}
	return path, nil
}

// Listen opens the socket, which only root may use. A socket that a dead
// process left is taken over; one that somebody answers on is refused, and so
// is a file that is no socket.
func Listen(path string) (net.Listener, error) {
	err := crashpoint.Around("socket/mkdir", func() error { return os.MkdirAll(filepath.Dir(path), 0o750) })
	if err != nil {
		return nil, fmt.Errorf("make the directory of the socket: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	var l net.Listener
	err = crashpoint.Around("socket/bind", func() error {
		l, err = net.Listen("unix", path)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = crashpoint.Around("socket/chmod", func() error { return os.Chmod(path, 0o600) })
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
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
		return fmt.Errorf("%s exists and is not a socket; remove it or choose another --endpoint", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		return errors.Join(fmt.Errorf("another process serves %s; stop it or choose another --endpoint", path), c.Close())
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("is anybody serving %s: %w", path, err)
	}
	return crashpoint.Around("socket/remove-stale", func() error { return os.Remove(path) })
}
