package ephemeral

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/scratch"
)

// publish mounts the volume at a target. It makes the intent durable first, so that the volume is
// known after a crash at any step. If a later step fails, it undoes everything that it did.
func (t *task) publish(p volume.Publication) error {
	if err := t.mayPublish(p); err != nil {
		return err
	}
	if err := t.dropStaleTargets(p.Target.Path); err != nil {
		return err
	}
	if err := t.checkAccessMode(p.Target); err != nil {
		return err
	}
	done, err := t.alreadyPublished(p)
	if done || err != nil {
		return err
	}

	if err := t.hasRoom(p); err != nil {
		return err
	}

	before, intent := t.record, t.intent(p)
	if err := t.takeProject(&intent); err != nil {
		return failedAndUndone(err)
	}
	had := uint32(0)
	if before != nil {
		had = before.Project
	}
	if err := t.save(intent); err != nil {
		if intent.Project != had {
			t.Quota.Forgotten(intent.Project)
		}
		return failedAndUndone(err)
	}
	if intent.Project != had {
		t.Quota.Forgotten(had)
	}
	madeTarget, err := t.mount(p)
	if err != nil {
		return t.undo(before, p.Target.Path, madeTarget, err)
	}
	t.markPublished(p)
	if before == nil && p.Cut != "" {
		t.Log.Info("what the volume asks for is cut to the bounds of its namespace", logkeys.About(*t.record, "cut", p.Cut)...)
	}
	if log := t.Log.V(1); log.Enabled() {
		log.Info("published", logkeys.About(*t.record, logkeys.Target, p.Target.Path)...)
	}
	return nil
}

// mayPublish refuses what contradicts what is known of the volume.
func (t *task) mayPublish(p volume.Publication) error {
	switch {
	case t.record == nil: // the actor has answered a first publish that is refused
		return nil
	case t.record.Phase == volume.Deleting:
		return fmt.Errorf("%w: volume %s is being deleted; try again", volume.ErrBusy, t.id)
	case t.record.Attach != p.Attach:
		return fmt.Errorf("%w: volume %s was published with another attribute attach", volume.ErrConflict, t.id)
	case t.record.Pod != p.Pod:
		return fmt.Errorf("%w: volume %s belongs to pod %s, not to pod %s", volume.ErrConflict, t.id, t.record.Pod, p.Pod)
	}
	return nil
}

// hasRoom refuses a new volume for which pods have not a byte: what the file system reserves for root is
// free to the daemon alone. A disk that cannot be measured refuses by itself.
func (t *task) hasRoom(p volume.Publication) error {
	if t.record != nil || p.Attach != (volume.Place{}) {
		return nil
	}
	space, err := t.Space()
	if err != nil || space.Total.Bytes == 0 || space.Free.Bytes > 0 {
		return nil
	}
	return fmt.Errorf("%w %s: no byte is left that a pod could write", volume.ErrNoSpace, volume.InWorkdir)
}

// dropStaleTargets forgets the targets, except one, at which the volume is not mounted any more:
// they are gone with a reboot.
func (t *task) dropStaleTargets(except string) error {
	if t.record == nil {
		return nil
	}
	for _, target := range t.record.Targets {
		if target.Path == except {
			continue
		}
		showing, err := t.shows(target.Path)
		if err != nil {
			return err
		}
		if showing != mount.NotMounted {
			continue
		}
		if err := t.confirmUnmounted(target.Path); err != nil {
			return err
		}
		withoutStale := t.record.WithoutTarget(target.Path)
		t.setRecord(&withoutStale)
	}
	return nil
}

// checkAccessMode refuses a second target unless the access modes of both allow it.
func (t *task) checkAccessMode(target volume.Target) error {
	if t.record == nil {
		return nil
	}
	for _, other := range t.record.Targets {
		if other.Path != target.Path && (!other.MultiWriter || !target.MultiWriter) {
			return fmt.Errorf("%w: volume %s is mounted on %s, and its access mode allows no second target",
				volume.ErrOtherTarget, t.id, other.Path)
		}
	}
	return nil
}

// alreadyPublished handles a target on which something is mounted: by this call's twin, or by one
// that was interrupted. done means that the volume is published; else the target is free.
func (t *task) alreadyPublished(p volume.Publication) (done bool, err error) {
	target := p.Target.Path
	showing, err := t.shows(target)
	switch {
	case err != nil:
		return false, err
	case showing == mount.NotMounted:
		return false, nil
	case showing == mount.ShowsOther, showing == mount.ShowsBeneath && !t.hasTarget(target):
		return false, t.errForeignMount(target)
	case showing == mount.ShowsNamesake:
		return false, fmt.Errorf("%w: %s shows volume %s as it is in another working directory, or on another disk; delete its pod: %s",
			volume.ErrForeignMount, target, t.id, t.topmost(target))
	}
	whole, err := t.isWhole(p.Target, showing)
	if err != nil {
		return false, err
	}
	if !whole {
		// No reply said that it is there, or its data directory was removed.
		if err := t.unmount(target); err != nil {
			return false, fmt.Errorf("%w: mount volume %s anew: %w", volume.ErrBusy, t.id, err)
		}
		return false, nil
	}
	if known, _ := t.record.Target(target); known.Leaving {
		if err := t.save(t.intent(p)); err != nil {
			return false, fmt.Errorf("%w: %w", volume.ErrUncertain, err)
		}
	}
	t.markPublished(p)
	return true, nil
}

