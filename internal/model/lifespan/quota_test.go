package lifespan

import (
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestQuotaOnADisk: the working directory has a quota, and the kubelet looks at the disk below. The one with less room
// decides, and the kubelet's line holds for the disk alone.
func TestQuotaOnADisk(t *testing.T) {
	const quota, disk = 1000, 100_000
	l := Limits{Headroom: 0.1, Line: DefaultLine, Burst: DefaultBurst}
	size := func(n int64) volume.Size { return volume.Size{Bytes: n} }
	for _, tt := range []struct {
		name                string
		inQuota, onDisk     int64
		factor              float64
		lacking, line, ofIs int64
	}{
		{"room in both", 900, 90_000, 1, 0, 15_000, disk},
		{"the quota is nearly full", 75, 90_000, 0.5, 0, 0, quota},
		{"the quota is full, the disk is not", 0, 90_000, 0, 55, 0, quota},
		{"the disk is below the line, the quota is empty", 1000, 12_000, 0, 6_000, 15_000, disk},
		{"the disk is in the band", 1000, 22_000, 0.5, 0, 15_000, disk},
		{"both are scarce, the disk more", 80, 18_000, 0.1, 0, 15_000, disk},
		{"both are full", 0, 0, 0, 18_000, 15_000, disk},
	} {
		is := volume.Space{Total: size(quota), Free: size(tt.inQuota), DiskTotal: size(disk), DiskFree: size(tt.onDisk)}
		p := l.Pressure(is, volume.Size{})
		if p.Factor < tt.factor-0.001 || p.Factor > tt.factor+0.001 || p.Line.Bytes != tt.line || p.Of.Total.Bytes != tt.ofIs ||
			p.Lacking.Bytes != tt.lacking {
			t.Errorf("%s: %+v, want factor %v, lacking %d, line %d of %d", tt.name, p, tt.factor, tt.lacking, tt.line, tt.ofIs)
		}
		next := l.NextLook(is, volume.Size{}, time.Hour)
		alone := l.NextLook(volume.Space{Total: size(disk), Free: size(tt.onDisk)}, volume.Size{}, time.Hour)
		if next > alone {
			t.Errorf("%s: the next look is in %v, and at the disk alone in %v", tt.name, next, alone)
		}
	}
	line := Limits{Headroom: 0.1, Line: Line{Bytes: Amount{count: disk}}}
	if err := line.Check(volume.Space{Total: size(quota), Free: size(quota), DiskTotal: size(disk), DiskFree: size(disk)}); err == nil {
		t.Error("a line that leaves nothing of the disk is accepted")
	}
	small := Limits{Headroom: 0.1, Line: Line{Bytes: Amount{count: 10 * quota}}}
	if err := small.Check(volume.Space{Total: size(quota), Free: size(quota), DiskTotal: size(disk), DiskFree: size(disk)}); err != nil {
		t.Errorf("a line above the quota's size, and far below the disk's, is refused: %v", err)
	}
}
