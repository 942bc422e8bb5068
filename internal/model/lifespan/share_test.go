package lifespan

import "testing"

func TestShareFactor(t *testing.T) {
	for _, tc := range []struct{ free, alert, emergency, want float64 }{
		{1, 0.25, 0.125, 1},
		{0.25, 0.25, 0.125, 1},
		{0.1875, 0.25, 0.125, 0.5},
		{0.125, 0.25, 0.125, 0},
		{0, 0.25, 0.125, 0},
		{0.3, 0.3, 0.3, 1},
		{0.2, 0.3, 0.3, 0},
		{0, 0, 0, 1},
	} {
		if got := ShareFactor(tc.free, tc.alert, tc.emergency); got != tc.want {
			t.Errorf("%v free, between %v and %v: %v, want %v", tc.free, tc.alert, tc.emergency, got, tc.want)
		}
	}
}
