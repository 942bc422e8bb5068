package workload

import (
	"fmt"
	"slices"
	"time"
)

// disks says which kinds of disk a fault needs, for those that do not work with
// all: a directory's disk is the machine's, so nothing may fill it or hold it
// up; only block devices can be held up; only ext4 and tmpfs run out of inodes.
var disks = map[FaultKind][]string{
	DiskFull: {tmpfs, ext4, xfs, btrfs, auto},
	NoInodes: {tmpfs, ext4, auto},
	SlowDisk: {ext4, xfs, btrfs, auto},
	// btrfs counts what comes free only later.
	OpenFiles: {tmpfs, ext4, xfs, auto},
}

func (w Workload) checkFaults(c *checker) {
	ofVolumes := 0
	for i, f := range w.Faults {
		w.checkFault(c, fmt.Sprintf("faults[%d]", i), f)
		if f.Kind.OfVolume() {
			ofVolumes += f.Times
		}
	}
	c.that(ofVolumes <= w.Pods, "faults", "befall %d volumes, and no more than one of each pod: pods is %d", ofVolumes, w.Pods)
	c.that(ofVolumes == 0 || w.Volumes.Min > 0, "volumes.min", "is 0, it has to be at least 1 for the faults of volumes")
}

func (w Workload) checkFault(c *checker, at string, f Fault) {
	c.that(f.Kind != "", at+".kind", "is missing, it has to be one of %s", enumerate(kinds))
	oneOf(c, at+".kind", f.Kind, kinds...)
	within(c, at+".times", f.Times, 1, mostTimes)
	if f.Kind.Lasting() {
		c.that(f.For != 0, at+".for", "is missing, but %s lasts for a time: give one, such as 5s", f.Kind)
		within(c, at+".for", f.For, Duration(time.Millisecond), w.Timeout)
	} else {
		c.that(f.For == 0, at+".for", "is %v, but %s does not last: leave it out", f.For, f.Kind)
	}
	if f.Kind == ClockStep {
		c.that(f.Step != 0, at+".step", "is missing: say by how much the clock goes forwards, such as 1h, or back, such as -1h")
		within(c, at+".step", f.Step, -longestStep, longestStep)
	} else {
		c.that(f.Step == 0, at+".step", "is %v, but only %s has one: leave it out", f.Step, ClockStep)
	}
	if need, ok := disks[f.Kind]; ok {
		c.that(slices.Contains(need, w.Disk.Kind), at+".kind",
			"is %s, it needs a disk.kind of %s, but that is %s", f.Kind, enumerate(need), w.Disk.Kind)
	}
}
