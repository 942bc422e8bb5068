package actors

import (
	"context"
	"slices"
	"time"

	"github.com/katbox/katbox/messages"
)

// waiting is a request and when it came.
type waiting struct {
	messages.Request
	asked time.Time
}

// callers are requests that wait.
type callers []waiting

// add adds a request, unless there are most of them. Those whose callers are gone make room.
func (c *callers) add(m waiting, most int) bool {
	if len(*c) >= most {
		*c = slices.DeleteFunc(*c, func(w waiting) bool {
			gone := w.Route().Expired()
			if gone {
				w.Fail(context.DeadlineExceeded)
			}
			return gone
		})
	}
	if len(*c) >= most {
		return false
	}
	*c = append(*c, m)
	return true
}

func (c callers) fail(err error) {
	for _, m := range c {
		m.Fail(err)
	}
}
