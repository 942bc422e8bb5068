package main

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
)

const (
	// garbage is how much garbage may wait for a collection in a gateway with many connections. connectionBytes is about what a
	// connection of a node takes; see BenchmarkIdleConnections of internal/link/hub.
	garbage         = 64 << 20
	connectionBytes = 44 << 10
	// scaleInterval is the time between two looks at how many there are.
	scaleInterval = 5 * time.Second
)

// gcPercent returns the garbage collector's target ([debug.SetGCPercent]) for a gateway with that number of connections. By default
// the heap may double between two collections. Connections hardly change, so the room to double would be wasted.
func gcPercent(connections int) int {
	return 100 * garbage / (garbage + connections*connectionBytes)
}

// scaleGC sets the garbage collector's target as nodes come and go, until ctx ends. GOGC in the environment overrides it; a
// GOMEMLIMIT holds beside it.
func scaleGC(ctx context.Context, connections func() int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	for last := 0; ctx.Err() == nil; {
		if percent := gcPercent(connections()); percent != last {
			last = percent
			debug.SetGCPercent(percent)
		}
		_ = retry.Pause(ctx, scaleInterval)
	}
}
