package fakedriver

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/soak/internal/content"
)

// attach mounts a retained volume of another pod read-only. Its caller has entered the
// volume by which it does so, and known is that, if there is one.
func (r *run) attach(known record, p volume.Publication) error {
	id, target, from := string(p.ID), p.Target.Path, string(p.Attach.ID)
	if known.published && mounted(target) {
		return nil
	}
	leave, err := r.enter(from)
	if err != nil {
		return err
	}
	defer leave()
	source, ok := r.disk.get(from)
	switch {
	case !ok || source.pod != string(p.Attach.Pod) || source.namespace != p.Namespace || source.deleting:
		return fmt.Errorf("volume %s to attach: %w", from, volume.ErrNotFound)
	case source.published:
		return fmt.Errorf("volume %s to attach is published: %w", from, volume.ErrBusy)
	}
	r.hoarding.Lock()
	defer r.hoarding.Unlock()
	if r.cfg.Bug != HoardsAttached && r.tooMuch(source) {
		return fmt.Errorf("volume %s: %w", from, volume.ErrNotAttached)
	}
	if err := os.Mkdir(target, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: %w", volume.ErrFailed, err)
	}
	if err := bind(r.data(source), target, r.cfg.Bug != AttachesWritable); err != nil {
		return fmt.Errorf("%w: attach: %w", volume.ErrFailed, errors.Join(err, unix.Rmdir(target)))
	}
	source.attachedBy = id
	r.disk.put(source)
	r.disk.put(record{id: id, pod: string(p.Pod), target: target, published: true, source: from, namespace: source.namespace,
		podName: p.PodName})
	return nil
}

// tooMuch reports whether pods have so much attached that one more volume would be beyond the bound.
func (r *run) tooMuch(source record) bool {
	if r.cfg.MaxPinned == 0 {
		return false
	}
	sum := content.Taken(r.data(source))
	for _, v := range r.disk.all(false) {
		if v.attachedBy != "" && v.id != source.id {
			sum += content.Taken(r.data(v))
		}
	}
	return sum > int64(r.cfg.MaxPinned*float64(total(r.cfg.Work)))
}

// detach forgets a volume that has no data of its own, and keeps the other for a grace.
func (r *run) detach(v record) error {
	leave, err := r.enter(v.source)
	if err != nil {
		return err
	}
	defer leave()
	if source, ok := r.disk.get(v.source); ok {
		if source.attachedBy = ""; r.cfg.Bug != HurriesAttached {
			source.detached = time.Now()
		}
		r.disk.put(source)
	}
	r.disk.remove(v.id)
	if r.cfg.Bug == BuriesLookers {
		r.bury(v, volume.Expired)
	}
	return nil
}

// attached reports whether a pod has a volume attached, or had it a moment ago.
func (r *run) attached(v record) bool {
	return r.cfg.Bug != DeletesAttached && (v.attachedBy != "" || time.Since(v.detached) < r.cfg.ReleaseGrace)
}
