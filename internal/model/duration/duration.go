// Package duration reads and writes durations as people write them, including days, weeks
// and years: 90m, 1.5h, 3d, 2w, 1d12h. A day has 24 hours and a year 365 days. It also says when
// something was, whatever the wall clock showed then.
package duration

import (
	"errors"
	"time"

	"github.com/prometheus/common/model"
)

const (
	// goForm is what time.ParseDuration reads, without a sign.
	goForm = `([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*`
	// longForm is what else Parse reads: from years, weeks or days on, each unit once. So few digits are less than 292 years.
	longForm = `(([0-9]{1,2}y)([0-9]{1,3}w)?([0-9]{1,4}d)?|([0-9]{1,3}w)([0-9]{1,4}d)?|[0-9]{1,4}d)` +
		`([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?([0-9]{1,10}ms)?`
	// Form is a regular expression for durations that are checked before Parse reads them, as by the API server. Of those
	// with it, Parse refuses what has only units of Go and is longer than 292 years. CEL's duration() reads these, and no
	// others.
	Form = `^(` + goForm + `|` + longForm + `)$`
	// Long is a regular expression for those with the Form that have a unit which Go does not know.
	Long = `[dwy]`
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
