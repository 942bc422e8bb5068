package lifespan

import (
	"math"
	"time"
)

// RoundUp returns d rounded up to minutes of which only the first two digits are not 0: so there are
// few different lifespans, however many are asked for. That is at most a tenth more from ten minutes
// on.
func RoundUp(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	minutes, unit := (d-1)/time.Minute+1, time.Duration(1)
	for minutes > 99 {
		minutes, unit = (minutes-1)/10+1, 10*unit
	}
	if minutes > math.MaxInt64/(unit*time.Minute) {
		return math.MaxInt64
	}
	return minutes * unit * time.Minute
}
