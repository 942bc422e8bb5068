package report

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/quantile"
)

// calls counts calls with their answers. Make it with newCalls.
type calls struct {
	methods map[history.Method]*method
	// bad are those whose input was bad on purpose.
	bad method
	// answered and errors leave those out.
	answered, errors int
	cancelled        int
}

// method is about the calls of one method.
type method struct {
	number int
	codes  map[codes.Code]int
	// took is how long each successful call took. Eight bytes for each are
	// 5 MB for a run of 600,000 calls, which are sorted within a moment at the
	// end: that is cheap enough to stay exact, and so needs no histogram.
	took []time.Duration
	// fresh are those since the last sample.
	fresh []time.Duration
}

func newCalls() calls { return calls{methods: make(map[history.Method]*method)} }

func (c *calls) add(one history.Call) {
	if one.Bad {
		c.bad.add(one)
		return
	}
	m := c.methods[one.Method]
	if m == nil {
		m = &method{}
		c.methods[one.Method] = m
	}
	m.add(one)
	c.answered++
	if one.Err != nil {
		c.errors++
		// A call that was faster than its cancellation was not cancelled.
		if one.Cancelled {
			c.cancelled++
		}
	}
}

func (m *method) add(one history.Call) {
	if m.codes == nil {
		m.codes = make(map[codes.Code]int)
	}
	m.number++
	m.codes[one.Code()]++
	if one.Err == nil && !one.Bad {
		m.took = append(m.took, one.Took())
		m.fresh = append(m.fresh, one.Took())
	}
}

// interval is about the calls of a method since it was last asked; nil if there
// were none.
func (c *calls) interval(name history.Method) *interval {
	m := c.methods[name]
	if m == nil || len(m.fresh) == 0 {
		return nil
	}
	slices.Sort(m.fresh)
	i := &interval{Calls: len(m.fresh), P50Millis: millis(quantile.Of(m.fresh, 0.5)), P99Millis: millis(quantile.Of(m.fresh, 0.99))}
	m.fresh = m.fresh[:0]
	return i
}

// seconds and millis round to a microsecond: more digits would only be noise in
// a file.
func seconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }
func millis(d time.Duration) float64  { return float64(d.Microseconds()) / 1e3 }
