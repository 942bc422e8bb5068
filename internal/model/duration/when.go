package duration

import "time"

// ByNow returns a time as people and other programs are to read it: by the wall clock as it is now. A time that
// was read before the wall clock was set shows what that showed, until it is compared with a later one. One without a
// monotonic reading stays, and so does the zero time.
func ByNow(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	now := time.Now()
	return now.Add(t.Sub(now)).Round(0)
}

// When writes a time for people, by the wall clock as it is now.
func When(t time.Time) string { return ByNow(t).UTC().Format(time.RFC3339) }
