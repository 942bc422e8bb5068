package quantile

import (
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, test := range []struct {
		sorted []time.Duration
		q      float64
		want   time.Duration
	}{
		{nil, 0.5, 0},
		{hundred[:1], 0, 1}, {hundred[:1], 0.99, 1}, {hundred[:1], 1, 1},
		{hundred[:2], 0.5, 1}, {hundred[:2], 0.51, 2}, {hundred[:3], 0.5, 2},
		{hundred, 0.5, 50}, {hundred, 0.9, 90}, {hundred, 0.99, 99}, {hundred, 0.991, 100}, {hundred, 1, 100},
	} {
		if got := Of(test.sorted, test.q); got != test.want {
			t.Errorf("quantile %g of %d: %d, want %d", test.q, len(test.sorted), got, test.want)
		}
	}
}
