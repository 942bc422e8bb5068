package kubelet

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// volumeDataFile is where the kubelet notes which volume a directory is for.
const volumeDataFile = "vol_data.json"

// volumeData is the content of the file (kubernetes pkg/volume/csi/csi_plugin.go,
// volDataKey).
type volumeData struct {
	SpecVolID     string `json:"specVolID,omitempty"`
	VolumeHandle  string `json:"volumeHandle"`
	DriverName    string `json:"driverName"`
	NodeName      string `json:"nodeName,omitempty"`
	AttachmentID  string `json:"attachmentID,omitempty"`
	LifecycleMode string `json:"volumeLifecycleMode,omitempty"`
}

// persistentMode is the volumeLifecycleMode of a persistent volume.
const persistentMode = "Persistent"

// describe is the volume data of a volume of a pod.
func describe(v *Volume, driver, node string) volumeData {
	mode := "Ephemeral"
	if v.Plan.Persistent {
		mode = persistentMode
	}
	sum := sha256.Sum256([]byte(v.Plan.ID + driver + node))
	return volumeData{
		SpecVolID:     v.specName(),
		VolumeHandle:  v.Plan.ID,
		DriverName:    driver,
		NodeName:      node,
		AttachmentID:  fmt.Sprintf("csi-%x", sum),
		LifecycleMode: mode,
	}
}

func podsDir(root string) string { return filepath.Join(root, "pods") }

func podDir(root, uid string) string { return filepath.Join(podsDir(root), uid) }

func volumesDir(root, uid string) string {
	return filepath.Join(podDir(root, uid), "volumes", "kubernetes.io~csi")
}

// devicesDir has a directory for each staged volume of the driver.
func devicesDir(root, driver string) string {
	return filepath.Join(root, "plugins", "kubernetes.io", "csi", driver)
}

// stagingPath is where a volume is staged.
func stagingPath(root, driver, handle string) string {
	sum := sha256.Sum256([]byte(handle))
	return filepath.Join(devicesDir(root, driver), fmt.Sprintf("%x", sum), "globalmount")
}

// writeVolumeData makes the directory and the file in it.
func writeVolumeData(dir string, data volumeData) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("note volume %s: %w", data.VolumeHandle, err)
	}
	if err := makeDir(dir); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, volumeDataFile), text, 0o644); err != nil {
		return fmt.Errorf("note volume %s: %w", data.VolumeHandle, err)
	}
	return nil
}

// makeDir makes a directory, and those above it.
func makeDir(path string) error {
	if err := os.MkdirAll(path, 0o750); err != nil {
		return fmt.Errorf("make a directory to mount on: %w", err)
	}
	return nil
}

// readVolumeData reads the file in the directory. There is none if the error is
// [fs.ErrNotExist].
func readVolumeData(dir string) (volumeData, error) {
	path := filepath.Join(dir, volumeDataFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return volumeData{}, err
	}
	var data volumeData
	if err := json.Unmarshal(text, &data); err != nil {
		return volumeData{}, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

// removeMountDir removes a target or staging path, the volume data beside it and
// the directory of both. If the path is a mount point it removes nothing and says
// so: to the kubelet that is no error (kubernetes pkg/volume/csi/csi_mounter.go,
// removeMountDir).
func removeMountDir(path string, isMounted func(string) (bool, error)) (stillMounted bool, err error) {
	stillMounted, err = isMounted(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look whether %s is mounted: %w", path, err)
	}
	if err == nil && stillMounted {
		return true, nil
	}
	dir := filepath.Dir(path)
	return false, removeEach(path, filepath.Join(dir, volumeDataFile), dir)
}

// removePodDir removes the directories of a pod, which have to be empty.
func removePodDir(root, uid string) error {
	volumes := volumesDir(root, uid)
	return removeEach(volumes, filepath.Dir(volumes), podDir(root, uid))
}

// removeEach removes one after the other, by no more than rmdir or unlink, and
// stops at the first that cannot be removed.
func removeEach(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
