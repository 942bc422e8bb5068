package asked

import "time"

// InYears returns a time that JSON can hold. A pod may give its files any time on some file systems,
// and JSON has only the years from 0 to 9999.
func InYears(t time.Time) time.Time {
	t = t.UTC()
	switch year := t.Year(); {
	case year < 0:
		return time.Date(0, time.January, 1, 0, 0, 0, 0, time.UTC)
	case year > 9999:
		return time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
	}
	return t
}
