package volume

import (
	"strings"
	"testing"
)

func TestNamesFromAKubelet(t *testing.T) {
	sum := strings.Repeat("0a9f", 16)
	for id, want := range map[ID]bool{
		ID("csi-" + sum):                       true,
		ID(sum):                                false,
		ID("csi-" + sum[1:]):                   false,
		ID("csi-" + sum + "0"):                 false,
		ID("csi-" + strings.ToUpper(sum)):      false,
		ID("csi-" + sum[1:] + "g"):             false,
		ID("csi-" + sum[:32] + "-" + sum[:31]): false,
		"csi-volume":                           false,
		"csi-":                                 false,
		"":                                     false,
		"2024":                                 false,
	} {
		if got := id.FromKubelet(); got != want {
			t.Errorf("volume %q: %t", id, got)
		}
	}
	for uid, want := range map[PodUID]bool{
		"5f1c8a52-1f4e-4f0e-9d43-6a1b2c3d4e5f":  true,
		"d41d8cd98f00b204e9800998ecf8427e":      true, // a static pod's
		"5F1C8A52-1F4E-4F0E-9D43-6A1B2C3D4E5F":  false,
		"5f1c8a52-1f4e-4f0e-9d43-6a1b2c3d4e5":   false,
		"5f1c8a52-1f4e-4f0e-9d43-6a1b2c3d4e5f-": false,
		"5f1c8a52-1f4e-4f0e-9d436-a1b2c3d4e5f":  false,
		"d41d8cd98f00b204e9800998ecf8427":       false,
		"photos":                                false,
		"":                                      false,
		"----":                                  false,
	} {
		if got := uid.FromKubelet(); got != want {
			t.Errorf("pod %q: %t", uid, got)
		}
	}
}

// TestKubeletID has the ID that printf %s%s POD NAME | sha256sum gives, as a kubelet does.
func TestKubeletID(t *testing.T) {
	got := KubeletID("4c0c7e4f-0b8a-4f0f-9d5e-3a1c2b4d5e6f", "scratch")
	if want := ID("csi-8b6522425e095eea4f050c0322e7eb27d425695fd7ab7efd9ec98154dfe3fbfd"); got != want || !got.FromKubelet() {
		t.Errorf("got %s, want %s", got, want)
	}
}
