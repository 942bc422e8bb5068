package iscsi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
)

// databases is where open-iscsi may keep its records: distributions differ.
var databases = []string{"/etc/iscsi", "/var/lib/iscsi", "/usr/local/etc/iscsi"}

// save writes the records for a login. The file of the target holds the secret: only root can read
// it, and no command line has it.
func (i *Initiator) save(ctx context.Context, r record) error {
	if err := i.saveInterface(ctx, r.Initiator); err != nil {
		return err
	}
	dir, err := i.locate(ctx)
	if err != nil {
		return err
	}
	portal := filepath.Join(dir, "nodes", r.Target, r.Host+","+r.Port+","+portalGroup)
	if err := kernel.MkdirAll(portal, 0o700); err != nil {
		return fmt.Errorf("open-iscsi's record: %w", err)
	}
	if err := replace(portal, i.config.Interface, r.text()); err != nil {
		return fmt.Errorf("open-iscsi's record: %w", err)
	}
	return nil
}

// saveInterface writes the record of our interface, if it does not say that already.
func (i *Initiator) saveInterface(ctx context.Context, initiator string) error {
	dir, err := i.locate(ctx)
	if err != nil {
		return err
	}
	want := interfaceText(i.config.Interface, initiator)
	if is, err := os.ReadFile(filepath.Join(dir, "ifaces", i.config.Interface)); err == nil && bytes.Equal(is, want) {
		return nil
	}
	dir = filepath.Join(dir, "ifaces")
	if err := errors.Join(kernel.MkdirAll(dir, 0o700), replace(dir, i.config.Interface, want)); err != nil {
		return fmt.Errorf("open-iscsi's record of the interface: %w", err)
	}
	return nil
}

// locate returns the directory of open-iscsi's records. It lets iscsiadm make a record of our
// interface, and looks where that is: such a record names a transport, which ours do not. iscsiadm
// refuses that while there are sessions of ours; then an earlier process has left a record.
func (i *Initiator) locate(ctx context.Context) (string, error) {
	i.locating.Lock()
	defer i.locating.Unlock()
	if i.database != "" {
		return i.database, nil
	}
	err := i.command(ctx, "-m", "iface", "-I", i.config.Interface, "-o", "new")
	var refused *commandError
	inUse := errors.As(err, &refused) && refused.status == sessionExists
	if err != nil && !inUse {
		return "", fmt.Errorf("record of our interface: %w", err)
	}
	for _, dir := range databases {
		dir = filepath.Join(i.config.Root, dir)
		text, err := os.ReadFile(filepath.Join(dir, "ifaces", i.config.Interface))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", fmt.Errorf("where open-iscsi keeps its records: %w", err)
		case inUse || bytes.Contains(text, []byte("iface.transport_name")):
			i.database = dir
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: iscsiadm keeps its record of the interface %s in none of %s below %s/", volume.ErrUnavailable,
		i.config.Interface, strings.Join(databases, ", "), i.config.Root)
}

// replace replaces a file of a directory by one that only root can read.
func replace(dir, name string, content []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// open-iscsi takes each file beside a record for a record. A second daemon writes the same.
	temporary := name + ".katbox-new"
	file, err := kernel.CreateIn(root, temporary, os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(kernel.WriteAt(file, content, 0), kernel.Sync(file), file.Close())
	if err == nil {
		err = kernel.RenameIn(root, temporary, name)
	}
	if err != nil {
		return errors.Join(err, kernel.RemoveIn(root, temporary))
	}
	return nil
}

// removeRecords removes the records of our interface for a target wherever open-iscsi may keep
// them, and that of the interface itself if nothing uses it.
func (i *Initiator) removeRecords(target string, noSessions bool) error {
	var failed error
	for _, dir := range databases {
		dir = filepath.Join(i.config.Root, dir)
		failed = errors.Join(failed, i.removeIn(filepath.Join(dir, "nodes", target)))
		others, err := filepath.Glob(filepath.Join(dir, "nodes", "*", "*", i.config.Interface))
		if failed = errors.Join(failed, err); !noSessions || len(others) > 0 {
			continue
		}
		failed = errors.Join(failed, removed(kernel.Remove(filepath.Join(dir, "ifaces", i.config.Interface))))
	}
	if failed != nil {
		return fmt.Errorf("open-iscsi's records: %w", failed)
	}
	return nil
}

// removeIn removes the records of our interface in the directory of a target, and the directories
// that are empty then.
func (i *Initiator) removeIn(dir string) error {
	portals, err := entries(dir)
	for _, portal := range portals {
		portal = filepath.Join(dir, portal)
		for _, name := range []string{i.config.Interface, i.config.Interface + ".katbox-new"} {
			err = errors.Join(err, removed(kernel.Remove(filepath.Join(portal, name))))
		}
		err = errors.Join(err, removed(kernel.Rmdir(portal)))
	}
	return errors.Join(err, removed(kernel.Rmdir(dir)))
}

// removed is the error of a removal, unless the name is gone, or is a directory that another record
// needs.
func removed(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}
