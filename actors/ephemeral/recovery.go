package ephemeral

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/retained"
)

// recovered is what the actors begin with.
type recovered struct {
	// awake are the volumes that get an actor at once: they are mounted, wait for their kubelet, or
	// are in the middle of an unmount.
	awake []volume.Record
	// index has the retained volumes, pinned are those of them that are pinned.
	index  *retained.Index
	pinned []volume.Record
	// clock tells times that go with those of the retained volumes.
	clock *clock
}

// recoverNode compares records and mounts, and returns what the actors begin with.
func recoverNode(cfg Config, bindings []mount.Binding) (found recovered, err error) {
	found.index = &retained.Index{
		MinLifespan: cfg.MinLifespan, Fair: cfg.Fair, MaxRetained: cfg.MaxRetained, PerOwner: cfg.PerOwner,
	}
	found.clock = &clock{}
	r := newRecovery(bindings, cfg.PodsDir, func(record volume.Record) {
		found.index.Put(record)
		if record.Hold.Kind == volume.Pinned {
			found.pinned = append(found.pinned, record)
		}
		found.clock.follow(record.Unpublished)
		cfg.Metrics.VolumeChanged(nil, &record)
	})
	r.rebooted = cfg.Rebooted
	err = cfg.Known(func(record volume.Record) {
		cfg.Quota.Known(record.Project)
		r.add(record)
	})
	if err == nil {
		err = findInTrash(cfg)
	}
	if err == nil {
		r.addLater()
		r.addUnknown()
		err = saveAll(cfg.Records, r.changed)
	}
	if err != nil {
		return recovered{}, err
	}
	found.awake = r.awake
	if cfg.Resized != nil {
		found.index.Watch(cfg.Resized) // only now: to collect garbage more often while it fills takes twice the time
	}
	for i := range found.awake {
		cfg.Metrics.VolumeChanged(nil, &found.awake[i])
	}
	logElsewhere(cfg, found.awake)
	cfg.Metrics.Reserved(cfg.Records.ReserveError() == nil)
	cfg.Log.Info("recovered", "mounts", len(bindings), "awake", len(found.awake), "retained", found.index.Len(),
		"corrected", len(r.changed))
	return found, nil
}

func saveAll(records actors.Records, changed []volume.Record) error {
	if len(changed) == 0 {
		return nil
	}
	changes := make([]volume.Change, len(changed))
	for i := range changed {
		changes[i] = volume.Change{ID: changed[i].ID, Record: &changed[i]}
	}
	if err := records.Commit(changes); err != nil {
		return fmt.Errorf("record what was found mounted: %w", err)
	}
	return nil
}

// recovery compares what is recorded with what is mounted. The record says what was intended, the
// mount table what is: a volume that is mounted is published, whatever its record says, so that its
// data is not touched.
type recovery struct {
	// rebooted: the mounts of an earlier run are gone, except those that the mount table shows.
	rebooted bool
	podsDir  string
	// mounted are the mounted volumes whose record has not been added yet.
	mounted map[volume.ID][]boundVolume
	// asleep is called with each retained volume; there are too many to keep them here.
	asleep func(volume.Record)
	awake  []volume.Record
	// attached are the targets of volumes without data of their own, by the path. Such a mount shows the
	// data of another volume, and publishes that one no more than before.
	attached map[string]boundVolume
	// unrecorded are those of them by the ID that the kubelet gives to the volume that is mounted there, as long
	// as no record with that ID has been added.
	unrecorded map[volume.ID]boundVolume
	// later are the volumes with a mount at the target of another pod: all records have to be known
	// first.
	later []volume.Record
	// changed are those whose record on disk has to be replaced.
	changed []volume.Record
}

func newRecovery(bindings []mount.Binding, podsDir string, asleep func(volume.Record)) *recovery {
	r := &recovery{podsDir: podsDir, asleep: asleep, mounted: map[volume.ID][]boundVolume{},
		attached: map[string]boundVolume{}, unrecorded: map[volume.ID]boundVolume{}}
	for _, binding := range bindings {
		bound, ok := parseBinding(binding, podsDir)
		if !ok {
			continue
		}
		r.mounted[bound.ID] = append(r.mounted[bound.ID], bound)
		if pod, name := kubelet.ParseTarget(podsDir, bound.target.Path); pod != bound.Pod && name != "" {
			r.unrecorded[volume.KubeletID(pod, name)] = bound
		}
	}
	return r
}

// add is called with every record there is.
func (r *recovery) add(record volume.Record) {
	delete(r.unrecorded, record.ID)
	if record.Attach != (volume.Place{}) {
		r.later = append(r.later, record)
		return
	}
	bounds := r.mounted[record.ID]
	if slices.ContainsFunc(bounds, func(b boundVolume) bool { return kubelet.PodOf(r.podsDir, b.target.Path) != string(b.Pod) }) {
		r.later = append(r.later, record)
		return
	}
	r.place(record, bounds)
	delete(r.mounted, record.ID)
}

