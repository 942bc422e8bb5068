package ephemeral

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
)

// unpublish unmounts the volume from a target. After its last target the volume is retained.
func (t *task) unpublish(target string) error {
	if err := t.unmountFor(target); err != nil {
		return t.unmountRefused(target, err)
	}
	// The data is retained even if the empty target directory cannot be removed.
	removeErr := removeTarget(target)
	if err := t.recordUnmounted(target); err != nil {
		return err
	}
	if removeErr != nil && t.record != nil {
		return fmt.Errorf("%w: volume %s is unmounted, but its target directory cannot be removed: %w", volume.ErrUnfinished, t.id, removeErr)
	}
	return nil
}

// unmountFor takes the volume off target. Where nothing is mounted although the volume is
// published, the mount table has to confirm that, because the kernel has confirmed no unmount.
func (t *task) unmountFor(target string) error {
	showing, err := t.shows(target)
	if err != nil {
		return err
	}
	if showing == mount.NotMounted && volume.PhaseOf(t.record).Live() {
		if err := t.confirmUnmounted(target); err != nil {
			return err
		}
		if showing, err = t.shows(target); err != nil { // the mount table took its time
			return err
		}
	}
	return t.in("unmount", func() error { return t.unmountSeen(target, showing) })
}

// recordUnmounted notes that the volume is not mounted at target any more.
func (t *task) recordUnmounted(target string) error {
	if t.record == nil {
		return t.retainUnknown(target)
	}
	// A retained volume that was mounted without being known to be has been used until now.
	inUse := t.unmounted && t.record.Phase == volume.Retained
	if !t.record.Phase.Live() && !inUse {
		return nil
	}
	if _, ok := t.record.Target(target); !ok && len(t.record.Targets) > 0 {
		return nil // it is mounted elsewhere, and stays so
	}
	next := t.record.WithoutTarget(target)
	if len(next.Targets) == 0 && next.Attach != (volume.Place{}) {
		if err := t.detach(); err != nil {
			t.stuck = err
			return fmt.Errorf("%w: volume %s is unmounted from %s, but that is not recorded: %w", volume.ErrUnfinished, t.id, target, err)
		}
		return nil
	}
	if len(next.Targets) > 0 {
		next.Phase = livePhase(next)
	} else {
		next = t.retained(next)
	}
	if err := t.save(next); err != nil {
		t.stuck = err
		return fmt.Errorf("%w: volume %s is unmounted from %s, but that is not recorded: %w", volume.ErrUnfinished, t.id, target, err)
	}
	if log := t.Log.V(1); log.Enabled() {
		log.Info("unpublished", logkeys.About(next, logkeys.Target, target, logkeys.Phase, next.Phase.String())...)
	}
	if next.Phase == volume.Retained {
		t.Metrics.OutcomeKnown(next.Outcome)
		t.afterlife.retained(next, unpublished)
	}
	return nil
}

// retainUnknown adopts the data directory of an unknown volume that was unmounted.
func (t *task) retainUnknown(target string) error {
	pod, err := volume.ParsePodUID("target_path", kubelet.PodOf(t.PodsDir, target))
	if err != nil {
		return nil // no pod, no data directory: nothing was left behind
	}
	return t.adopt(pod)
}

// unmountRefused records that the unmount was ordered, so that it is tried again until the kernel
// agrees, also after a restart.
func (t *task) unmountRefused(target string, cause error) error {
	t.stuck = cause
	if t.record != nil {
		if known, ok := t.record.Target(target); ok && !known.Leaving {
			known.Leaving = true
			next := t.record.WithTarget(known)
			next.Phase = livePhase(next)
			if err := t.save(next); err != nil {
				cause = errors.Join(cause, err)
			}
		}
	}
	switch {
	case errors.Is(cause, volume.ErrForeignMount):
		return cause
	case errors.Is(cause, unix.EBUSY):
		if inside := t.mountInside(target); inside != "" {
			return fmt.Errorf("%w: volume %s cannot be unmounted from %s: %s is mounted inside; unmount that on the node; "+
				"it is tried again until then: %w", volume.ErrBusy, t.id, target, inside, cause)
		}
		return fmt.Errorf("%w: volume %s cannot be unmounted: a process still uses %s; it is tried again until that ends: %w",
			volume.ErrBusy, t.id, target, cause)
	default:
		return fmt.Errorf("%w: volume %s cannot be unmounted from %s: %w", volume.ErrUncertain, t.id, target, cause)
	}
}

