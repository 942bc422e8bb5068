package verbs

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// UntilSignal returns a context that ends with SIGTERM, SIGINT and SIGHUP: the user, the system or the end of the terminal
// ends the program. A signal that is ignored from the start stays so, as nohup and a shell's & want it.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ends := []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}
	ends = slices.DeleteFunc(ends, signal.Ignored)
	if len(ends) == 0 {
		return context.WithCancel(ctx) // For Notify, none are all.
	}
	return signal.NotifyContext(ctx, ends...)
}
