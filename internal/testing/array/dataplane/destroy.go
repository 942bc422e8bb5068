package dataplane

import (
	"errors"
	"os"
	"path/filepath"
)

// Destroy removes everything: initiators, exports, volumes, snapshots, the target, the addresses. Only the
// NFS server stays, which other arrays of the machine may use. It goes on after an error.
func (k *Kernel) Destroy() error {
	found, err := k.Found(k.target)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range found.Exports {
		errs = append(errs, k.Unexport(e))
	}
	for _, iqn := range found.Initiators {
		errs = append(errs, k.Dismiss(iqn))
	}
	for _, id := range found.Disks {
		errs = append(errs, k.Delete(id))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := os.Stat(k.group()); k.target != "" && err == nil {
		errs = append(errs, k.listen(nil), k.enable("0"), os.Remove(k.group()), os.Remove(filepath.Dir(k.group())))
	}
	// An array that was down has stopped the server of all.
	errs = append(errs, k.answerAt(nil, false), serveExports(true))
	return errors.Join(errs...)
}
