package policy

import "time"

// RoundUp rounds a lifespan up to two digits of minutes: 1m to 99m, 100m, 110m to 990m, 1000m and so on.
// So volumes have few different lifespans, however many their pods ask for, and the next one to go is
// found fast. The longest are cut to what a Duration can hold.
func RoundUp(d time.Duration) time.Duration {
	if d <= 0 {
		return d
	}
	minutes := int64((d-1)/time.Minute) + 1
	unit := int64(1)
	for minutes/unit > 99 {
		unit *= 10
	}
	minutes = (minutes + unit - 1) / unit * unit
	if most := int64(1<<63-1) / int64(time.Minute); minutes > most {
		return 1<<63 - 1
	}
	return time.Duration(minutes) * time.Minute
}

// clamp rounds a lifespan up, to at most the given one.
func clamp(d, most time.Duration) time.Duration {
	if d >= most {
		return most
	}
	return min(RoundUp(d), most)
}
