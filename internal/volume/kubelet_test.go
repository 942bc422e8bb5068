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
