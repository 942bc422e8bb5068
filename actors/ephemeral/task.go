package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/pace"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/scratch"
)

// Mounter mounts and unmounts; *mount.Mounter is one.
type Mounter interface {
	mountutils.Interface
	// ReadOnly reports whether the mount at path refuses writes.
	ReadOnly(path string) (bool, error)
	// Shows reports whether the topmost mount at target shows the directory source.
	Shows(target, source string) (mount.Showing, error)
	// Layers describes what is mounted at target, the lowest first.
	Layers(target, source string) ([]mount.Layer, error)
}

// environment is what all operations and actors work with. It does not change.
type environment struct {
	*actors.System
	Config
	// ctx ends when the daemon stops: long operations give up then.
	ctx context.Context
	// subjects is what the actors of all volumes have in common.
	subjects *actors.Subjects
	// mounts is for doubtful cases and for deletions, not for each call.
	mounts *mountTable
	// diskActor is the address of the disk actor.
	diskActor *actor.PID
	// turns are those of the erasures, readers is the line of those who read files, calls what all of
	// them give way to.
	turns     *pace.Turns
	readers   *pace.Line
	calls     *pace.Calls
	afterlife *afterlife
	audit     *audit
	clock     *clock
	// ends are those of pods whose logs are kept; nil where none are.
	ends *ends
}

// task is one operation on one volume: sequential code in a goroutine of its own. It works on a
// copy of what is known of the volume, which the volume actor takes over when the operation ends.
type task struct {
	*environment
	id volume.ID
	// record is what is known of the volume; nil when nothing is.
	record *volume.Record
	// recorded is what was recorded last; nil when nothing is.
	recorded *volume.Record
	// size is what the volume took while it slept; zero if that is not known.
	size volume.Size
	deletion
	// doubted: the volume is mounted nowhere, and nothing reports whether its pod will come back.
	doubted bool
	// insisted: the kubelet has asked to unmount it for the grace time, and not to mount it again. So the pod is gone.
	insisted bool
	// unmounted: it took a mount of the volume away.
	unmounted bool
	// stuck is why the volume has to be resumed later.
	stuck error
	// span is the operation's; nil when nothing is traced.
	span trace.Span
}

// deletion says why a volume is deleted, if it is.
type deletion struct {
	reason volume.Reason
	// factor is the pressure factor that made it so early.
	factor float64
	// by is who purged it, why the reason that was given.
	by, why string
}

// setRecord sets what is known of the volume; nil when nothing is any more.
func (t *task) setRecord(next *volume.Record) {
	t.Metrics.VolumeChanged(t.record, next)
	t.record = next
}

// save records what is known of the volume from now on: durably, or so that the end of the process does not undo it
// where that is enough.
func (t *task) save(next volume.Record) error {
	return t.saveAs(&next, volume.MayLag(t.recorded, &next))
}

// saveDurably is save, and waits for the disk.
func (t *task) saveDurably(next volume.Record) error { return t.saveAs(&next, false) }

// saveAs keeps next, which must not change afterwards.
func (t *task) saveAs(next *volume.Record, mayLag bool) error {
	if from := volume.PhaseOf(t.record); from != next.Phase && !from.CanBecome(next.Phase) {
		return fmt.Errorf("volume %s cannot change from %s to %s", t.id, from, next.Phase)
	}
	if err := t.in("record", func() error { return t.Recorder.Save(next, mayLag) }); err != nil {
		return fmt.Errorf("record volume %s as %s: %w", t.id, next.Phase, volume.WantsRoom(err, volume.InWorkdir))
	}
	t.setRecord(next)
	t.recorded = next
	return nil
}

// forget removes the volume's record.
func (t *task) forget() error {
	return t.drop(func() error { return t.Recorder.Forget(t.id, volume.MayLag(t.recorded, nil)) })
}

// bury removes the volume's record, and leaves a tombstone.
func (t *task) bury(stone volume.Tombstone) error {
	return t.drop(func() error { return t.Recorder.Bury(stone) })
}

// drop removes the volume's record, and with it what the volume's project allows.
func (t *task) drop(remove func() error) error {
	project := t.record.Project
	t.Quota.Unlimit(project)
	if err := t.in("forget", remove); err != nil {
		return fmt.Errorf("forget volume %s: %w", t.id, volume.WantsRoom(err, volume.InWorkdir))
	}
	t.setRecord(nil)
	t.recorded = nil
	t.Quota.Forgotten(project)
	return nil
}

// shows reports whether the mount at target shows the volume's data directory. The target's path
// names the pod of a volume that is not known.
func (t *task) shows(target string) (mount.Showing, error) {
	showing, err := t.Mounter.Shows(target, t.source(target))
	if err != nil {
		return showing, fmt.Errorf("%w: what is mounted on %s: %w", volume.ErrUncertain, target, err)
	}
	if showing == mount.ShowsRemoved && !t.hasTarget(target) {
		return mount.ShowsOther, nil // whose directory it was cannot be told
	}
	return showing, nil
}

// source is what the mount at target should show.
func (t *task) source(target string) string {
	source := volume.Place{Pod: volume.PodUID(kubelet.PodOf(t.PodsDir, target)), ID: t.id}
	if t.record != nil {
		source = t.record.Data()
	}
	return t.Scratch.Source(source)
}

func (t *task) hasTarget(target string) bool {
	if t.record == nil {
		return false
	}
	_, ok := t.record.Target(target)
	return ok
}

// maxStackedMounts bounds how many mounts are taken off one target: mounts stack, and an old driver
// may have left more than one.
const maxStackedMounts = 16

