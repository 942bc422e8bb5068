package duration

import "testing"

func TestKeptOf(t *testing.T) {
	for _, row := range []struct{ kept, promised, want string }{
		{"3h", "12h", "3h of 12h"}, {"12h", "12h", "12h of 12h"}, {"1d16h", "12h", "1d16h, promised 12h"}, {"1w", "8d", "1w of 8d"},
		{"", "12h", "- of 12h"}, {"1h", "", "1h of -"}, {"", "", "- of -"}, {"odd", "12h", "odd of 12h"}, {"1h", "0s", "1h, promised 0s"},
	} {
		if got := KeptOf(row.kept, row.promised); got != row.want {
			t.Errorf("%s of %s: %q, want %q", row.kept, row.promised, got, row.want)
		}
	}
}
