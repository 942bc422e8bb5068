// Package quantile tells what a share of many times does not exceed.
package quantile

import (
	"math"
	"time"
)

// Of returns the value at or below which the share q of the sorted times lies
// (nearest rank); 0 if there are none.
func Of(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