// unmount takes the volume off target, and what lies on top if its pod is gone, but no other mount. It
// returns nil once the kernel confirms that nothing is mounted there.
func (t *task) unmount(target string) error {
	showing, err := t.shows(target)
	if err != nil {
		return err
	}
	return t.unmountSeen(target, showing)
}

// unmountSeen is unmount, where what is mounted has just been looked at.
func (t *task) unmountSeen(target string, showing mount.Showing) (err error) {
	for range maxStackedMounts {
		switch showing {
		case mount.NotMounted:
			return nil
		case mount.ShowsOther:
			return t.errForeignMount(target)
		case mount.ShowsBeneath:
			if err := t.mayUncover(target); err != nil {
				return err
			}
		}
		// EINVAL: not mounted any more. The next look tells.
		err := t.Mounter.Unmount(target)
		if err != nil && !errors.Is(err, unix.EINVAL) {
			return err
		}
		t.unmounted = t.unmounted || err == nil && showing != mount.ShowsBeneath
		if showing, err = t.shows(target); err != nil {
			return err
		}
	}
	return fmt.Errorf("volume %s is still mounted on %s after %d unmounts", t.id, target, maxStackedMounts)
}

func (t *task) errForeignMount(target string) error {
	return fmt.Errorf("%w: %s is a mount, but not of volume %s; unmount it: %s", volume.ErrForeignMount, target, t.id, t.topmost(target))
}

// mayUncover allows to take a mount away that lies on the volume's: one of the pod's own, such as that of a sidecar
// with a FUSE file system. While the pod runs that would show it another file system in the place.
func (t *task) mayUncover(target string) error {
	there := true
	if t.record != nil {
		var err error
		if there, err = t.podThere(); err != nil {
			return err
		}
	}
	what := t.topmost(target)
	if ended := t.record != nil && t.record.Outcome != volume.OutcomeUnknown; there && !ended && !t.insisted {
		return fmt.Errorf("%w: volume %s is mounted on %s beneath another mount; that one is taken away once the pod is known to have ended, "+
			"or the kubelet has asked for %s: %s",
			volume.ErrForeignMount, t.id, target, duration.Format(t.OrphanGrace), what)
	}
	t.Log.Info("taking away a mount that lies on a volume's, its pod is gone", append(t.about(), logkeys.Target, target, "mount", what)...)
	return nil
}

func (t *task) about() []any {
	if t.record == nil {
		return logkeys.About(volume.Record{ID: t.id})
	}
	return logkeys.About(*t.record)
}

// topmost describes the topmost mount at target.
func (t *task) topmost(target string) string {
	layers, err := t.Mounter.Layers(target, t.source(target))
	switch {
	case err != nil:
		return err.Error()
	case len(layers) == 0:
		return "it is gone by now"
	}
	return layers[len(layers)-1].What
}

// confirmUnmounted confirms by the mount table that the volume's mount at target is gone; an empty
// target stands for all of them. A target that is not there proves nothing: its directory may have
// been renamed or covered by another mount.
func (t *task) confirmUnmounted(target string) error {
	found, err := t.readMounts(false)
	if err != nil {
		return err
	}
	if place := t.usedAt(t.record, target, found.volume(t.record.Data())); place != "" {
		return t.errStillMounted(place)
	}
	return nil
}

// usedAt returns where a volume is mounted for its pod, of the places at which the mount table has it; "" when it
// is not. An empty target stands for all. While the volume has other targets it stays published, and
// only a mount at this one counts. What other pods have mounted does not count: they have the volume
// attached, and before it is deleted the mount table is asked again.
func (e *environment) usedAt(r *volume.Record, target string, places []string) string {
	others := target != "" && len(r.WithoutTarget(target).Targets) > 0
	for _, place := range places {
		pod := kubelet.PodOf(e.PodsDir, place)
		if pod != string(r.Pod) && (pod != "" || r.Attach != (volume.Place{})) {
			continue
		}
		if place == target || !others {
			return place
		}
	}
	return ""
}

func (t *task) readMounts(patient bool) (found *mounted, err error) {
	err = t.in("read the mount table", func() error {
		found, err = t.mounts.look(t.ctx, patient)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: where is volume %s mounted: %w", volume.ErrUncertain, t.id, err)
	}
	return found, nil
}

func (t *task) errStillMounted(place string) error {
	return fmt.Errorf("%w: the mount table shows volume %s at %s, where no target path leads; unmount it", volume.ErrUncertain, t.id, place)
}

// removeTarget removes the empty directory that was the mount point, as the CSI specification
// demands. Anything but a directory was not made by a publish, and stays.
func removeTarget(target string) error {
	err := kernel.Rmdir(target)
	if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return fmt.Errorf("remove %s: %w", target, err)
}

// stats measures what the volume uses. It reads the data directory itself, not its mount, so that
// it may run beside any operation and keeps no target busy.
func (e *environment) stats(ctx context.Context, record *volume.Record, id volume.ID, path string) (volume.Stats, error) {
	if record == nil {
		return volume.Stats{}, fmt.Errorf("%w: volume %s", volume.ErrNotFound, id)
	}
	if _, ok := record.Target(path); !ok {
		return volume.Stats{}, fmt.Errorf("%w: volume %s is not published at %s", volume.ErrNotFound, id, path)
	}
	space, err := e.Scratch.Space()
	if err != nil {
		return volume.Stats{}, err
	}
	used, limit, err := e.occupied(ctx, record, nil)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, scratch.ErrNotOurs):
		return volume.Stats{}, fmt.Errorf("%w: the data directory of volume %s is gone: %w", volume.ErrNotFound, id, err)
	case err != nil:
		return volume.Stats{}, err
	}
	return volume.Stats{Space: within(space, limit, used), Used: used}, nil
}
