package socket

import (
	"fmt"
	"strings"
)

// maxPath is the longest path of a Unix socket in bytes (sun_path, without the
// final NUL).
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
	case path == "":
		return "", fmt.Errorf("endpoint %q has no path; write it as unix:///path/to/csi.sock", endpoint)
	case path[0] != '/':
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
