package actors

import (
	"runtime"
	"sync/atomic"

	"github.com/katbox/katbox/internal/kernel"
)

// threadKept: a thread could not be given back, and others will not be either.
var threadKept atomic.Bool

// lowPriority gives the calling goroutine the lowest I/O priority that no disk, however
// busy, leaves unserved, until the function that it returns is called.
func lowPriority() (end func()) {
	// The priority is the thread's, and the goroutine keeps that for as long.
	runtime.LockOSThread()
	restore := kernel.LowestIOPriority()
	return func() { giveBack(restore()) }
}

// giveBack gives the thread back, unless it keeps its priority. It ends with the
// goroutine then, and workers have no goroutine carry out a second operation.
func giveBack(failed error) {
	if failed != nil {
		threadKept.Store(true)
		return
	}
	runtime.UnlockOSThread()
}
