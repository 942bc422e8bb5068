package kubelet

import "path/filepath"

// target is where a pod wants the volume: a directory of the pod's, or the file of
// a device beside those of the volume's other pods.
func (v *Volume) target(root string) string {
	if v.Plan.Block {
		return filepath.Join(blockDir(root, "publish"), v.directory(), v.Pod.Plan.UID)
	}
	return filepath.Join(volumesDir(root, v.Pod.Plan.UID), v.directory(), "mount")
}

// StagingPath is where the volume is staged, for all pods of the node. That of a
// device is one level deeper than the real one's: there the kubelet keeps what it
// knows of the volume in yet another directory.
func (v *Volume) StagingPath(root, driver string) string {
	if v.Plan.Block {
		return filepath.Join(blockDir(root, "staging"), v.directory(), "device")
	}
	return stagingPath(root, driver, v.Plan.ID)
}

// blockDir has what is for devices. A new kubelet does not look there.
func blockDir(root, what string) string {
	return filepath.Join(root, "plugins", "kubernetes.io", "csi", "volumeDevices", what)
}
