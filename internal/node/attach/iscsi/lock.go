package iscsi

import (
	"errors"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// recordsLock is a second name of a file, which iscsiadm makes while it reads or writes
// open-iscsi's records, for milliseconds. One that is killed then leaves it. Each iscsiadm on the host
// waits for it, half a minute for each record, and fails.
const recordsLock = "/run/lock/iscsi/lock.write"

// staleLock is the age from which a lock is of an iscsiadm that was killed.
const staleLock = time.Minute

// breakLock removes a stale lock.
func (i *Initiator) breakLock() error {
	path := filepath.Join(i.config.Root, recordsLock)
	var st unix.Stat_t
	err := kernel.IgnoreEINTR(func() error { return unix.Lstat(path, &st) })
	if err != nil || i.now().Sub(time.Unix(st.Ctim.Unix())) < staleLock {
		if errors.Is(err, unix.ENOENT) {
			err = nil
		}
		return err
	}
	i.log.Info("removes a lock of open-iscsi's records that an iscsiadm left that was killed", "path", path)
	return removed(kernel.Remove(path))
}
