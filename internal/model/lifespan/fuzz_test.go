package lifespan

import (
	"math"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// FuzzFactor looks for a file system whose pressure factor is not between 0 and 1, or grows as free
// space falls.
func FuzzFactor(f *testing.F) {
	const disk = 100 << 30
	f.Add(0.1, uint64(disk), uint64(disk/20), uint64(1<<20), uint64(1<<19))
	f.Add(0.1, uint64(disk), uint64(disk), uint64(0), uint64(0))
	f.Add(math.NaN(), uint64(0), uint64(0), uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, headroom float64, total, free, inodes, freeInodes uint64) {
		share := headroom >= 0 && headroom <= 1
		if err := CheckHeadroom(headroom); (err == nil) != share {
			t.Fatalf("headroom %v: %v", headroom, err)
		}
		if !share {
			return
		}
		// A file system that reports more free than its total has no pressure.
		soon := volume.Size{Bytes: int64(free >> 3), Inodes: int64(freeInodes >> 1)}
		most := func(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
		bytes, files := room{most(total), most(free)}, room{most(inodes), most(freeInodes)}
		for _, line := range []Line{{}, DefaultLine, {Bytes: Amount{count: total}}} {
			limits := Limits{Headroom: headroom, Line: line}
			p := limits.Pressure(spaceOf(bytes, files), soon)
			if !(p.Factor >= 0 && p.Factor <= 1) || p.Lacking.Bytes < 0 || p.Lacking.Inodes < 0 {
				t.Fatalf("%+v of %v and %v with %v", p, bytes, files, limits)
			}
			ofBytes, ofInodes := limits.marks(spaceOf(bytes, files))
			ofBytes, ofInodes = ofBytes.raised(soon.Bytes), ofInodes.raised(soon.Inodes)
			if one, other := ofBytes.factor(bytes.Free), ofInodes.factor(files.Free); p.Factor != min(one, other) {
				t.Errorf("factor %v is not the smaller of %v and %v", p.Factor, one, other)
			}
			for _, m := range []marks{ofBytes, ofInodes} {
				if m.line < 0 || m.line > m.total || m.brink < 0 || m.brink > m.floor || m.floor > m.wanted || m.wanted > m.total {
					t.Errorf("%+v are not in order, between 0 and the total", m)
				}
			}
			if bytes.Free >= bytes.Total && files.Free >= files.Total && p.Factor != 1 {
				t.Errorf("factor %v of an empty file system, %v and %v with %v", p.Factor, bytes, files, limits)
			}
			if bytes.Free > 0 {
				fewer := room{bytes.Total, bytes.Free - 1}
				if less := limits.Pressure(spaceOf(fewer, files), soon); less.Factor > p.Factor || less.Lacking.Bytes < p.Lacking.Bytes {
					t.Errorf("%+v, but %+v with a byte less", p, less)
				}
			}
		}
	})
}

// FuzzDeadline looks for a deadline before the volume was unpublished, after its lifespan, or
// earlier under less pressure.
func FuzzDeadline(f *testing.F) {
	f.Add(int64(12*time.Hour), 0.5, 1.0, int64(0))
	f.Add(int64(math.MaxInt64), math.Nextafter(1, 0), 1.0, int64(0))
	f.Fuzz(func(t *testing.T, nanoseconds int64, more, less float64, ago int64) {
		lifespan := time.Duration(nanoseconds)
		if lifespan < 0 || !(0 <= more && more <= less && less <= 1) {
			return
		}
		// As the store returns it: with a monotonic reading, if not too old.
		unpublished := time.Now().Add(-time.Duration(max(ago, 0)))
		early, late := Deadline(unpublished, lifespan, more), Deadline(unpublished, lifespan, less)
		if early.Before(unpublished) || late.Before(early) || unpublished.Add(lifespan).Before(late) {
			t.Errorf("lifespan %v: %v under factor %v, %v under %v", lifespan, early.Sub(unpublished), more, late.Sub(unpublished), less)
		}
		if more == 0 && !early.Equal(unpublished) {
			t.Errorf("lifespan %v: kept for %v with no space left", lifespan, early.Sub(unpublished))
		}
		if whole := Deadline(unpublished, lifespan, 1); !whole.Equal(unpublished.Add(lifespan)) {
			t.Errorf("lifespan %v: kept for %v without pressure", lifespan, whole.Sub(unpublished))
		}
	})
}
