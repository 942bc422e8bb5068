package check

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/story"
)

// lookAtCanaries reports what changed outside of the volumes, each change once.
func (c *Checker) lookAtCanaries() {
	err := c.cfg.Canaries()
	if err == nil {
		return
	}
	c.mu.Lock()
	told := c.toldCanaries == err.Error()
	c.toldCanaries = err.Error()
	c.mu.Unlock()
	if !told {
		c.cfg.Findings.Add(history.Contained, nil, fmt.Sprintf(
			"what is outside of the data directories should stay as it is, and at %s: %v", story.Clock(time.Now()), err))
	}
}
