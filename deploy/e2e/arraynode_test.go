//go:build e2e

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// wantNothingOnNode waits until the node has nothing of any volume, and the array serves nothing.
func (a *arrayCluster) wantNothingOnNode() {
	a.t.Helper()
	a.eventually("nothing is left on the node", func() error {
		if left := a.onNode(); len(left) > 0 {
			return errors.New(strings.Join(left, "\n"))
		}
		return nil
	})
}

// onNode lists what the node has of volumes, and what the array serves it: both are in this kernel.
func (a *arrayCluster) onNode() (left []string) {
	a.t.Helper()
	for _, line := range a.mountTable() {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		below, isBelow := strings.CutPrefix(fields[4], a.kubeletDir())
		if isBelow && (strings.Contains(below, "kubernetes.io~csi") || strings.HasPrefix(below, "/plugins/kubernetes.io/csi")) ||
			strings.Contains(line, " - nfs4 ") || strings.Contains(line, " - nfs ") {
			left = append(left, "mount: "+line)
		}
	}
	for what, pattern := range map[string]string{
		"session":           "/sys/class/iscsi_session/*",
		"disk":              "/sys/block/sd*",
		"record of a login": "/etc/iscsi/nodes/*/*",
		"record of staging": filepath.Join(a.socketDir(), "staged", "*"),
		"staged":            filepath.Join(a.kubeletDir(), "plugins", "kubernetes.io", "csi", poolsDriver, "*"),
		"published device":  filepath.Join(a.kubeletDir(), "plugins", "kubernetes.io", "csi", "volumeDevices", "publish", "*"),
		"LUN":               "/sys/kernel/config/target/iscsi/*/tpgt_1/lun/*",
		"backstore":         "/sys/kernel/config/target/core/iblock_*/*/udev_path",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			a.t.Fatal(err)
		}
		for _, path := range found {
			left = append(left, what+": "+path)
		}
	}
	backing, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, path := range backing {
		if file, err := os.ReadFile(path); err == nil {
			left = append(left, "loop device: "+strings.TrimSpace(string(file)))
		}
	}
	if exports, err := os.ReadFile("/var/lib/nfs/etab"); err == nil && len(exports) > 0 {
		left = append(left, "export: "+string(exports))
	}
	return left
}
