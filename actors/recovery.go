package actors

import (
	"strings"
	"time"

	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/volume"
)

// recovery is what a start makes of the records and the mount table.
type recovery struct {
	// awake are the volumes that get an actor at once: mounted, or waiting for
	// their kubelet, or in the middle of an unmount.
	awake []volume.Record
	// asleep are the volumes that the retention actor takes.
	asleep []volume.Record
	// changed are those of both whose record on disk has to be replaced.
	changed []volume.Record
}

// recoverVolumes compares what is recorded with what is mounted. The record says what
// was intended, the mount table what is: a volume that is mounted is published,
// whatever its record says, so that its data is not touched.
func recoverVolumes(records []volume.Record, bindings []mount.Binding, podsDir string) recovery {
	mounted := map[volume.ID][]boundVolume{}
	for _, binding := range bindings {
		if bound, ok := parseBinding(binding, podsDir); ok {
			mounted[bound.id] = append(mounted[bound.id], bound)
		}
	}
	var r recovery
	for _, record := range records {
		r.add(record, mounted[record.ID])
		delete(mounted, record.ID)
	}
	for id, bounds := range mounted {
		r.add(volume.Record{ID: id, Pod: bounds[0].pod}, bounds)
	}
	return r
}

func (r *recovery) add(record volume.Record, bounds []boundVolume) {
	known := record.Phase
	changed := false
	for _, bound := range bounds {
		if _, ok := record.Target(bound.target.Path); ok || bound.pod != record.Pod {
			continue
		}
		record = record.WithTarget(bound.target)
		changed = true
	}
	mounted := len(bounds) > 0
	switch {
	case known.Live(), mounted:
		// Publishing on disk means that the mount was intended, not that it is
		// not there; a volume whose mount is gone waits for its kubelet.
		record.Phase, record.Unpublished = volume.Published, time.Time{}
		if len(record.Targets) > 0 {
			record.Phase = livePhase(record)
		}
		changed = changed || !known.Live()
		r.awake = append(r.awake, record)
	default: // Retained, or Deleting: due at once
		r.asleep = append(r.asleep, record)
	}
	if changed {
		r.changed = append(r.changed, record)
	}
}

// boundVolume is a data directory that is mounted somewhere.
type boundVolume struct {
	id     volume.ID
	pod    volume.PodUID
	target volume.Target
}

// parseBinding returns the volume that a bind mount shows to a pod. Mounts of
// something inside a volume and the kubelet's own subpath mounts are not ours to
// undo: the kubelet removes them before it unpublishes. What a person mounted
// elsewhere publishes nothing, but keeps the data from being deleted.
func parseBinding(b mount.Binding, podsDir string) (boundVolume, bool) {
	pod, id, ok := strings.Cut(b.Source, "/")
	if !ok || !strings.HasPrefix(b.Target, podsDir+"/") || strings.Contains(b.Target, "/volume-subpaths/") {
		return boundVolume{}, false
	}
	podUID, podErr := volume.ParsePodUID("pod", pod)
	volumeID, idErr := volume.ParseID("volume", id)
	if podErr != nil || idErr != nil {
		return boundVolume{}, false
	}
	return boundVolume{id: volumeID, pod: podUID, target: volume.Target{Path: b.Target, ReadOnly: b.ReadOnly}}, true
}
