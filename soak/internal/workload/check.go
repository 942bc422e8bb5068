package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The kinds of disk.
const (
	directory = "directory"
	tmpfs     = "tmpfs"
	ext4      = "ext4"
	xfs       = "xfs"
	btrfs     = "btrfs"
	auto      = "auto"
)

// The limits keep a slip of the finger from eating the machine.
const (
	mostPods    = 10_000_000
	mostTimes   = 100_000
	mostVolumes = 100
	mostFiles   = 10_000
	mostBytes   = 1 << 30
	mostBad     = 100
	mostReaders = 32
	mostPool    = 10_000
	mostInodes  = 100_000_000
	// mostPerOwner is the daemon's.
	mostPerOwner = 1000
	largestDisk  = 1 << 40
	fastestRate  = 1_000_000
	longestRun   = Duration(1000 * time.Hour)
	longestStep  = Duration(100 * 365 * 24 * time.Hour)
)

// smallestDisk is what each kind of disk needs at least: the tools that make
// the file systems refuse less (xfsprogs 300 MiB, btrfs-progs 109 MiB).
var smallestDisk = map[string]Bytes{tmpfs: 16 << 20, ext4: 16 << 20, auto: 16 << 20, xfs: 300 << 20, btrfs: 128 << 20}

// fieldError says what is wrong with a field.
type fieldError struct {
	field   string // like calls.doubled or faults[3].for
	problem string
}

func (e *fieldError) Error() string { return e.field + " " + e.problem }

// checker keeps the first error that it meets.
type checker struct{ err *fieldError }

func (c *checker) that(ok bool, field, format string, args ...any) {
	if !ok && c.err == nil {
		c.err = &fieldError{field, fmt.Sprintf(format, args...)}
	}
}

// within refuses what does not lie between low and high, so NaN too.
func within[N int | int64 | float64 | Bytes | Duration](c *checker, field string, n, low, high N) {
	c.that(n >= low && n <= high, field, "is %v, it has to lie between %v and %v", n, low, high)
}

func (c *checker) share(field string, share float64) { within(c, field, share, 0, 1) }

// oneOf refuses what is not in the list.
func oneOf[S ~string](c *checker, field string, s S, list ...S) {
	c.that(slices.Contains(list, s), field, "is %q, it has to be one of %s", string(s), enumerate(list))
}

// enumerate writes a list for people.
func enumerate[S ~string](list []S) string {
	var all strings.Builder
	for i, s := range list {
		if i > 0 {
			all.WriteString(", ")
		}
		all.WriteString(string(s))
	}
	return all.String()
}

// Check refuses a workload that makes no sense, or cannot be carried out
// anywhere. The error names the first such field, its value and what it may be.
func (w Workload) Check() error {
	c := &checker{}
	within(c, "timeout", w.Timeout, Duration(time.Second), longestRun)
	w.checkPods(c)
	w.checkVolumes(c)
	c.share("calls.doubled", w.Calls.Doubled)
	c.share("calls.cancelled", w.Calls.Cancelled)
	c.share("calls.reordered", w.Calls.Reordered)
	within(c, "calls.bad", w.Calls.Bad, 0, mostBad)
	within(c, "reading.readers", w.Reading.Readers, 0, mostReaders)
	c.share("reading.removed", w.Reading.Removed)
	c.share("failed", w.Failed)
	c.share("volumes.onFailure", w.Volumes.OnFailure)
	c.share("volumes.limits", w.Volumes.Limits)
	c.share("reading.pinned", w.Reading.Pinned)
	c.share("reading.released", w.Reading.Released)
	c.share("reading.attached", w.Reading.Attached)
	for _, decided := range []struct {
		name  string
		share float64
	}{{"removed", w.Reading.Removed}, {"pinned", w.Reading.Pinned}, {"released", w.Reading.Released}, {"attached", w.Reading.Attached}} {
		c.that(decided.share == 0 || w.Reading.Readers > 0, "reading."+decided.name,
			"is %v, but reading.readers is 0, so the driver has no admin socket to decide about volumes by", decided.share)
	}
	w.checkDriver(c)
	w.Disk.check(c)
	w.checkTight(c)
	w.checkFaults(c)
	if c.err != nil {
		return c.err
	}
	return nil
}

