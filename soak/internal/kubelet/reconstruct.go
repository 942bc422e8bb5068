package kubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/testbed"
)

// reconstruct finds out from the kubelet's directories what an earlier kubelet
// may have mounted. All of it is uncertain. The directories of pods that the API
// does not know are taken for those of finished ones.
func reconstruct(root, driver string, api *API) (*actual, error) {
	r := reconstruction{root: root, api: api, found: newActual(), known: make(map[string]observation)}
	for _, p := range api.observe() {
		r.known[p.pod.Plan.UID] = p
	}
	pods, err := readDir(podsDir(root))
	if err != nil {
		return nil, err
	}
	for _, uid := range pods {
		if err := r.pod(uid); err != nil {
			return nil, err
		}
	}
	staged, err := readDir(devicesDir(root, driver))
	if err != nil {
		return nil, err
	}
	for _, name := range staged {
		if err := r.device(filepath.Join(devicesDir(root, driver), name)); err != nil {
			return nil, err
		}
	}
	return r.found, nil
}

type reconstruction struct {
	root  string
	api   *API
	found *actual
	known map[string]observation
}

// pod adds the volumes of one pod's directory.
func (r reconstruction) pod(uid string) error {
	p, known := r.known[uid]
	if known && p.phase == forgotten || !known && r.api.isLeft(uid) || uid == testbed.DaemonPod {
		return nil
	}
	if !known {
		p.pod = newPod(workload.Pod{UID: uid})
	}
	dirs, err := readDir(volumesDir(r.root, uid))
	if err != nil {
		return err
	}
	for _, name := range dirs {
		data, err := readVolumeData(filepath.Join(volumesDir(r.root, uid), name))
		if errors.Is(err, fs.ErrNotExist) {
			// As the real one: without it the volume is not known.
			continue
		}
		if err != nil {
			return fmt.Errorf("reconstruct volume %s of pod %s: %w", name, uid, err)
		}
		r.volume(p.pod, name, data)
	}
	if !known {
		r.api.adopt(p.pod)
	}
	return nil
}

// volume adds one volume of a pod.
func (r reconstruction) volume(p *Pod, dir string, data volumeData) {
	i := slices.IndexFunc(p.Volumes, func(v *Volume) bool { return v.directory() == dir })
	if i < 0 {
		p.add(r.root, data.plan())
		i = len(p.Volumes) - 1
	}
	v := p.Volumes[i]
	v.Story.Note("found by a new kubelet")
	r.found.volumes[v] = &mount{state: uncertain, reconstructed: true}
	if v.Plan.Persistent {
		r.found.devices[v.Plan.ID] = &device{
			mount:  mount{state: uncertain, reconstructed: true},
			volume: v,
		}
	}
}

// device adds a staged volume that no pod's directory told of.
func (r reconstruction) device(dir string) error {
	data, err := readVolumeData(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reconstruct a staged volume: %w", err)
	}
	if r.found.devices[data.VolumeHandle] != nil {
		return nil
	}
	v := r.api.using(data.VolumeHandle)
	if v == nil {
		data.LifecycleMode = persistentMode
		data.SpecVolID = data.VolumeHandle
		v = newPod(workload.Pod{}).add(r.root, data.plan())
	}
	r.found.devices[data.VolumeHandle] = &device{
		mount:  mount{state: uncertain, reconstructed: true},
		volume: v,
	}
	return nil
}

// plan is what the file says of a volume that is known only from it.
func (d volumeData) plan() workload.Volume {
	return workload.Volume{Name: d.SpecVolID, ID: d.VolumeHandle, Persistent: d.LifecycleMode == persistentMode}
}

// readDir returns the names in a directory, none if it does not exist.
func readDir(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for what is mounted: %w", err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}
