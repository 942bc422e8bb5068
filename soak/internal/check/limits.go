package check

import (
	"fmt"

	"github.com/katbox/katbox/soak/internal/history"
)

// Taken is how much of something a pod could write into a volume until it was refused, what the
// volume may have of it altogether, and what it has to have room for beside what is in it.
type Taken struct {
	What                 string
	Amount, Limit, Least int64
}

// Overfilled judges what became of a pod that wrote more than its volume may have. A file system that
// is full itself refuses more than the limit.
func (c *Checker) Overfilled(v *history.Volume, all ...Taken) {
	for _, t := range all {
		switch {
		case t.Amount >= t.Limit:
			c.cfg.Findings.Add(history.Limits, v, fmt.Sprintf("its limit is %d %s, and beside what it had its pod could write %d",
				t.Limit, t.What, t.Amount))
		case t.Amount < t.Least && !c.nearlyFull():
			c.cfg.Findings.Add(history.Limits, v, fmt.Sprintf("its limit is %d %s, and its pod was refused after %d, which is far below it",
				t.Limit, t.What, t.Amount))
		}
	}
}

// RefusedWithinLimit judges that a pod was refused although its volume may have all that it wants to
// write.
func (c *Checker) RefusedWithinLimit(v *history.Volume, err error) {
	if !c.nearlyFull() {
		c.cfg.Findings.Add(history.Limits, v, "its pod wrote less than its limit, but: "+err.Error())
	}
}

// roomy is what part of a file system has to be free for it to be no reason to refuse anything.
const roomy = 10

func (c *Checker) nearlyFull() bool {
	s, err := c.cfg.Disk()
	if err != nil {
		c.fail(err)
		return true
	}
	return s.FreeBytes < s.TotalBytes/roomy || s.TotalInodes > 0 && s.FreeInodes < s.TotalInodes/roomy
}