// isWhole reports whether the mount at a target is what a publish would make. It refuses a mount that
// was made with other parameters.
func (t *task) isWhole(target volume.Target, showing mount.Showing) (bool, error) {
	if !t.hasTarget(target.Path) || showing == mount.ShowsRemoved {
		return false, nil
	}
	known, _ := t.record.Target(target.Path)
	if t.record.Attach != (volume.Place{}) {
		known.ReadOnly = target.ReadOnly // it is read-only in any case
	}
	if !known.SameMount(target) {
		return false, fmt.Errorf("%w: volume %s is mounted on %s with read-only %t and flags %q, asked for read-only %t and flags %q",
			volume.ErrConflict, t.id, known.Path, known.ReadOnly, known.Flags, target.ReadOnly, target.Flags)
	}
	// On top lies what a process of the pod has mounted: so the call was answered.
	if !target.ReadOnly || showing == mount.ShowsBeneath {
		return true, nil
	}
	// A crash between a bind and its flags left it writable, before the call was answered.
	readOnly, err := t.Mounter.ReadOnly(target.Path)
	if err != nil {
		return false, fmt.Errorf("%w: is %s read-only: %w", volume.ErrUncertain, target.Path, err)
	}
	return readOnly, nil
}

// intent is the record of a volume that is about to be mounted at the target.
func (t *task) intent(p volume.Publication) volume.Record {
	next := volume.Record{ID: p.ID, Pod: p.Pod, Attach: p.Attach}
	if t.record != nil {
		next = *t.record
	}
	return next.Publish(p, time.Now())
}

// markPublished notes that the mount is there. It records nothing: after a restart the mount table
// shows it. The names of a volume that was found mounted are recorded with its next change.
func (t *task) markPublished(p volume.Publication) {
	done := t.record.Named(p)
	done.Phase = volume.Published
	t.doubted = false
	t.setRecord(&done)
}

// mount makes the data directory and binds it on the target. madeTarget reports whether it made the
// target directory.
func (t *task) mount(p volume.Publication) (madeTarget bool, err error) {
	err = t.in("mkdir", func() error {
		if p.Attach != (volume.Place{}) {
			return nil // the data is there
		}
		created, err := t.Scratch.CreateAs(p.Place(), scratch.Making{Mode: t.record.Terms.Mode, Prepare: t.setProject})
		if err == nil && !created {
			err = t.markProject()
		}
		return volume.WantsRoom(err, volume.InWorkdir)
	})
	if err != nil {
		return false, err
	}
	madeTarget, err = makeTarget(p.Target.Path)
	if err != nil {
		return madeTarget, err
	}
	return madeTarget, t.in("mount", func() error {
		return t.Mounter.Mount(t.Scratch.Source(t.record.Data()), p.Target.Path, "", mountOptions(p))
	})
}

// makeTarget makes the target directory. The kubelet makes its parent; where that is missing, the
// pod was deleted meanwhile.
func makeTarget(target string) (made bool, err error) {
	err = kernel.Mkdir(target, 0o750)
	if !errors.Is(err, fs.ErrExist) {
		return err == nil, err
	}
	info, err := os.Lstat(target)
	if err != nil {
		return false, err
	}
	if !info.IsDir() {
		return false, fmt.Errorf("target path %s exists and is not a directory; remove it", target)
	}
	return false, nil
}

// mountOptions are those of a target. What another pod left cannot be written to. On the node it neither gives
// a process other rights nor is it a device: a container's runtime makes a mount of its own from this one, which
// is read-only too, but has nosuid and nodev only if the runtime sets them.
func mountOptions(p volume.Publication) []string {
	options := []string{"bind"}
	if p.Target.ReadOnly {
		options = append(options, "ro")
	}
	options = append(options, p.Target.Flags...)
	if p.Attach != (volume.Place{}) {
		options = append(options, "ro", "nosuid", "nodev")
		slices.Sort(options[1:])
		options = slices.Compact(options)
	}
	return options
}

// undo takes back what a failed publish did, and restores the record. Steps that fail are tried
// again later.
func (t *task) undo(before *volume.Record, target string, madeTarget bool, cause error) error {
	if err := t.undoMount(target, madeTarget); err != nil {
		next := *t.record
		known, _ := next.Target(target)
		known.Leaving = true
		next = next.WithTarget(known)
		next.Phase = volume.Unpublishing
		t.stuck = errors.Join(err, t.save(next))
		return fmt.Errorf("%w: %w; undoing it: %w", volume.ErrUncertain, cause, t.stuck)
	}
	if err := t.undoRecord(before); err != nil {
		return fmt.Errorf("%w: %w; undoing it: %w", volume.ErrUncertain, cause, err)
	}
	return failedAndUndone(cause)
}

func (t *task) undoMount(target string, madeTarget bool) error {
	if err := t.in("unmount", func() error { return t.unmount(target) }); err != nil {
		return err
	}
	if madeTarget {
		return removeTarget(target)
	}
	return nil
}

func (t *task) undoRecord(before *volume.Record) error {
	if before != nil {
		was := *before
		was.Project = t.record.Project // another volume may have it by now
		return t.saveDurably(was)      // it may go at a later time than what the disk has
	}
	if t.record.Attach != (volume.Place{}) {
		return t.forget()
	}
	if err := t.Scratch.RemoveEmpty(t.record.Place()); err != nil {
		// There was data before the record, or it cannot be told: keep it.
		return t.retain(*t.record, adopted)
	}
	return t.forget()
}

// failedAndUndone marks an error of a publish that left nothing behind, unless it is want of room, descriptors,
// memory or mounts: the kubelet is to try again then.
func failedAndUndone(err error) error {
	if errors.Is(err, mount.ErrTooMany) {
		return fmt.Errorf("%w: %w", volume.ErrExhausted, err)
	}
	if err = volume.Exhausted(err); errors.Is(err, volume.ErrNoSpace) || errors.Is(err, volume.ErrExhausted) {
		return err
	}
	return fmt.Errorf("%w: %w", volume.ErrFailed, err)
}
