// Package duration reads and writes durations as people write them, including days, weeks
// and years: 90m, 1.5h, 3d, 2w, 1d12h. A day has 24 hours and a year 365 days.
package duration

import (
	"errors"
	"time"

	"github.com/prometheus/common/model"
)

// Parse reads the formats of Go's time.ParseDuration, such as 1.5h or 100us, and of
// Prometheus, such as 3d or 1d12h. Its error does not repeat the text.
func Parse(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	if d, err := model.ParseDurationAllowNegative(text); err == nil {
		return time.Duration(d), nil
	}
	return 0, errors.New("not a duration of at most 292y; write it as 90m, 1.5h, 3d or 1d12h, with the units ms, s, m, h, d, w and y")
}

// Format returns the shortest form that Parse reads as the same duration: 12h rather than
// 12h0m0s, 3d rather than 72h. A fraction of a second is written as in time.Duration: 1.5s,
// 250µs.
func Format(d time.Duration) string {
	if d%time.Second == 0 {
		return model.Duration(d).String()
	}
	return d.String()
}
