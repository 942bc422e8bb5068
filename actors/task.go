package actors

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"

	"github.com/katbox/katbox/internal/scratch"
	"github.com/katbox/katbox/internal/volume"
)

// Mounter mounts and unmounts; *mount.Mounter is one.
type Mounter interface {
	mountutils.Interface
	// ReadOnly tells whether the mount at path refuses writes.
	ReadOnly(path string) (bool, error)
}

// environment is what all operations work with. It does not change after the
// start.
type environment struct {
	// ctx ends when the daemon stops: long operations give up then.
	ctx     context.Context
	mounter Mounter
	scratch *scratch.Dir
	records recorderClient
	workers *workers
	// podsDir is <kubelet dir>/pods.
	podsDir  string
	lifespan time.Duration
	// orphanGrace is how long a pod directory must be absent before its volume
	// is taken as left behind.
	orphanGrace time.Duration
	log         logr.Logger
}

// task is one operation on one volume: plain sequential code that runs in a
// goroutine of its own, with the volume to itself. It works on a copy of what
// is known of the volume, and the volume actor takes that over when it ends.
type task struct {
	*environment
	id volume.ID
	// record is what is known of the volume; nil when nothing is.
	record *volume.Record
	// trash is the volume's name in the trash once its deletion got so far.
	trash string
	// stuck says why the volume has to be resumed later.
	stuck error
}

func (t *task) phase() volume.Phase {
	if t.record == nil {
		return 0
	}
	return t.record.Phase
}

// save makes a record durable and takes it as what is known of the volume.
func (t *task) save(next volume.Record) error {
	if from := t.phase(); from != next.Phase && !from.CanBecome(next.Phase) {
		return fmt.Errorf("volume %s cannot change from %s to %s", t.id, from, next.Phase)
	}
	if err := t.records.save(next); err != nil {
		return fmt.Errorf("record volume %s as %s: %w", t.id, next.Phase, err)
	}
	t.record = &next
	return nil
}

// forget removes the volume's record.
func (t *task) forget() error {
	if err := t.records.forget(t.id); err != nil {
		return fmt.Errorf("forget volume %s: %w", t.id, err)
	}
	t.record = nil
	return nil
}

// isMounted tells whether something is mounted at target. A target that does
// not exist has nothing mounted.
func (e *environment) isMounted(target string) (bool, error) {
	mounted, err := e.mounter.IsMountPoint(target)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	return mounted, err
}

// maxStackedMounts bounds how many mounts are taken off one target. Mounts
// stack; an old driver or a doubled call may have left more than one.
const maxStackedMounts = 16

// unmount takes everything off target. It returns nil only once the kernel
// confirms that nothing is mounted there.
func (e *environment) unmount(target string) error {
	for range maxStackedMounts {
		mounted, err := e.isMounted(target)
		if err != nil || !mounted {
			return err
		}
		// EINVAL: not mounted any more. The next round asks again.
		if err := e.mounter.Unmount(target); err != nil && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return fmt.Errorf("something is still mounted on %s after %d unmounts", target, maxStackedMounts)
}

// removeTarget removes the empty directory that was the mount point, as the
// CSI specification demands.
func removeTarget(target string) error {
	err := os.Remove(target)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

// owns tells whether what is mounted at target is this volume's data directory.
func (t *task) owns(target string) bool {
	pod := t.podOf(target)
	if t.record != nil {
		if _, ok := t.record.Target(target); ok {
			return true
		}
		pod = string(t.record.Pod)
	}
	if pod == "" {
		return false
	}
	mounted, err := os.Lstat(target)
	if err != nil {
		return false
	}
	data, err := os.Lstat(t.scratch.Path(volume.PodUID(pod), t.id))
	return err == nil && os.SameFile(mounted, data)
}

// podOf returns the name of the pod directory that target is in.
func (e *environment) podOf(target string) string {
	below, err := filepath.Rel(e.podsDir, target)
	if err != nil || below == ".." || strings.HasPrefix(below, "../") {
		return ""
	}
	pod, _, _ := strings.Cut(below, "/")
	return pod
}

// noSpace tells whether an error means that the file system is full.
func noSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
