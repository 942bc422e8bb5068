package main

import (
	"os"
	"runtime/debug"

	"github.com/katbox/katbox/internal/retained"
)

// scaleGC sets the garbage collector's target as the queue of retained volumes grows. GOGC in the
// environment overrides it; a GOMEMLIMIT holds beside it.
func scaleGC(queue int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(retained.GCPercent(queue))
	}
}
