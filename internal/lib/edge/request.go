package edge

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// maxPath is the longest path that the kernel accepts, without the final NUL.
const maxPath = 4095

// Path returns a path of a request, cleaned. It refuses one that is not absolute, that leads upwards, or
// that the kernel cannot take.
func Path(field, path string) (string, error) {
	switch {
	case path == "":
		return "", volume.Invalid(field, "is missing")
	case len(path) > maxPath:
		return "", volume.Invalid(field, "is longer than 4095 bytes")
	case strings.ContainsRune(path, 0):
		return "", volume.Invalid(field, "contains a NUL byte")
	case !filepath.IsAbs(path):
		return "", volume.Invalid(field, "is not an absolute path")
	case slices.Contains(strings.Split(path, "/"), ".."):
		return "", volume.Invalid(field, `contains ".."`)
	}
	return filepath.Clean(path), nil
}

// RequiredID refuses the ID of a pool's volume, a snapshot or a node that is missing.
func RequiredID(field, id string) error {
	if id == "" {
		return volume.Invalid(field, "is missing")
	}
	return nil
}

// KnownID refuses an ID that is missing. One that nothing can have is unknown, not invalid: to delete it
// is a success.
func KnownID(field, id string) error {
	if err := RequiredID(field, id); err != nil {
		return err
	}
	if !pools.IsID(id) {
		return fmt.Errorf("%s %.300q: %w", field, id, volume.ErrNotFound)
	}
	return nil
}
