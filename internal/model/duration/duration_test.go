package duration

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
)

const day = 24 * time.Hour

func TestParse(t *testing.T) {
	for text, want := range map[string]time.Duration{
		// What Go reads.
		"0": 0, "0s": 0, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute, ".5h": 30 * time.Minute, "500ms": 500 * time.Millisecond,
		"100us": 100 * time.Microsecond, "100µs": 100 * time.Microsecond, "7ns": 7, "12h0m0s": 12 * time.Hour, "+1h": time.Hour,
		"-1s":   -time.Second,
		"30s1m": 90 * time.Second, "2562047h47m16.854775807s": math.MaxInt64, "-2562047h47m16.854775808s": math.MinInt64,
		// What Prometheus reads.
		"1d": day, "3d": 3 * day, "2w": 14 * day, "1y": 365 * day, "1d12h": 36 * time.Hour,
		"1w2d3h4m5s6ms": 9*day + 3*time.Hour + 4*time.Minute + 5*time.Second + 6*time.Millisecond,
		"0d":            0, "-1d": -day, "292y": 292 * 365 * day, "106751d": 106751 * day,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "12", "d", "1", "-", "--1d", "-", "1 d", "1d ", " 1d", "1.5d", "1d1.5h", "1h1d", "1d1d", "1D", "1month", "1mo", "d1",
		"NaN", "Inf", "nan", "infd", "0x1d", "1e3d", "1_000d", "٣d", "１d", "1d\n", "1d\x00", "1\xffd",
		"293y", "106752d", "9223372036854775808d", "99999999999999999999d", "18446744073709551616ns", "292y1000000000d", "2562048h",
	} {
		if got, err := Parse(text); err == nil || got != 0 || strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("%q: %v, %v, want 0 and an error of one line", text, got, err)
		}
	}
}

func TestFormat(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "12h": 12 * time.Hour, "3d": 72 * time.Hour, "1d12h": 36 * time.Hour, "2w": 14 * day, "10d": 10 * day,
		"1y": 365 * day, "5s": 5 * time.Second,
		"10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "1h0m0.5s": time.Hour + 500*time.Millisecond, "1.5s": 1500 * time.Millisecond,
		"100ms": 100 * time.Millisecond, "250µs": 250 * time.Microsecond, "1ns": 1, "-1d": -day, "-1.5s": -1500 * time.Millisecond,
		"2562047h47m16.854775807s": math.MaxInt64, "-2562047h47m16.854775808s": math.MinInt64,
	} {
		if got := Format(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// TestForm: what has the form is read, and is not negative; of what has days, weeks or years, nothing is too long.
func TestForm(t *testing.T) {
	form, long := regexp.MustCompile(Form), regexp.MustCompile(Long)
	for text, want := range map[string]bool{
		"1h": true, "1.5h": true, ".5h": true, "1.h": true, "100µs": true, "1h1h": true, "2562047h47m16.854775807s": true,
		"3d": true, "2w": true, "1y": true, "1d12h": true, "1y2w3d4h5m6s7ms": true, "0d": true,
		"99y999w9999d99999h999999m99999999s9999999999ms": true,
		"": false, "0": false, "-1h": false, "+1h": false, "-1d": false, "1.5d": false, "1d1.5h": false, "1h1d": false, "1d1d": false,
		"100y": false, "1000w": false, "10000d": false, " 1h": false, "1d\n": false, "d": false, "1d1us": false, "١d": false,
	} {
		d, err := Parse(text)
		if got := form.MatchString(text); got != want || got && (err != nil || d < 0) {
			t.Errorf("%q: has the form: %t, want %t, and is read as %v, %v", text, got, want, d, err)
		}
		if _, err := time.ParseDuration(text); want && long.MatchString(text) == (err == nil) {
			t.Errorf("%q: has long units: %t, and Go says %v", text, long.MatchString(text), err)
		}
	}
}

// FuzzParse looks for a duration that is read back as another one, or that Go or a person
// reads differently.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"12h", "1d12h", "2w", "1y", "-3d", "1.5h", "100us", "292y", "0"} {
		f.Add(text)
	}
	form, long := regexp.MustCompile(Form), regexp.MustCompile(Long)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse(text)
		if form.MatchString(text) && (d < 0 || err != nil && long.MatchString(text)) {
			t.Errorf("%q has the form, and is read as %v, %v", text, d, err)
		}
		if err != nil {
			if d != 0 {
				t.Errorf("%q: %v with the error %v", text, d, err)
			}
			return
		}
		if again, err := Parse(Format(d)); err != nil || again != d {
			t.Errorf("%q: %v is written as %q, and read as %v, %v", text, d, Format(d), again, err)
		}
		if plain, err := time.ParseDuration(text); err == nil && plain != d {
			t.Errorf("%q: %v, and Go reads %v", text, d, plain)
		}
	})
}