func (w Workload) checkPods(c *checker) {
	within(c, "pods", w.Pods, 1, mostPods)
	within(c, "parallel", w.Parallel, 1, mostPods)
	within(c, "arrival.rate", w.Arrival.Rate, 0, fastestRate)
	within(c, "arrival.burst", w.Arrival.Burst, 1, mostPods)
	c.that(w.Arrival.Rate == 0 || float64(w.Pods)/w.Arrival.Rate <= time.Duration(w.Timeout).Seconds(), "arrival.rate",
		"is %v, so the %d pods cannot arrive before the timeout of %v", w.Arrival.Rate, w.Pods, w.Timeout)
	oneOf(c, "length.distribution", w.Length.Distribution, Constant, Uniform, Exponential, Lognormal)
	within(c, "length.mean", w.Length.Mean, 0, w.Timeout)
	c.that(w.Length.Max == 0 || w.Length.Max >= w.Length.Mean, "length.max",
		"is %v, it has to be 0s or at least length.mean, which is %v", w.Length.Max, w.Length.Mean)
	c.that(!w.Drain || w.Parallel >= w.Pods, "parallel",
		"is %d, but drain needs all pods on the node at a time: it has to be at least pods, which is %d", w.Parallel, w.Pods)
	c.share("deletedEarly", w.DeletedEarly)
	c.share("again", w.Again)
	c.share("owned", w.Owned)
}

func (w Workload) checkVolumes(c *checker) {
	v := w.Volumes
	within(c, "volumes.min", v.Min, 0, mostVolumes)
	within(c, "volumes.max", v.Max, 0, mostVolumes)
	c.that(v.Max >= v.Min, "volumes.max", "is %d, it has to be at least volumes.min, which is %d", v.Max, v.Min)
	c.share("volumes.readOnly", v.ReadOnly)
	c.share("volumes.persistent", v.Persistent)
	c.that(v.Max > 0 || v.Persistent > 0, "volumes.max", "is 0 and so is volumes.persistent, so no pod would have a volume")
	within(c, "volumes.pool", v.Pool, 1, mostPool)
	within(c, "contents.files", w.Contents.Files, 0, mostFiles)
	within(c, "contents.bytes", w.Contents.Bytes, 0, mostBytes)
	c.share("contents.deep", w.Contents.Deep)
	c.share("contents.names", w.Contents.Names)
	c.share("contents.sparse", w.Contents.Sparse)
	c.share("contents.links", w.Contents.Links)
	c.share("contents.modes", w.Contents.Modes)
	c.share("contents.special", w.Contents.Special)
}

func (w Workload) checkDriver(c *checker) {
	within(c, "driver.lifespan", w.Driver.Lifespan, 0, w.Timeout)
	c.share("driver.headroom", w.Driver.Headroom)
	within(c, "driver.pruneInterval", w.Driver.PruneInterval, Duration(100*time.Millisecond), longestRun)
	within(c, "driver.releaseGrace", w.Driver.ReleaseGrace, 0, longestRun)
	c.that(w.Reading.Released+w.Reading.Attached+w.Volumes.OnFailure == 0 || w.Driver.ReleaseGrace > 0, "driver.releaseGrace",
		"is %v, but reading.released is %v, reading.attached %v and volumes.onFailure %v: say how long what is let go is kept",
		w.Driver.ReleaseGrace, w.Reading.Released, w.Reading.Attached, w.Volumes.OnFailure)
	within(c, "driver.maxPinned", w.Driver.MaxPinned, 0, 0.9)
	most := w.Driver.MaxPerOwner
	within(c, "driver.maxPerOwner.first", most.First, 0, mostPerOwner)
	within(c, "driver.maxPerOwner.last", most.Last, 0, mostPerOwner)
	c.that(most.First == 0 || most.Last > 0, "driver.maxPerOwner.last", "is 0: the newest pod of an owner has to stay")
	within(c, "driver.maxLifespan", w.Driver.MaxLifespan, 0, Duration(time.Minute))
	c.that(w.Volumes.Limits == 0 || w.Driver.MaxLifespan >= w.Driver.Lifespan && w.Driver.MaxLifespan > 0, "driver.maxLifespan",
		"is %v, but volumes.limits is %v: it has to be at least driver.lifespan, which is %v", w.Driver.MaxLifespan, w.Volumes.Limits,
		w.Driver.Lifespan)
	within(c, "driver.orphanGrace", w.Driver.OrphanGrace, Duration(time.Millisecond), longestRun)
}

func (d Disk) check(c *checker) {
	oneOf(c, "disk.kind", d.Kind, directory, tmpfs, ext4, xfs, btrfs, auto)
	if d.Kind != directory {
		c.that(d.Size >= smallestDisk[d.Kind] && d.Size <= largestDisk, "disk.size",
			"is %v, for %s it has to lie between %v and %v", d.Size, d.Kind, smallestDisk[d.Kind], Bytes(largestDisk))
	}
	c.that(d.Inodes == 0 || d.Kind == ext4 || d.Kind == tmpfs || d.Kind == auto, "disk.inodes",
		"is %d, but a disk.kind of %s has no fixed number of inodes: only %s have", d.Inodes, d.Kind,
		enumerate([]string{ext4, tmpfs, auto}))
	c.that(!d.Quotas || d.Kind == ext4 || d.Kind == xfs, "disk.quotas", "is true, but a disk.kind of %s has no project quotas: only %s have",
		d.Kind, enumerate([]string{ext4, xfs}))
	if d.Inodes != 0 {
		within(c, "disk.inodes", d.Inodes, 1000, mostInodes)
	}
}
