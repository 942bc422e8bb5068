package kubelet

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/katbox/katbox/internal/model/volume"
)

// Keys that the kubelet sets in the volume context. A pod cannot forge them: the kubelet's values
// win over the pod's volumeAttributes.
const (
	ContextEphemeral = "csi.storage.k8s.io/ephemeral"
	ContextPodUID    = "csi.storage.k8s.io/pod.uid"
	ContextPodName   = "csi.storage.k8s.io/pod.name"
	ContextNamespace = "csi.storage.k8s.io/pod.namespace"
	ContextAccount   = "csi.storage.k8s.io/serviceAccount.name"
)

// PodsDir returns the directory that contains a directory for each pod, and all target paths. root
// is the kubelet's root directory.
func PodsDir(root string) string { return filepath.Join(root, "pods") }

// PluginsDir returns the directory in which the kubelet wants volumes staged, and block devices
// published. root is the kubelet's root directory.
func PluginsDir(root string) string { return filepath.Join(root, "plugins") }

// ParseDevice returns the pod and the PersistentVolume of a path at which the kubelet wants a block
// device: <plugins>/kubernetes.io/csi/volumeDevices/publish/<PersistentVolume>/<pod UID>. A path of another
// shape has neither.
func ParseDevice(pluginsDir, target string) (pod volume.PodUID, name string) {
	dir, below := split(pluginsDir, target)
	parts := strings.Split(below, "/")
	if dir != "kubernetes.io" || len(parts) != 5 || parts[0] != "csi" || parts[1] != "volumeDevices" || parts[2] != "publish" {
		return "", ""
	}
	pod, err := volume.ParsePodUID("target_path", parts[4])
	if err != nil {
		return "", ""
	}
	return pod, volume.ObjectName(parts[3])
}

// PodNames returns the names in the pods directory: the UIDs of the kubelet's pods.
func PodNames(podsDir string) (map[string]struct{}, error) {
	f, err := os.Open(podsDir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	set := make(map[string]struct{}, len(names))
	for _, name := range names {
		set[name] = struct{}{}
	}
	return set, nil
}

// PodOf returns the name of the pod directory that path is in, "" outside of the pods directory.
func PodOf(podsDir, path string) string {
	pod, _ := split(podsDir, path)
	return pod
}

// PodsOf returns the names in the pods directory that prove that a volume's pod still exists. It
// returns none for a volume with a target elsewhere: the daemon was started with another kubelet
// directory, and this one says nothing about the volume's pod. That ends with a reboot, which takes
// away the mounts and with them the targets.
func PodsOf(podsDir string, record *volume.Record) []string {
	names := []string{string(record.Pod)}
	for _, target := range record.Targets {
		switch name := PodOf(podsDir, target.Path); name {
		case "":
			return nil
		case names[0]:
		default:
			names = append(names, name)
		}
	}
	return names
}

// PodDir returns the directory of a pod.
func PodDir(podsDir string, pod volume.PodUID) string { return filepath.Join(podsDir, string(pod)) }

// Leftover reports whether no more is there of a pod's directory than what a kubelet leaves behind that has done away
// with the pod: it removes the targets of the pod's volumes, and stops at the file beside them (kubernetes#105536);
// or it removes all volumes and stops at something else. name is the volume's in the pod's spec; without it all
// volumes of CSI drivers count.
func Leftover(podsDir string, pod volume.PodUID, name string) (bool, error) {
	dir := PodDir(podsDir, pod)
	volumes := filepath.Join(dir, "volumes")
	if there, err := exists(volumes); err != nil {
		return false, err
	} else if !there {
		nowhere, err := leadsNowhere(dir)
		return err == nil && !nowhere, err
	}
	names := []string{name}
	if name == "" {
		entries, err := os.ReadDir(filepath.Join(volumes, csiVolumes))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		names = nil
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
	}
	for _, name := range names {
		dir := filepath.Join(volumes, csiVolumes, name)
		// A kubelet that has not come to the volume yet has no directory around the target.
		if there, err := exists(dir); !there {
			return false, err
		}
		if there, err := exists(filepath.Join(dir, "mount")); there || err != nil {
			return false, err
		}
	}
	return len(names) > 0, nil
}

// leadsNowhere reports whether there is a symbolic link whose target is not there.
func leadsNowhere(path string) (bool, error) {
	if there, err := exists(path); !there {
		return false, err
	}
	there, err := exists(path + "/.")
	return err == nil && !there, err
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// csiVolumes is the directory of a pod's volumes of CSI drivers.
const csiVolumes = "kubernetes.io~csi"

// IsSubpath reports whether path, which is clean, is a mount of the kubelet's own, of a directory
// inside of a volume.
func IsSubpath(podsDir, path string) bool {
	rest, _ := strings.CutPrefix(path, filepath.Clean(podsDir)+"/")
	_, below, _ := strings.Cut(rest, "/")
	return strings.HasPrefix(below, "volume-subpaths/") // further down it may be a volume's name
}

// ParseTarget returns the pod and the volume's name in the pod's spec. Both stand in the kubelet's
// target paths: <pods>/<pod UID>/volumes/kubernetes.io~csi/<name>/mount. A path of another shape
// has neither.
func ParseTarget(podsDir, target string) (pod volume.PodUID, name string) {
	dir, below := split(podsDir, target)
	parts := strings.Split(below, "/")
	if len(parts) != 4 || parts[0] != "volumes" || parts[1] != csiVolumes || parts[3] != "mount" {
		return "", ""
	}
	pod, err := volume.ParsePodUID("target_path", dir)
	if err != nil {
		return "", ""
	}
	return pod, volume.ObjectName(parts[2])
}

// split cuts a path below the pods directory into the pod directory's name and the rest.
func split(podsDir, path string) (pod, below string) {
	rest, ok := strings.CutPrefix(filepath.Clean(path), filepath.Clean(podsDir)+"/")
	if !ok {
		return "", ""
	}
	pod, below, _ = strings.Cut(rest, "/")
	return pod, below
}
