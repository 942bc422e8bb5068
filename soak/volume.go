package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// driverName is what pods call Katbox.
	driverName = "katbox.csi.paypal.com"
	// nodeName is the node the daemon believes to be on.
	nodeName = "soak"
	// volumeData is the file in which a kubelet notes what it mounts.
	volumeData = "vol_data.json"
)

// volume is one volume of one living or dead pod.
type volume struct {
	plan  volumePlan
	pod   string
	name  string // of the pod
	calls ledger
	// published says that its publish succeeded.
	published bool
	// marked says that the marker is in place and was not missed yet.
	marked bool
	// dir is the kubelet's directory for the volume, target the mount in it,
	// data where the daemon keeps the files.
	dir    string
	target string
	data   string
}

func newVolume(l layout, pod podPlan, p volumePlan) *volume {
	dir := filepath.Join(podDir(l, pod.uid), "volumes", "kubernetes.io~csi", p.name)
	return &volume{
		plan:   p,
		pod:    pod.uid,
		name:   fmt.Sprintf("soak-%d", pod.index),
		dir:    dir,
		target: filepath.Join(dir, "mount"),
		data:   filepath.Join(l.work, pod.uid, p.id),
	}
}

// podDir is the kubelet's directory for a pod.
func podDir(l layout, uid string) string { return filepath.Join(l.kubelet, "pods", uid) }

// context is the volume context that the kubelet sends.
func (v *volume) context() map[string]string {
	return map[string]string{
		"csi.storage.k8s.io/ephemeral":           "true",
		"csi.storage.k8s.io/pod.name":            v.name,
		"csi.storage.k8s.io/pod.namespace":       "soak",
		"csi.storage.k8s.io/pod.uid":             v.pod,
		"csi.storage.k8s.io/serviceAccount.name": "default",
	}
}

// prepare makes what a kubelet makes before it calls: the target's parent, with
// a note of the volume in it, but not the target.
func (v *volume) prepare() error {
	if err := os.MkdirAll(v.dir, 0o750); err != nil {
		return fmt.Errorf("prepare volume: %w", err)
	}
	note, err := json.Marshal(map[string]string{
		"specVolID":           v.plan.name,
		"volumeHandle":        v.plan.id,
		"driverName":          driverName,
		"nodeName":            nodeName,
		"volumeLifecycleMode": "Ephemeral",
	})
	if err != nil {
		return fmt.Errorf("prepare volume %s: %w", v.plan.id, err)
	}
	if err := os.WriteFile(filepath.Join(v.dir, volumeData), note, 0o644); err != nil {
		return fmt.Errorf("prepare volume: %w", err)
	}
	return nil
}

// dismiss removes what prepare made. Like a kubelet it deletes nothing that it
// does not know: what is left over in a directory keeps it there.
func (v *volume) dismiss() error {
	if err := os.Remove(filepath.Join(v.dir, volumeData)); err != nil {
		return fmt.Errorf("dismiss volume: %w", err)
	}
	if err := os.Remove(v.dir); err != nil {
		return fmt.Errorf("dismiss volume: %w", err)
	}
	return nil
}

// dismissPod removes a pod's directories, once its volumes are dismissed.
func dismissPod(l layout, uid string) error {
	pod := podDir(l, uid)
	for _, dir := range []string{"volumes/kubernetes.io~csi", "volumes", "."} {
		if err := os.Remove(filepath.Join(pod, dir)); err != nil {
			return fmt.Errorf("dismiss pod: %w", err)
		}
	}
	return nil
}

// exists tells whether there is anything at path, without following symlinks.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, err
	}
}
