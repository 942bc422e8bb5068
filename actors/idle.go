package actors

import (
	"runtime"

	"github.com/katbox/katbox/internal/ioprio"
)

// idle has the calling goroutine use the disk only when nobody else wants it,
// until the function that it returns is called.
func idle() (end func()) {
	// The priority is the thread's, and the goroutine keeps that for as long.
	runtime.LockOSThread()
	restore := ioprio.Idle()
	return func() {
		// A thread that keeps its priority is not given back, and ends with the
		// goroutine.
		if err := restore(); err == nil {
			runtime.UnlockOSThread()
		}
	}
}
