package dataplane

import "testing"

// TestOnlyVolumesHaveLUNs: the objects of an array are numbered by their kinds, so a snapshot may have the number of a
// volume, and must not have its LUN.
func TestOnlyVolumesHaveLUNs(t *testing.T) {
	k := &Kernel{target: "iqn.target"}
	const want = "/sys/kernel/config/target/iscsi/iqn.target/tpgt_1/lun/lun_31"
	if lun, err := k.lun("volume-0000001f"); err != nil || lun != want {
		t.Errorf("%s, %v, want %s", lun, err, want)
	}
	for _, id := range []string{"snap-0000001f", "cg-0000001f", "0000001f", "volume-", "volume-x", ""} {
		if lun, err := k.lun(id); err == nil {
			t.Errorf("%q has %s", id, lun)
		}
	}
	// Neither do file systems, and volumes that are not there any more.
	for _, id := range []string{"snap-0000001f", "volume-0000001f"} {
		if err := k.removeDevice(id); err != nil {
			t.Error(err)
		}
	}
}
