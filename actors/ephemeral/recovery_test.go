package ephemeral

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
)

func TestRecoverVolumes(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	target := volume.Target{Path: "/kubelet/pods/p/mount"}
	readOnly := volume.Target{Path: "/kubelet/pods/p/mount", ReadOnly: true}
	leaving := volume.Target{Path: "/kubelet/pods/p/mount", Leaving: true}
	bound := mount.Binding{Source: "p/v", Target: target.Path}
	live := func(phase volume.Phase, targets ...volume.Target) volume.Record {
		return volume.Record{ID: "v", Pod: "p", Phase: phase, Targets: targets}
	}
	retained := volume.Record{ID: "v", Pod: "p"}.Retain(since, time.Hour)
	deleting := retained
	deleting.Phase = volume.Deleting

	for name, tt := range map[string]struct {
		record   *volume.Record
		bindings []mount.Binding
		awake    *volume.Record
		asleep   *volume.Record
		changed  bool
	}{
		"published and mounted": {record: new(live(volume.Publishing, target)), bindings: []mount.Binding{bound},
			awake: new(live(volume.Published, target))},
		"published, mount gone with a reboot": {record: new(live(volume.Publishing, readOnly)), awake: new(live(volume.Published, readOnly))},
		"unmount ordered, still mounted": {record: new(live(volume.Unpublishing, leaving)), bindings: []mount.Binding{bound},
			awake: new(live(volume.Unpublishing, leaving))},
		"unmount ordered and done": {record: new(live(volume.Unpublishing, leaving)), awake: new(live(volume.Unpublishing, leaving))},
		"imported, target not known": {record: new(live(volume.Published)), bindings: []mount.Binding{bound},
			awake: new(live(volume.Published, target)), changed: true},
		"imported, not mounted":    {record: new(live(volume.Published)), awake: new(live(volume.Published))},
		"mounted without a record": {bindings: []mount.Binding{bound}, awake: new(live(volume.Published, target)), changed: true},
		"read-only without a record": {bindings: []mount.Binding{{Source: "p/v", Target: target.Path, ReadOnly: true}},
			awake: new(live(volume.Published, readOnly)), changed: true},
		"retained":             {record: &retained, asleep: &retained},
		"deletion interrupted": {record: &deleting, asleep: &deleting},
		"retained, but mounted": {record: &retained, bindings: []mount.Binding{bound},
			awake: &volume.Record{ID: "v", Pod: "p", Phase: volume.Published, Targets: []volume.Target{target}, Lifespan: time.Hour}, changed: true},
		"deleting, but mounted": {record: &deleting, bindings: []mount.Binding{bound},
			awake: &volume.Record{ID: "v", Pod: "p", Phase: volume.Published, Targets: []volume.Target{target}, Lifespan: time.Hour}, changed: true},
		"a pod's subpath mount is the kubelet's": {record: &retained, bindings: []mount.Binding{
			{Source: "p/v/sub", Target: "/kubelet/pods/p/x"}, {Source: "p/v", Target: "/kubelet/pods/p/volume-subpaths/v/c/0"}}, asleep: &retained},
		"a pod's volume of that name": {record: &retained, bindings: []mount.Binding{
			{Source: "p/v", Target: "/kubelet/pods/p/volumes/kubernetes.io~csi/volume-subpaths/mount"}},
			awake: &volume.Record{ID: "v", Pod: "p", Phase: volume.Published, Lifespan: time.Hour,
				Targets: []volume.Target{{Path: "/kubelet/pods/p/volumes/kubernetes.io~csi/volume-subpaths/mount"}}}, changed: true},
		"mounted elsewhere by a person": {record: &retained, bindings: []mount.Binding{{Source: "p/v", Target: "/mnt/look"}}, asleep: &retained},
		"a name that is no volume's": {bindings: []mount.Binding{{Source: ".trash/x", Target: "/kubelet/pods/p/x"},
			{Source: "p", Target: "/kubelet/pods/p/y"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var records []volume.Record
			if tt.record != nil {
				records = append(records, *tt.record)
			}
			got, asleep := recoverVolumes(records, tt.bindings, "/kubelet/pods")
			same(t, "awake", got.awake, tt.awake)
			same(t, "asleep", asleep, tt.asleep)
			var changed *volume.Record
			if tt.changed {
				changed = tt.awake
			}
			same(t, "changed", got.changed, changed)
		})
	}
}

// TestMountWithoutARecordIsPublished, and known from then on.
func TestMountWithoutARecordIsPublished(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		h.stop()
		if err := h.records.Commit([]volume.Change{{ID: testID}}); err != nil {
			t.Fatal(err)
		}
		h.start()
		h.wantPhase(testID, volume.Published)
		time.Sleep(2 * testLifespan)
		h.wantMarker("while it is mounted")
	})
}

