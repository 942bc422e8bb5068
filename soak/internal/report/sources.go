package report

import (
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// Sources are where a run's numbers come from, beside its calls and counters.
// The functions are called several times a second, from one goroutine or
// another but never two at a time. Each may be nil, and is then never known.
type Sources struct {
	Timeline *history.Timeline
	Findings *history.Findings
	// Usage is false while no process of the driver runs.
	Usage func() (Usage, bool)
	// Disk is false while the file system does not say.
	Disk func() (Disk, bool)
	Kept func() Kept
	Read func() Read
}

// Usage is what the driver uses.
type Usage struct {
	// CPU is the time in user and system mode since the beginning of the run,
	// with the processes that were killed.
	CPU time.Duration
	// Memory in bytes: RSS is all that is in RAM, Anonymous what of it is not
	// backed by a file, Peak the highest RSS of this process so far.
	RSS, Anonymous, Peak int64
	Threads              int
}

// Disk is the file system of the working directory.
type Disk struct {
	FreeBytes, TotalBytes uint64
	// TotalInodes is 0 where inodes are made at need, as on btrfs.
	FreeInodes, TotalInodes uint64
}

// Kept is what became of the deadlines that the driver promised.
type Kept struct {
	// Following counts the volumes that are retained now, Seen those whose data
	// was still there just before the deadline, Expired those whose data went in
	// time after it, Evicted those whose data went before it under pressure.
	// Removed those that a person removed, Repeated those that went because enough others of their owner stayed, Attached
	// those that another pod attached.
	Following, Seen, Expired, Evicted, Removed, Repeated, Attached int
	// Lateness is how long after its deadline the data of each expired volume
	// was seen to be gone. The report does not change it, so a slice that is
	// still being appended to may be handed out.
	Lateness []time.Duration
}

// Read is what people read of retained volumes.
type Read struct {
	// Lists counts the lists of volumes, Volumes the visits to volumes, Files the
	// files and parts of files that were read to their end, Bytes what came in all,
	// and Tars the whole tars.
	Lists, Volumes, Files int
	Bytes                 int64
	Tars                  int
	// Ended counts what ended early because its volume went or the driver was
	// killed, Refused what is not to be read, and was refused.
	Ended, Refused int
}

// pressure is the factor by which a driver shortens lifespans: 1 while the
// headroom is free, down to 0 on a full disk. What is scarcer decides.
func (d Disk) pressure(headroom float64) float64 {
	return min(pressure(d.FreeBytes, d.TotalBytes, headroom), pressure(d.FreeInodes, d.TotalInodes, headroom))
}

func pressure(free, total uint64, headroom float64) float64 {
	if total == 0 || headroom <= 0 {
		return 1
	}
	return min(share(free, total)/headroom, 1)
}

// share is a part of a whole; 0 of nothing.
func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// kept, usage and disk ask the sources that there are.
func (s Sources) kept() Kept {
	if s.Kept == nil {
		return Kept{}
	}
	return s.Kept()
}

func (s Sources) read() Read {
	if s.Read == nil {
		return Read{}
	}
	return s.Read()
}

func (s Sources) usage() (Usage, bool) {
	if s.Usage == nil {
		return Usage{}, false
	}
	return s.Usage()
}

func (s Sources) disk() (Disk, bool) {
	if s.Disk == nil {
		return Disk{}, false
	}
	return s.Disk()
}

func (s Sources) spans() []history.Span {
	if s.Timeline == nil {
		return nil
	}
	return s.Timeline.Spans()
}

func (s Sources) violations() int {
	if s.Findings == nil {
		return 0
	}
	return s.Findings.Sum()
}

// goingOn are the faults of the node that last at this moment, each kind once.
func (s Sources) goingOn() []workload.FaultKind {
	var kinds []workload.FaultKind
	known := make(map[workload.FaultKind]bool)
	for _, span := range s.spans() {
		if span.Kind.Lasting() && span.To.IsZero() && !known[span.Kind] {
			known[span.Kind] = true
			kinds = append(kinds, span.Kind)
		}
	}
	return kinds
}
