package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/scratch"
	"github.com/katbox/katbox/internal/node/store"
)

// openWorkdir opens the working directory and makes it a mount of its own, so that a bind mount
// costs the same with one mount on the node or with thousands.
func (i *instance) openWorkdir(context.Context) error {
	path := i.o.workdir
	if err := i.checkWorkdir(); err != nil {
		return err
	}
	i.logPropagation()
	// The first Open makes the directory, the second one opens the mount on top of it.
	dir, err := scratch.Open(path)
	if err != nil {
		return err
	}
	if err := dir.Close(); err != nil {
		return err
	}
	made, err := mount.EnsureOwn(path)
	if err != nil {
		return fmt.Errorf("make the working directory a mount of its own, which needs root and CAP_SYS_ADMIN: %w", err)
	}
	i.log.V(1).Info("working directory", logkeys.Path, path, "madeAMount", made)
	if i.dir, err = scratch.Open(path); err != nil {
		return err
	}
	i.onStop(i.closeWorkdir)
	return nil
}

// closeWorkdir undoes openWorkdir. It leaves the mount to another daemon that locks the records.
func (i *instance) closeWorkdir(context.Context) error {
	err := i.dir.Close()
	if i.records == nil {
		return err
	}
	if busy := mount.ReleaseOwn(i.o.workdir); busy != nil {
		// A process has retained files open. The next start finds the mount.
		i.log.Info("the working directory stays a mount of its own", logkeys.Cause, busy.Error())
	}
	return err
}

// checkWorkdir refuses a working directory that contains other data, which Katbox would delete. It
// must run before anything is made there.
func (i *instance) checkWorkdir() error {
	workdir, podsDir := i.o.workdir, i.o.podsDir()
	overlap, err := mount.Overlap(workdir, podsDir)
	switch {
	case err != nil:
		return fmt.Errorf("compare --workdir with the kubelet's pods directory: %w", err)
	case overlap:
		return fmt.Errorf("--workdir %s and the pods directory %s of --kubelet-dir contain one another, "+
			"through a symbolic link or another mount; give Katbox a directory of its own", workdir, podsDir)
	}
	for _, records := range []string{recordsFile, legacyFile} {
		if _, err := os.Lstat(filepath.Join(workdir, records)); !errors.Is(err, fs.ErrNotExist) {
			return nil // not the first start; reading the file reports what is wrong with it
		}
	}
	foreign, err := scratch.Foreign(workdir)
	if err != nil || foreign == "" {
		return err
	}
	return fmt.Errorf("--workdir %s contains no records of Katbox, but files of others, such as %s; "+
		"give Katbox a directory of its own, or move everything else out of this one", workdir, filepath.Join(workdir, foreign))
}

// logPropagation logs if mounts for pods stay in this mount namespace. The daemon goes on: it
// cannot tell whether it is in a container, and beside its kubelet it needs no propagation.
func (i *instance) logPropagation() {
	podsDir := i.o.podsDir()
	switch propagates, err := mount.Propagates(podsDir); {
	case errors.Is(err, fs.ErrNotExist):
		// It does not exist yet. The daemon reads it regularly and reports it then.
	case err != nil:
		i.log.Info("cannot tell whether mounts leave this mount namespace", logkeys.Directory, podsDir, logkeys.Cause, err.Error())
	case !propagates:
		i.log.Info("the pods directory is not on a shared mount: mounts for pods are not visible outside of this mount namespace; "+
			"in a container, mount the directory with mountPropagation: Bidirectional, or pods write to the kubelet's disk",
			logkeys.Directory, podsDir)
	}
}

// newMounter returns the mounter of volumes. It logs what happens to noexec if the working
// directory is mounted so. A pod expects a volume to behave like an emptyDir: GKE's nodes mount
// /var with noexec, and remount /var/lib/kubelet without it.
func (i *instance) newMounter() (*mount.Mounter, error) {
	noexec, err := mount.Noexec(i.o.workdir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("is the working directory mounted noexec: %w", err)
	case i.o.keepNoexec && noexec:
		i.log.Info("the working directory is mounted noexec, and volumes keep it, because of --keep-noexec", logkeys.Path, i.o.workdir)
	case noexec:
		i.log.Info("the working directory is mounted noexec; it is cleared for volumes, so that pods can execute files in them",
			logkeys.Path, i.o.workdir)
	}
	if i.o.keepNoexec {
		return mount.New(), nil
	}
	return mount.NewExecutable(func(err error) {
		i.log.Info("the kernel refuses to clear noexec, so volumes keep it: pods cannot execute files in them", logkeys.Cause, err.Error())
	}), nil
}

// load calls each with every record of an earlier run, including the archived Katbox's, and logs
// what it could not read.
func (i *instance) load(each func(volume.Record)) error {
	now := time.Now()
	imported, err := i.records.ImportLegacy(filepath.Join(i.o.workdir, legacyFile), i.o.workdir, now)
	if err != nil {
		return err
	}
	for _, skipped := range imported.Skipped {
		i.log.Info("entry of the archived Katbox not imported; its data directory, if any, is retained for a full lifespan",
			"bucket", skipped.Bucket, logkeys.VolumeID, skipped.Key, logkeys.Cause, skipped.Reason)
	}
	if imported.Before {
		i.log.Info("the archived Katbox's volumes were imported before the records were lost;"+
			" their data directories are retained for a full lifespan", "database", legacyFile)
	}
	if imported.Unmarked != nil {
		i.log.Info("if the records are lost, the archived Katbox's volumes will be imported once more",
			"database", legacyFile, logkeys.Cause, imported.Unmarked.Error())
	}
	if imported.Done {
		i.log.Info("imported the archived Katbox's volumes", "published", imported.Published, "retained", imported.Retained)
	}
	damaged, err := i.records.Load(now, each)
	if err != nil {
		return err
	}
	for _, d := range damaged {
		i.log.Error(nil, "record cannot be read; its data directory is retained for a full lifespan",
			logkeys.VolumeID, d.ID, logkeys.Cause, d.Reason)
	}
	if err := i.records.ReserveError(); err != nil {
		i.log.Info("no room reserved for records on a full disk", logkeys.Cause, err.Error())
	}
	return nil
}

// logCompaction logs the outcome of a smaller copy of the records.
func (i *instance) logCompaction(c store.Compaction) {
	log := i.log.WithValues("file", recordsFile)
	if c.Err != nil {
		log.Error(c.Err, "the file of records stays larger than it need be, so that each call writes more; tried again later", "bytes", c.Before)
		return
	}
	log.Info("made the file of records smaller", "before", c.Before, "after", c.After, "took", c.Took.String())
}