// TestStartThatFails: without all records, or without those of what was found mounted, nothing may
// begin.
func TestStartThatFails(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.stop()
		h.retained("pod", "csi-asleep", time.Minute, testLifespan)
		unreadable := h.config()
		unreadable.Known = func(each func(volume.Record)) error { return errors.Join(h.records.each(each), unix.EIO) }
		if _, err := start(unreadable); !errors.Is(err, unix.EIO) {
			t.Errorf("records that cannot be read: %v", err)
		}
		if err := h.records.Commit([]volume.Change{{ID: testID}}); err != nil {
			t.Fatal(err)
		}
		h.records.fail(func([]volume.Change) error { return unix.EIO })
		if _, err := start(h.config()); !errors.Is(err, unix.EIO) {
			t.Errorf("a record that cannot be written: %v", err)
		}
		h.records.fail(nil)
		h.start()
	})
}

// recoverVolumes compares records with mounts.
func recoverVolumes(records []volume.Record, bindings []mount.Binding, podsDir string) (r *recovery, asleep []volume.Record) {
	r = newRecovery(bindings, podsDir, func(record volume.Record) { asleep = append(asleep, record) })
	for _, record := range records {
		r.add(record)
	}
	r.addUnknown()
	return r, asleep
}

func same(t *testing.T, what string, got []volume.Record, want *volume.Record) {
	t.Helper()
	var wanted []volume.Record
	if want != nil {
		wanted = []volume.Record{*want}
	}
	if len(got) != len(wanted) {
		t.Errorf("%s: %+v, want %+v", what, got, wanted)
		return
	}
	for i := range got {
		if len(got[i].Targets) == 0 {
			got[i].Targets = nil
		}
		if !reflect.DeepEqual(got[i], wanted[i]) {
			t.Errorf("%s: %+v, want %+v", what, got[i], wanted[i])
		}
	}
}

// TestRecoverAfterAReboot: targets go with their mounts, unless the mount is there or an unmount
// has to come to its end.
func TestRecoverAfterAReboot(t *testing.T) {
	const path = "/kubelet/pods/p/mount"
	bound := []mount.Binding{{Source: "p/v", Target: path}}
	for name, tt := range map[string]struct {
		target   volume.Target
		bindings []mount.Binding
		phase    volume.Phase
		kept     bool
	}{
		"mounted":     {target: volume.Target{Path: path}, bindings: bound, phase: volume.Published, kept: true},
		"not mounted": {target: volume.Target{Path: path}, phase: volume.Published},
		"mounted elsewhere": {target: volume.Target{Path: path},
			bindings: []mount.Binding{{Source: "p/v", Target: "/mnt/look"}}, phase: volume.Published},
		"unmounting":             {target: volume.Target{Path: path, Leaving: true}, phase: volume.Unpublishing, kept: true},
		"unmounting and mounted": {target: volume.Target{Path: path, Leaving: true}, bindings: bound, phase: volume.Unpublishing, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecovery(tt.bindings, "/kubelet/pods", func(record volume.Record) { t.Errorf("asleep: %+v", record) })
			r.rebooted = true
			r.add(volume.Record{ID: "v", Pod: "p", Phase: volume.Publishing, Targets: []volume.Target{tt.target}})
			r.addUnknown()
			if len(r.awake) != 1 || r.awake[0].Phase != tt.phase || len(r.awake[0].Targets) > 0 != tt.kept {
				t.Errorf("%+v, want %s, target kept %t", r.awake, tt.phase, tt.kept)
			}
			if changed := len(r.changed) > 0; changed == tt.kept {
				t.Errorf("to be recorded: %t", changed)
			}
		})
	}
}
