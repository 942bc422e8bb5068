//go:build crashpoints

package kernel

import (
	"runtime"
	"strings"

	"github.com/katbox/katbox/internal/lib/crashpoint"
)

func aroundPoint(call string, change func() error) error {
	return crashpoint.Around(caller()+"/"+call, func() error { return IgnoreEINTR(change) })
}

// caller names the function that called this package: scratch.Dir.create. A closure has the name of
// the function that it stands in.
func caller() string {
	const own = "github.com/katbox/katbox/internal/lib/kernel."
	var callers [16]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if more && strings.HasPrefix(frame.Function, own) {
			continue
		}
		name := frame.Function[strings.LastIndex(frame.Function, "/")+1:]
		name, _, _ = strings.Cut(name, ".func")
		return strings.NewReplacer("(*", "", ")", "").Replace(name)
	}
}
