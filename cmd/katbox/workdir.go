package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/logkeys"
	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/scratch"
	"github.com/katbox/katbox/internal/store"
	"github.com/katbox/katbox/internal/volume"
)

// checkWorkdir refuses a working directory that other people's data is in: everything
// in there is Katbox's to delete. It is called before anything is made there.
func checkWorkdir(workdir, podsDir string) error {
	overlap, err := mount.Overlap(workdir, podsDir)
	switch {
	case err != nil:
		return fmt.Errorf("compare --workdir with the kubelet's pods directory: %w", err)
	case overlap:
		return fmt.Errorf("--workdir %s and the pods directory %s of --kubelet-dir contain one another, through a symbolic link or another mount; "+
			"give Katbox a directory of its own", workdir, podsDir)
	}
	for _, records := range []string{recordsFile, legacyFile} {
		if _, err := os.Lstat(filepath.Join(workdir, records)); !errors.Is(err, fs.ErrNotExist) {
			return nil // not the first start; what is wrong with the file is told when it is read
		}
	}
	foreign, err := scratch.Foreign(workdir)
	if err != nil || foreign == "" {
		return err
	}
	return fmt.Errorf("--workdir %s has no records of Katbox, but what is not Katbox's, such as %s; "+
		"give Katbox a directory of its own, or move everything else out of this one", workdir, filepath.Join(workdir, foreign))
}

// tellPropagation logs that what is mounted for pods stays in this mount namespace. It
// is no reason to end: a daemon beside its kubelet, without a container, needs nothing
// else, and which of both it is cannot be seen from here.
func tellPropagation(podsDir string, log logr.Logger) {
	switch propagates, err := mount.Propagates(podsDir); {
	case errors.Is(err, fs.ErrNotExist):
		// Not there yet; it is read again and again, and that says so.
	case err != nil:
		log.Info("cannot tell whether mounts get out of this mount namespace", "directory", podsDir, "cause", err.Error())
	case !propagates:
		log.Info("the pods directory is not on a shared mount: what is mounted for pods is not seen outside of this mount namespace; "+
			"in a container, mount the directory with mountPropagation: Bidirectional, or pods write to the kubelet's disk", "directory", podsDir)
	}
}

// openWorkdir makes the working directory a mount of its own, so that a bind
// mount costs the same with one mount on the node or with thousands.
func openWorkdir(path string, log logr.Logger) (*scratch.Dir, error) {
	// Once to make it, and once more to hold the mount and not what is below.
	dir, err := scratch.Open(path)
	if err != nil {
		return nil, err
	}
	if err := dir.Close(); err != nil {
		return nil, err
	}
	made, err := mount.EnsureOwn(path)
	if err != nil {
		return nil, fmt.Errorf("make the working directory a mount of its own, which takes root and CAP_SYS_ADMIN: %w", err)
	}
	log.V(1).Info("working directory", "path", path, "madeAMount", made)
	return scratch.Open(path)
}

// closeWorkdir undoes openWorkdir. The mount is left to another daemon that
// holds the lock on the records.
func closeWorkdir(dir *scratch.Dir, path string, locked bool, log logr.Logger) error {
	err := dir.Close()
	if !locked {
		return err
	}
	if busy := mount.ReleaseOwn(path); busy != nil {
		// Somebody looks at retained files. The next start finds the mount.
		log.Info("the working directory stays a mount of its own", "cause", busy.Error())
	}
	return err
}

// newMounter returns what mounts the volumes, and logs what becomes of noexec where the
// working directory has it. A pod expects a volume to be as an emptyDir: GKE's nodes mount
// /var with noexec, and remount /var/lib/kubelet, where the emptyDirs are, without.
func newMounter(o options, log logr.Logger) (*mount.Mounter, error) {
	noexec, err := mount.Noexec(o.workdir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("is the working directory mounted noexec: %w", err)
	case o.keepNoexec && noexec:
		log.Info("the working directory is mounted noexec, and volumes keep it, because of --keep-noexec", "path", o.workdir)
	case noexec:
		log.Info("the working directory is mounted noexec; it is cleared for volumes, so that pods can execute files in them", "path", o.workdir)
	}
	if o.keepNoexec {
		return mount.New(), nil
	}
	return mount.NewExecutable(func(err error) {
		log.Info("the kernel refuses to clear noexec, so volumes keep it: pods cannot execute files in them", "cause", err.Error())
	}), nil
}

// load calls each with what is known from an earlier run, the archived Katbox's
// included, and tells of what could not be read.
func load(records *store.Store, o options, log logr.Logger, each func(volume.Record)) error {
	now := time.Now()
	imported, err := records.ImportLegacy(filepath.Join(o.workdir, legacyFile), o.workdir, now)
	if err != nil {
		return err
	}
	for _, skipped := range imported.Skipped {
		log.Info("entry of the archived Katbox not imported; its data directory, if any, is retained for a full lifespan",
			"bucket", skipped.Bucket, logkeys.VolumeID, skipped.Key, "cause", skipped.Reason)
	}
	if imported.Before {
		log.Info("the archived Katbox's volumes were imported before the records were lost;"+
			" their data directories are retained for a full lifespan", "database", legacyFile)
	}
	if imported.Unmarked != nil {
		log.Info("if the records are lost, the archived Katbox's volumes will be imported once more",
			"database", legacyFile, "cause", imported.Unmarked.Error())
	}
	if imported.Done {
		log.Info("imported the archived Katbox's volumes", "published", imported.Published, "retained", imported.Retained)
	}
	damaged, err := records.Load(now, each)
	if err != nil {
		return err
	}
	for _, d := range damaged {
		log.Error(nil, "record cannot be read; its data directory is retained for a full lifespan", logkeys.VolumeID, d.ID, "cause", d.Reason)
	}
	if err := records.ReserveError(); err != nil {
		log.Info("no room reserved for records on a full disk", "cause", err.Error())
	}
	return nil
}

// logCompaction tells what became of a smaller copy of the records.
func logCompaction(c store.Compaction, log logr.Logger) {
	if c.Err != nil {
		log.Error(c.Err, "the file of records stays larger than it need be, so that each call writes more; tried again later",
			"file", recordsFile, "bytes", c.Before)
		return
	}
	log.Info("made the file of records smaller", "file", recordsFile, "before", c.Before, "after", c.After, "took", c.Took.String())
}
