package terminal

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Unknown stands for what is not known.
const Unknown = "-"

var binaryUnits = []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// Size returns a number of bytes with two or more digits of it: 980 MiB, 1.2 GiB.
func Size(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes)/1024, 0
	// 1023.5 KiB would be rounded to 1024 KiB.
	for value >= 1023.5 && unit < len(binaryUnits)-1 {
		value, unit = value/1024, unit+1
	}
	if value < 9.95 {
		return fmt.Sprintf("%.1f %s", value, binaryUnits[unit])
	}
	return fmt.Sprintf("%.0f %s", value, binaryUnits[unit])
}

// ParseSize reads a number of bytes, with the units of Kubernetes' quantities: 100, 64Ki, 5M. A
// trailing B is allowed.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "KMGTkiB")
	n, err := strconv.ParseInt(digits, 10, 64)
	factor, known := map[string]int64{
		"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
	}[strings.TrimSuffix(text[len(digits):], "B")]
	if err != nil || !known || n < 0 || n > math.MaxInt64/factor {
		return 0, errors.New("is not a number of bytes; write it as 100, 64Ki or 5M")
	}
	return n * factor, nil
}

// Ago returns how long ago t is: "3h20m ago". A zero t is Unknown.
func Ago(now, t time.Time) string {
	if t.IsZero() {
		return Unknown
	}
	return Span(now.Sub(t)) + " ago"
}

// In returns how far away t is: "in 8h59m", or "now" if t is over. A zero t is Unknown.
func In(now, t time.Time) string {
	switch {
	case t.IsZero():
		return Unknown
	case !t.After(now):
		return "now"
	}
	return "in " + Span(t.Sub(now))
}

const day = 24 * time.Hour

// Span returns a duration in its largest unit and the next one, rounded down: 2d23h, 11h59m. Minutes and
// seconds stand alone, and so do many days: 119m, 119s, 12d.
func Span(d time.Duration) string {
	two := func(unit time.Duration, name string, part time.Duration, partName string) string {
		text := fmt.Sprintf("%d%s", d/unit, name)
		if rest := d % unit / part; rest > 0 {
			text += fmt.Sprintf("%d%s", rest, partName)
		}
		return text
	}
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", max(0, d/time.Second))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 2*day:
		return two(time.Hour, "h", time.Minute, "m")
	case d < 10*day:
		return two(day, "d", time.Hour, "h")
	}
	return fmt.Sprintf("%dd", d/day)
}