// addLater adds the volumes that pods have attached, or may have.
func (r *recovery) addLater() {
	for _, record := range r.later {
		for _, bound := range r.mounted[record.Attach.ID] {
			if _, ok := record.Target(bound.target.Path); ok && record.Attach == bound.Place {
				r.attached[bound.target.Path] = bound
			}
		}
	}
	for id, bound := range r.unrecorded {
		if _, known := r.attached[bound.target.Path]; known {
			delete(r.unrecorded, id) // by a record with another ID, of a caller that is no kubelet
			continue
		}
		// The record is lost, or on another disk. The mount tells what it said.
		r.attached[bound.target.Path] = bound
		pod, name := kubelet.ParseTarget(r.podsDir, bound.target.Path)
		r.later = append(r.later, volume.Record{ID: id, Pod: pod, VolumeName: name, Attach: bound.Place})
	}
	for _, record := range r.later {
		var bounds []boundVolume
		if record.Attach != (volume.Place{}) {
			targets := record.Targets
			if bound, ok := r.unrecorded[record.ID]; ok {
				targets = []volume.Target{bound.target}
			}
			for _, target := range targets {
				if bound, ok := r.attached[target.Path]; ok {
					bounds = append(bounds, boundVolume{record.Place(), bound.target})
				}
			}
		} else {
			bounds = slices.DeleteFunc(slices.Clone(r.mounted[record.ID]), func(b boundVolume) bool {
				_, ok := r.attached[b.target.Path]
				return ok
			})
			delete(r.mounted, record.ID)
		}
		r.place(record, bounds)
	}
	// Whose record is lost.
	for id, bounds := range r.mounted {
		bounds = slices.DeleteFunc(bounds, func(b boundVolume) bool {
			_, ok := r.attached[b.target.Path]
			return ok
		})
		if len(bounds) == 0 {
			delete(r.mounted, id)
		} else {
			r.mounted[id] = bounds
		}
	}
}

// addUnknown is for what is mounted without a record, after all records.
func (r *recovery) addUnknown() {
	for id, bounds := range r.mounted {
		r.place(volume.Record{ID: id, Pod: bounds[0].Pod}, bounds)
	}
}

func (r *recovery) place(record volume.Record, bounds []boundVolume) {
	known := record.Phase
	changed := false
	if r.rebooted {
		record, changed = withoutLost(record, bounds)
	}
	for _, bound := range bounds {
		if _, ok := record.Target(bound.target.Path); ok || bound.Pod != record.Pod {
			continue
		}
		record = record.WithTarget(bound.target)
		changed = true
	}
	mounted := len(bounds) > 0
	switch {
	case known == volume.Publishing && !mounted && record.IsLogs():
		r.awake = append(r.awake, record) // it was being written
	case known.Live(), mounted:
		// A recorded Publishing says that the mount was intended, not that it is missing. A volume
		// whose mount is gone waits for its kubelet.
		record.Phase, record.Unpublished = volume.Published, time.Time{}
		if !known.Live() {
			record.Outcome, record.Hold = volume.OutcomeUnknown, volume.Hold{}
		}
		if len(record.Targets) > 0 {
			record.Phase = livePhase(record)
		}
		changed = changed || !known.Live()
		r.awake = append(r.awake, record)
	default: // Retained, or Deleting: due at once
		r.asleep(record)
	}
	if changed {
		r.changed = append(r.changed, record)
	}
}

// withoutLost returns a record without the targets whose mounts a reboot took away. The kubelet
// publishes again what its pods still need, maybe at another path. A target whose unmount was
// ordered is kept, so that the unpublish comes to its end. If only such ones were left, the volume would be
// retained then although its pod has it: so all are kept.
func withoutLost(record volume.Record, bounds []boundVolume) (kept volume.Record, changed bool) {
	kept = record
	for _, target := range record.Targets {
		at := func(bound boundVolume) bool { return bound.target.Path == target.Path }
		if !target.Leaving && !slices.ContainsFunc(bounds, at) {
			kept, changed = kept.WithoutTarget(target.Path), true
		}
	}
	if changed && len(kept.Targets) > 0 && livePhase(kept) == volume.Unpublishing {
		return record, false
	}
	return kept, changed
}

// boundVolume is a volume's data directory that is mounted at target.
type boundVolume struct {
	volume.Place
	target volume.Target
}

// parseBinding returns the volume that a bind mount shows to a pod. The kubelet removes its own
// subpath mounts, and mounts of something inside a volume, before it unpublishes. A mount that a
// person made elsewhere publishes nothing, but prevents the deletion of the data.
func parseBinding(b mount.Binding, podsDir string) (boundVolume, bool) {
	pod, id, ok := strings.Cut(b.Source, "/")
	if !ok || !strings.HasPrefix(b.Target, podsDir+"/") || kubelet.PodOf(podsDir, b.Target) == "" || kubelet.IsSubpath(podsDir, b.Target) {
		return boundVolume{}, false
	}
	podUID, podErr := volume.ParsePodUID("pod", pod)
	volumeID, idErr := volume.ParseID("volume", id)
	if podErr != nil || idErr != nil {
		return boundVolume{}, false
	}
	return boundVolume{volume.Place{Pod: podUID, ID: volumeID}, volume.Target{Path: b.Target, ReadOnly: b.ReadOnly}}, true
}

// logElsewhere logs that volumes are published where this kubelet has no pods. Nothing can be
// concluded about those, and without an unpublish they are kept.
func logElsewhere(cfg Config, awake []volume.Record) {
	count, example := 0, ""
	for i := range awake {
		if len(kubelet.PodsOf(cfg.PodsDir, &awake[i])) > 0 {
			continue
		}
		if count == 0 {
			example = awake[i].Targets[0].Path
		}
		count++
	}
	if count > 0 {
		cfg.Log.Info("volumes are published at targets that are not below the kubelet's pods directory; "+
			"they are kept until they are unpublished, or the node is booted; is it the right one?",
			logkeys.Directory, cfg.PodsDir, "volumes", count, "example", example)
	}
}
