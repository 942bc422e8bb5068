package array

import (
	"math"
	"testing"
)

func TestSizesAreRoundedUp(t *testing.T) {
	for size, want := range map[Size]int64{
		-1: 0, 0: 0, 1: 1, GiB: 1, GiB + 1: 2, 1 << 60: 1 << 30, math.MaxInt64: 1 << 33,
	} {
		if got := size.In(GiB); got != want {
			t.Errorf("%d bytes are %d GiB, want %d", size, got, want)
		}
	}
	for _, test := range []struct{ size, unit, want Size }{
		{0, GiB, 0}, {1, GiB, GiB}, {GiB, GiB, GiB}, {GiB + 1, GiB, 2 * GiB}, {1, MiB, MiB}, {5*MiB - 1, MiB, 5 * MiB}, {7, 1, 7},
		{math.MaxInt64, 1, math.MaxInt64}, {math.MaxInt64, GiB, math.MaxInt64}, {math.MaxInt64 - GiB + 1, GiB, math.MaxInt64 - GiB + 1},
	} {
		if got := test.size.Up(test.unit); got != test.want {
			t.Errorf("%d bytes in units of %d are %d, want %d", test.size, test.unit, got, test.want)
		}
	}
}

func TestSizesAreReadable(t *testing.T) {
	for size, want := range map[Size]string{0: "0 bytes", 17: "17 bytes", 3 * MiB: "3 MiB", 1025 * MiB: "1025 MiB", 2 * GiB: "2 GiB"} {
		if got := size.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
