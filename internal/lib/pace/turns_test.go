package pace

import (
	"context"
	"errors"
	"testing"
)

func TestTurnKeepsNothing(t *testing.T) {
	turns := NewTurns(1, NewCalls(), func() func() { return func() {} }, func(int) {})
	ctx, cancel := context.WithCancel(t.Context())
	first, second := turns.Take(), turns.Take()
	if err := first.Next(ctx, 0); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := second.Next(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a turn that nobody gave up: %v, want the context's end", err)
	}
	second.End()
	first.End()
	if err := second.Next(t.Context(), 5); err != nil || turns.Removed() != 5 {
		t.Errorf("%v, %d removed, want a turn and 5", err, turns.Removed())
	}
	second.End()
}

// TestNoDawdlingOnAFullDisk: at factor 0 an erasure neither waits for calls nor lowers its priority.
func TestNoDawdlingOnAFullDisk(t *testing.T) {
	for factor, want := range map[float64]int{1: 3, 0.01: 3, 0: 0} {
		lowered := 0
		turns := NewTurns(1, NewCalls(), func() func() { lowered++; return func() {} }, func(int) {})
		turns.SetPressure(factor)
		turn := turns.Take()
		for range 3 {
			if err := turn.Next(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		turn.End()
		if lowered != want {
			t.Errorf("factor %v: the priority was lowered %d times, want %d", factor, lowered, want)
		}
	}
}