// mountInside returns where something is mounted below a target; empty if nothing is, or if it cannot be told.
func (t *task) mountInside(target string) string {
	points, err := t.Mounter.List()
	if err != nil {
		return "" // the kernel's error is told
	}
	for _, p := range points {
		if strings.HasPrefix(p.Path, target+"/") {
			return p.Path
		}
	}
	return ""
}

// livePhase is the phase of a volume that has targets.
func livePhase(r volume.Record) volume.Phase {
	for _, target := range r.Targets {
		if !target.Leaving {
			return volume.Published
		}
	}
	return volume.Unpublishing
}

// resumeUnpublish tries again to unmount every target whose unmount was ordered.
func (t *task) resumeUnpublish() error {
	var errs []error
	for _, target := range t.record.Targets {
		if target.Leaving {
			t.Metrics.UnmountRetried()
			errs = append(errs, t.unpublish(target.Path))
		}
	}
	if t.record.Phase == volume.Unpublishing && len(t.record.Targets) == 0 {
		errs = append(errs, t.recordUnmounted(""))
	}
	return errors.Join(errs...)
}

// adopt retains a data directory without a record as a volume.
func (t *task) adopt(pod volume.PodUID) error {
	if t.record != nil {
		if t.record.Pod != pod {
			return fmt.Errorf("%w: the data directory of pod %s has the ID of a volume of pod %s", volume.ErrConflict, pod, t.record.Pod)
		}
		return nil
	}
	exists, err := t.Scratch.Exists(volume.Place{Pod: pod, ID: t.id})
	if err != nil || !exists {
		return err
	}
	record := volume.Record{ID: t.id, Pod: pod}
	return t.retain(record, adopted)
}

// abandon retains a volume that the kubelet forgot and will not unpublish. It does nothing while the volume is
// mounted, or where nothing proves that its pod is gone: a kubelet that is down, or that has not come to it
// since a reboot, publishes it again.
//
// The directory of the pod is no proof that the pod is there. A kubelet that cannot remove all of it leaves the
// rest for ever (kubernetes#105536), mostly the file beside the target. But it removes the target only from pods
// that are gone.
func (t *task) abandon() error {
	t.doubted = false
	there, err := t.podThere()
	if err != nil {
		return err
	}
	found, err := t.readMounts(false)
	if err != nil {
		return err
	}
	if place := t.usedAt(t.record, "", found.volume(t.record.Data())); place != "" {
		if there {
			return nil // it is mounted by now
		}
		return t.errStillMounted(place)
	}
	record := *t.record
	if there && record.Outcome == volume.OutcomeUnknown { // else the kubelet or the API server has said that it ended
		leftover, err := kubelet.Leftover(t.PodsDir, record.Pod, record.VolumeName)
		if err != nil || !leftover {
			t.doubted = err == nil
			return err
		}
	}
	if record.Attach != (volume.Place{}) {
		return t.detach()
	}
	if record.Outcome == volume.Succeeded {
		record.Outcome = volume.OutcomeUnknown // of a pod that was removed by force nothing confirms it
	}
	return t.retain(record, abandoned)
}

// podThere reports whether there is a directory of the volume's pod, or none can be expected below this kubelet's.
func (t *task) podThere() (bool, error) {
	names := kubelet.PodsOf(t.PodsDir, t.record)
	if len(names) == 0 {
		return true, nil
	}
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(t.PodsDir, name)); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

// retain keeps the volume from now on.
func (t *task) retain(r volume.Record, reason string) error {
	next := t.retained(r)
	if err := t.save(next); err != nil {
		return err
	}
	t.Metrics.OutcomeKnown(next.Outcome)
	t.afterlife.retained(next, reason)
	return nil
}

// retained is the record of a volume that is kept from now on, for what its terms say. A hold ends
// when it would have: the volume was retained before, and in use all the same.
func (t *task) retained(r volume.Record) volume.Record {
	next := r.Retain(t.clock.now(), t.keeps(r))
	if r.Hold.Kind != volume.NoHold {
		next.Hold.For = max(r.Hold.For-next.Unpublished.Sub(r.Unpublished), 0)
	}
	return next
}
