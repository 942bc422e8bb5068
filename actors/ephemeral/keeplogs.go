package ephemeral

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/lastwords"
	"github.com/katbox/katbox/internal/node/scratch"
	"github.com/katbox/katbox/messages"
)

// logsMode are the permissions of the directory that logs are kept in.
const logsMode = 0o755

var (
	// errLogsOfAnother: the volume by which logs are to be kept has learned of its owner, or its outcome, meanwhile.
	errLogsOfAnother = fmt.Errorf("%w: the volume is known otherwise by now", volume.ErrConflict)
	// errEndAnew: what the archive reads has not how the pod has ended.
	errEndAnew  = fmt.Errorf("%w: it is known by now how the pod has ended", volume.ErrNotRetained)
	errLogsAnew = fmt.Errorf("%w: the pod has ended once more, and its logs are kept anew", volume.ErrNotRetained)
)

// keepLogs takes the logs away from readers, because they are about to be replaced.
func (v *volumes) keepLogs(m *messages.KeepLogs) (done bool) {
	known, ok := v.index.Look(m.Of.ID)
	if ok && (known.Owner != m.Of.Owner || known.Outcome != m.Of.Outcome) {
		m.Fail(errLogsOfAnother)
		return true
	}
	v.leases.lose(m.ID, errLogsAnew)
	return false
}

// passToLogs lets the logs of a pod learn what one of its volumes does: nothing else reports it of them.
func (v *volumes) passToLogs(pod volume.PodUID, from volume.ID, m func(messages.Routing) messages.Request) {
	id := volume.LogsID(pod)
	if from != id && (v.supervisor.IsAwake(id) || v.index.Has(volume.Place{Pod: pod, ID: id})) {
		v.Root.Send(v.supervisor.Self(), m(messages.Routing{ID: id}))
	}
}

// keepLogs returns the operation that keeps the logs of a pod.
func (v *subject) keepLogs(m *messages.KeepLogs) *actors.Operation {
	return v.change(operation{name: keepingLogs, origin: m.Route().Origin, asked: true, same: isKeepLogs,
		run: func(t *task) error { return t.keepLogs(m.Of) }})
}

func isKeepLogs(m messages.Request) bool {
	_, ok := m.(*messages.KeepLogs)
	return ok
}

// halfKept reports whether the logs of a pod are to be kept, and are not yet.
func (v *subject) halfKept() bool { return v.record.Phase == volume.Publishing && v.record.IsLogs() }

// keepLogs keeps the logs of the pod that has a volume. The intent is durable first, so that the copy goes on after a
// crash, if the kubelet has them still.
func (t *task) keepLogs(of volume.Record) error {
	if t.Logs == nil || !t.Logs.Has(of.Pod) && t.ends.of(of.Pod) == nil {
		return nil
	}
	next := volume.LogsOf(of)
	if t.record == nil {
		if err := t.takeProject(&next); err != nil {
			return err
		}
	} else {
		if t.record.Phase != volume.Retained {
			return fmt.Errorf("%w: the logs of pod %s", volume.ErrBusy, of.Pod)
		}
		next = next.LogsAnew(t.record.Unpublished)
		next.Project, next.Hold, next.Unpublished = t.record.Project, t.record.Hold, t.record.Unpublished
	}
	if err := t.save(next); err != nil {
		if t.record == nil {
			t.Quota.Forgotten(next.Project)
		}
		return err
	}
	return t.fillLogs()
}

// resumeLogs goes on after a crash, or where logs that cannot be kept could not be removed.
func (t *task) resumeLogs() error {
	if t.Logs != nil {
		t.Logs.Follow(podOf(t.record))
		defer t.Logs.Leave(t.record.Pod)
		t.Logs.Look(t.ctx, t.record.Pod)
	}
	return t.fillLogs()
}

// fillLogs copies the logs whose intent is recorded. Where the disk does not take them, nothing is left of them, unless the
// pod has ended before.
func (t *task) fillLogs() error {
	kept, err := t.copyLogs()
	switch {
	case err != nil && t.ctx.Err() != nil:
		return err // the next start goes on
	case err == nil && (kept.Files > 0 || kept.End), !t.record.Unpublished.IsZero(): // what was retained before stays
		if err := t.retainLogs(kept); err != nil {
			t.stuck = err
			return err
		}
		return err
	}
	if dropErr := t.dropLogs(); dropErr != nil {
		t.stuck = dropErr
		return errors.Join(err, dropErr)
	}
	return volume.WantsRoom(err, volume.InWorkdir)
}

func (t *task) copyLogs() (kept lastwords.Kept, err error) {
	place := t.record.Place()
	if _, err := t.Scratch.CreateAs(place, scratch.Making{Mode: logsMode, Prepare: t.setProject}); err != nil {
		return kept, err
	}
	copyErr := t.Scratch.WithData(place, func(fd int) error {
		if t.Logs != nil {
			kept, err = t.Logs.Copy(t.ctx, t.record.Pod, fd, t.LogsLimit, t.readers.Wait)
		}
		if err == nil && kept.Files == 0 {
			// A daemon has ended, and now the kubelet has them no more. What was copied before is better than nothing.
			kept, err = lastwords.Interrupted(fd)
		}
		if end := t.ends.of(t.record.Pod); err == nil && end != nil {
			kept.End, err = true, lastwords.KeepEnd(fd, end)
		}
		return err
	})
	return kept, copyErr
}

func (t *task) retainLogs(kept lastwords.Kept) error {
	next := t.retained(*t.record)
	if err := t.save(next); err != nil {
		return err
	}
	t.Metrics.LogsKept(kept.Bytes, kept.Missing, kept.Interrupted)
	if log := t.Log.V(1); log.Enabled() {
		log.Info("kept the logs of a pod", logkeys.About(next, "files", kept.Files, "bytes", kept.Bytes, "missing", kept.Missing)...)
	}
	return nil
}

// dropLogs removes what there is of logs that are not kept.
func (t *task) dropLogs() error {
	if err := t.remove(true); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return t.forget()
}
