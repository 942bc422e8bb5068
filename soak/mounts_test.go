package main

import (
	"slices"
	"strings"
	"testing"
)

const mountTable = `21 1 8:1 / / rw,relatime - ext4 /dev/root rw
22 21 0:5 / /proc rw,nosuid shared:2 - proc proc rw
40 21 8:1 /run/soak/work/a/csi-1 /run/soak/kubelet/pods/a/volumes/kubernetes.io~csi/v/mount rw,relatime - ext4 /dev/root rw
41 40 8:1 /run/soak/work/a/csi-1 /run/soak/kubelet/pods/a/volumes/kubernetes.io~csi/v/mount ro,relatime - ext4 /dev/root rw
42 21 8:1 /x /run/soak/kubelet/pods/with\040blank\134n rw - ext4 /dev/root rw
43 21 8:1 /run/soak/kubelet/pods /elsewhere rw - ext4 /dev/root rw
44 21 8:1 /x /run/soak/kubelet-of-others rw - ext4 /dev/root rw
45 21 8:1 /x /run/soak/kubelet rw - ext4 /dev/root rw

garbage
`

func TestMountsBelow(t *testing.T) {
	stacked := "/run/soak/kubelet/pods/a/volumes/kubernetes.io~csi/v/mount"
	want := []string{stacked, stacked, `/run/soak/kubelet/pods/with blank\n`}
	for _, dir := range []string{"/run/soak/kubelet", "/run/soak/kubelet/"} {
		if got := mountsBelow(mountTable, dir); !slices.Equal(got, want) {
			t.Errorf("below %s: %q, want %q", dir, got, want)
		}
	}
	if got := mountsBelow(mountTable, "/run/other"); got != nil {
		t.Errorf("below /run/other: %q, want none", got)
	}
}

func TestCheckMounts(t *testing.T) {
	var f findings
	// Whatever else there is, /proc is mounted: it is being read.
	if err := checkMounts("in the test", &f, t.TempDir(), "/"); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(f.all(), func(v violation) bool {
		return v.promise == leakedMount && strings.Contains(v.what, "/proc is still mounted")
	}) {
		t.Errorf("/proc is not among the leaked mounts: %+v", f.all())
	}
	clean := findings{}
	if err := checkMounts("in the test", &clean, t.TempDir(), "/proc/self"); err != nil || clean.sum() != 0 {
		t.Errorf("mounts where there are none: %+v, %v", clean.all(), err)
	}
}
