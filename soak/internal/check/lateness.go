package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

const (
	// usualLateness is how late a driver may be as a rule. The tolerance is for
	// the odd volume, and may be longer than a deadline is off that is wrong for
	// all of them.
	usualLateness = time.Second
	// enoughDeadlines is how many there have to be before there is a rule.
	enoughDeadlines = 50
)

// checkLateness reports a driver that deletes late as a rule.
func (c *Checker) checkLateness() {
	c.mu.Lock()
	late := slices.Clone(c.counts.Lateness)
	c.mu.Unlock()
	if len(late) < enoughDeadlines || c.cfg.Timeline.During(c.started, time.Now(), workload.MachineSlow) {
		return
	}
	slices.Sort(late)
	if half := late[len(late)/2]; half > usualLateness {
		c.cfg.Findings.Add(history.Durable, nil, fmt.Sprintf(
			"of %d volumes that expired, half were deleted more than %s after their deadline; %s is what one may be late as a rule",
			len(late), half.Round(time.Millisecond), usualLateness))
	}
}
