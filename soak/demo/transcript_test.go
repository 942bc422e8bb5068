package main

import (
	"strings"
	"testing"
)

// TestNormal: times, sizes and widths do not count, and names do.
func TestNormal(t *testing.T) {
	const shown = "web-0  11.0 MiB  9s   in 1m30s  2026-11-22 03:04\nimport-41 of 12 (15s)  \n"
	for _, same := range []string{
		"web-0  11.3 MiB  12s  in 5s     2026-11-23 13:14\nimport-41 of 12 (8s)\n",
		"web-0  936 B  12s  in 5s  2026-11-23 13:14\nimport-41 of 12 (2m)\n",
	} {
		if got, want := normal(same), normal(shown); got != want {
			t.Errorf("%q is %q, want %q", same, got, want)
		}
	}
	for _, other := range []string{
		strings.Replace(shown, "web-0", "web-1", 1), strings.Replace(shown, "of 12", "of 13", 1),
		strings.Replace(shown, "\nimport", " import", 1), strings.Replace(shown, "in 1m30s", "", 1),
	} {
		if normal(other) == normal(shown) {
			t.Errorf("%q counts as the same as %q", other, shown)
		}
	}
}
