package workload

import (
	"strconv"
	"time"
)

// What pods ask for: each is legal, and more than any volume needs, so that a file system
// that enforces it makes no difference.
var (
	sizeLimits  = []string{"1Gi", "1.5G", "2e9", "3000M"}
	inodeLimits = []string{"100k", "1M", "65536"}
	lifespans   = []string{"90s", "1h30m", "4d", ".5s"}
)

// limit decides which limits and which lifespan a volume asks for.
func (p Plan) limit(v *Volume, pod, volume int) {
	r := p.stream("limits", uint64(pod), uint64(volume))
	asks := chance(r, p.workload.Volumes.Limits)
	draw := func(of []string) string { return of[between(r, 0, int64(len(of))-1)] }
	size, inodes, lifespan := draw(sizeLimits), draw(inodeLimits), draw(lifespans)
	if !asks {
		return
	}
	v.Attributes = map[string]string{"sizeLimit": size, "inodeLimit": inodes}
	// Some ask for the room alone.
	if chance(r, 0.5) {
		v.Attributes["lifespan"], v.Lifespan = lifespan, time.Duration(p.workload.Driver.MaxLifespan)
	}
}

// What volumes may have that are tight, in bytes and inodes. What a pod writes into one at first
// takes at most half of that, and so can be written; see [TightSpare].
const (
	TightBytes  = 24 << 20
	TightInodes = 2000
)

const (
	// TightSpare is one part in so many of a limit that there is room for beside all contents.
	TightSpare = 4
	// mostTightBytes and mostTightInodes are what plain files may take in a tight volume. All else
	// that there may be in one takes less than as much again, and a file system may set as much aside for
	// a while as it gives.
	mostTightBytes  = 4 << 20
	mostTightInodes = 500
	// block is what a file takes at least.
	block = 4 << 10
)

// tighten decides which volumes ask for little more room than they need.
func (p Plan) tighten(v *Volume, pod, volume int) {
	if !chance(p.stream("tight", uint64(pod), uint64(volume)), p.workload.Volumes.Tight) {
		return
	}
	if v.Attributes == nil {
		v.Attributes = make(map[string]string)
	}
	v.Tight = true
	v.Attributes["sizeLimit"], v.Attributes["inodeLimit"] = strconv.Itoa(TightBytes), strconv.Itoa(TightInodes)
}

// checkTight refuses a workload whose tight volumes would not be limited, or would not have room for what is
// in them.
func (w Workload) checkTight(c *checker) {
	c.share("volumes.tight", w.Volumes.Tight)
	if w.Volumes.Tight == 0 {
		return
	}
	c.that(w.Disk.Quotas, "volumes.tight", "is %v, but nothing limits volumes: disk.quotas has to be true", w.Volumes.Tight)
	c.that(w.Contents.Files <= mostTightInodes, "contents.files", "is %d, but volumes.tight is %v: it has to be at most %d",
		w.Contents.Files, w.Volumes.Tight, mostTightInodes)
	c.that(int64(w.Contents.Files)*(int64(w.Contents.Bytes)+block) <= mostTightBytes, "contents.bytes",
		"is %v, but volumes.tight is %v: all files of a volume have to fit into %v", w.Contents.Bytes, w.Volumes.Tight, Bytes(mostTightBytes))
	for i, f := range w.Faults {
		c.that(f.Kind != DiskFull && f.Kind != NoInodes && f.Kind != OpenFiles, "volumes.tight",
			"is %v, but faults[%d] is %s: nothing can be said about limits on a full disk", w.Volumes.Tight, i, f.Kind)
	}
}
