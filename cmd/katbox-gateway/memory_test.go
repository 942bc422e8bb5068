package main

import (
	"context"
	"runtime/debug"
	"testing"
)

// TestScaleGC: a gateway with many connections has no room to double its heap, and one that was told another target keeps that.
func TestScaleGC(t *testing.T) {
	usual := debug.SetGCPercent(100)
	defer debug.SetGCPercent(usual)
	scaled := func(env string, connections int) int {
		t.Setenv("GOGC", env)
		ctx, cancel := context.WithCancel(t.Context())
		scaleGC(ctx, func() int { cancel(); return connections })
		cancel()
		return debug.SetGCPercent(100)
	}
	for _, tc := range []struct {
		env               string
		connections, want int
	}{{"", 0, 100}, {"", 5000, 22}, {"", 10000, 12}, {"50", 10000, 100}} {
		if got := scaled(tc.env, tc.connections); got != tc.want {
			t.Errorf("GOGC=%q, %d connections: %d, want %d", tc.env, tc.connections, got, tc.want)
		}
	}
}
