package nfs

import "errors"

// Mount mounts an export, such as 10.0.0.1:/export/x, at the directory target.
func Mount(export, target string, options []string, readOnly bool) error {
	return errors.ErrUnsupported
}
