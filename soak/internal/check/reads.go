package check

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// Failure is how a request to the admin socket failed.
type Failure int

// The failures.
const (
	// Absent: there is no such volume, or it is no longer retained, also after a
	// part of the answer.
	Absent Failure = iota
	// Unserved: the driver could not be asked, or did not answer in time.
	Unserved
	// Broken: the connection ended before the answer began. A volume that goes takes those of its readers with it.
	Broken
	// Refused: any other error.
	Refused
)

// ReadFailed judges that a request failed which began at the given time. The
// volume is nil if the request was about none. It reports whether the failure is
// excused.
func (c *Checker) ReadFailed(v *history.Volume, from time.Time, how Failure, what string) bool {
	now := time.Now()
	switch {
	case c.cfg.Timeline.During(from, now, workload.DaemonKill):
		return true
	case (how == Unserved || how == Broken) && c.cfg.Timeline.During(from, now, workload.SlowDisk, workload.MachineSlow):
		return true
	case (how == Absent || how == Broken) && v != nil && c.mayBeAbsent(v):
		return true
	}
	c.cfg.Findings.Add(history.ReadsTrue, v, fmt.Sprintf("%s, asked for at %s, and nothing excuses that", what, story.Clock(from)))
	return false
}

// mayBeAbsent reports whether the driver may have said, until now, that it does not
// retain a volume.
func (c *Checker) mayBeAbsent(v *history.Volume) bool {
	r := c.follows(v)
	return r == nil || !c.certain(r)
}
