package array

import (
	"math"
	"testing"
)

func TestSizesAreRoundedUp(t *testing.T) {
	for bytes, want := range map[int64]GiB{
		0: 0, 1: 1, 1 << 30: 1, 1<<30 + 1: 2, 1 << 60: 1 << 30, math.MaxInt64: 1 << 33,
	} {
		if got := InGiB(bytes); got != want {
			t.Errorf("%d bytes are %d GiB, want %d", bytes, got, want)
		}
	}
}
