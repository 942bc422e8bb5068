package mount

import (
	"fmt"
	"strings"
)

// Propagates tells whether mounts made below the directory dir get to other mount
// namespaces: whether the mount that it is on is a shared one.
//
// It reads the whole mount table: meant for the start.
func Propagates(dir string) (bool, error) {
	resolved, id, err := resolve(dir)
	if err != nil {
		return false, err
	}
	table, err := readTable()
	if err != nil {
		return false, err
	}
	here, err := locate(table, resolved, id)
	if err != nil {
		return false, fmt.Errorf("propagation of %s: %w", dir, err)
	}
	return strings.HasPrefix(here.mount.Optional, "shared:"), nil
}
