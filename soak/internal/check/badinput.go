package check

import "github.com/katbox/katbox/soak/internal/history"

// BadAnswer takes what is to be said against the answer to a call with bad
// input; nothing if it was as it should be.
func (c *Checker) BadAnswer(objection string) {
	if objection != "" {
		c.cfg.Findings.Add(history.BadInput, nil, objection)
	}
}
