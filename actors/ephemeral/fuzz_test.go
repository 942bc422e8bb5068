package ephemeral

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
)

const fuzzPods = "/kubelet/pods"

// FuzzRecoverVolumes makes records and mounts of bytes, and looks for a volume that is lost at a
// start, or mounted and put to sleep all the same. Of each four bytes the first says which volume,
// the second which pod.
func FuzzRecoverVolumes(f *testing.F) {
	f.Add([]byte{0, 0, 2, 1, 1, 0, 4, 0, 2, 1, 5, 0}, []byte{0, 0, 0, 0, 1, 1, 1, 1, 3, 0, 2, 0, 4, 0, 3, 1, 5, 0, 4, 0})
	f.Fuzz(func(t *testing.T, known, mounted []byte) {
		records := map[volume.ID]volume.Record{}
		for ; len(known) >= 4; known = known[4:] {
			r := recordOf(known)
			records[r.ID] = r
		}
		var list []volume.Record
		for _, r := range records {
			list = append(list, r)
		}
		var bindings []mount.Binding
		inUse := map[volume.ID][]string{}
		for ; len(mounted) >= 4; mounted = mounted[4:] {
			binding, id, own := bindingOf(mounted)
			bindings = append(bindings, binding)
			if own {
				inUse[id] = append(inUse[id], binding.Target)
			}
		}
		got, asleep := recoverVolumes(list, bindings, fuzzPods)
		checkRecovery(t, got, asleep, records, inUse)
	})
}

// recordOf makes a record that the store could return.
func recordOf(b []byte) volume.Record {
	r := volume.Record{ID: numbered(int(b[0] % 6)), Pod: volume.PodUID(fmt.Sprint("pod-", b[1]%3)), Phase: volume.Phase(1 + b[2]%5)}
	for i := range int(b[3] % 3) {
		r.Targets = append(r.Targets, volume.Target{Path: fmt.Sprintf("%s/%s/mount-%d", fuzzPods, r.Pod, i),
			Leaving: b[3]&0x10 != 0, ReadOnly: b[3]&0x20 != 0})
	}
	if !r.Phase.Live() {
		r = r.Retain(time.Unix(int64(b[2]), 0), time.Hour)
		r.Phase = volume.Phase(1 + b[2]%5)
	}
	return r
}

// bindingOf makes a bind mount, and tells which volume it shows and whether it is one that
// publishes the volume.
func bindingOf(b []byte) (binding mount.Binding, id volume.ID, own bool) {
	id, pod := numbered(int(b[0]%6)), fmt.Sprint("pod-", b[1]%3)
	binding = mount.Binding{Source: pod + "/" + string(id), ReadOnly: b[3]&0x20 != 0}
	binding.Target = fmt.Sprintf("%s/%s/mount-%d", fuzzPods, pod, b[3]%3)
	switch b[2] % 8 {
	case 0:
		binding.Source += "/inside"
	case 1:
		binding.Source = pod
	case 2:
		binding.Target = "/home/somebody/look"
	case 3:
		binding.Target = fmt.Sprintf("%s/%s/volume-subpaths/scratch/work/0", fuzzPods, pod)
	case 4:
		binding.Source = ".trash/" + string(id)
	case 5:
		binding.Target = fuzzPods + "-not/" + pod
	default:
		return binding, id, true
	}
	return binding, id, false
}

// checkRecovery fails for what must not become of records and mounts.
func checkRecovery(t *testing.T, got *recovery, asleep []volume.Record, records map[volume.ID]volume.Record, inUse map[volume.ID][]string) {
	t.Helper()
	seen := map[volume.ID]volume.Record{}
	for _, r := range slices.Concat(got.awake, asleep) {
		if _, twice := seen[r.ID]; twice {
			t.Errorf("%s is there twice", r.ID)
		}
		seen[r.ID] = r
	}
	for id, r := range records {
		if after, ok := seen[id]; !ok || after.Pod != r.Pod || after.Lifespan != r.Lifespan {
			t.Errorf("%+v became %+v, %t", r, after, ok)
		}
	}
	for id := range inUse {
		if _, ok := seen[id]; !ok {
			t.Errorf("%s is mounted and not known", id)
		}
	}
	for _, r := range asleep {
		if len(inUse[r.ID]) > 0 || r.Phase.Live() || len(r.Targets) > 0 || r.Unpublished.IsZero() {
			t.Errorf("asleep: %+v, mounted at %q", r, inUse[r.ID])
		}
	}
	for _, r := range got.awake {
		if !r.Phase.Live() || !r.Unpublished.IsZero() {
			t.Errorf("awake: %+v", r)
		}
		for _, target := range inUse[r.ID] {
			// A mount of another pod's data directory is not this volume's to undo.
			if _, ok := r.Target(target); !ok && strings.HasPrefix(target, filepath.Join(fuzzPods, string(r.Pod))+"/") {
				t.Errorf("mounted at %s, which is not in %+v", target, r)
			}
		}
	}
	for _, r := range got.changed {
		// What is written is what is worked with.
		if after, ok := seen[r.ID]; !ok || fmt.Sprint(after) != fmt.Sprint(r) {
			t.Errorf("on disk %+v, in memory %+v", r, after)
		}
	}
	for id, r := range seen {
		before, known := records[id]
		changed := slices.ContainsFunc(got.changed, func(c volume.Record) bool { return c.ID == id })
		if !changed && (!known || before.Phase.Live() != r.Phase.Live()) {
			t.Errorf("%+v became %+v in memory only", before, r)
		}
	}
}

// FuzzParseBinding looks for a mount that is taken for a volume's, and undone with it, though it is
// not.
func FuzzParseBinding(f *testing.F) {
	f.Add("pod/volume", fuzzPods+"/pod/volumes/kubernetes.io~csi/scratch/mount", fuzzPods)
	f.Add("pod/volume", fuzzPods+"/pod/volume-subpaths/scratch/work/0", fuzzPods)
	f.Fuzz(func(t *testing.T, source, target, podsDir string) {
		got, ok := parseBinding(mount.Binding{Source: source, Target: target}, podsDir)
		if !ok {
			return
		}
		pod, id := string(got.Pod), string(got.ID)
		if pod+"/"+id != source || filepath.Join("/data", pod, id) != "/data/"+source || strings.Count(source, "/") != 1 {
			t.Errorf("%q became pod %q and volume %q", source, pod, id)
		}
		// The kubelet undoes those itself, before it unpublishes. A pod or a volume may have that name.
		_, inPod, _ := strings.Cut(strings.TrimPrefix(target, podsDir+"/"), "/")
		if strings.HasPrefix(inPod, "volume-subpaths/") {
			t.Errorf("subpath mount %q became pod %q and volume %q", target, pod, id)
		}
		if got.target.Path != target || !strings.HasPrefix(target, podsDir+"/") {
			t.Errorf("target %q below %q became %q", target, podsDir, got.target.Path)
		}
	})
}
