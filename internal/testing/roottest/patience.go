package roottest

import (
	"os"
	"time"
)

// Hangs is after how long something hangs that comes by itself, of a program or of the kernel: a minute. The variable
// KATBOX_TEST_HANGS sets it for slow machines.
var Hangs = func() time.Duration {
	if hangs, err := time.ParseDuration(os.Getenv("KATBOX_TEST_HANGS")); err == nil {
		return hangs
	}
	return time.Minute
}()
