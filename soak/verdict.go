package main

import (
	"fmt"

	"google.golang.org/grpc/codes"
)

// answer is all that decides whether an answer is acceptable.
type answer struct {
	method method
	code   codes.Code
	// cancelled: the client gave this call up itself.
	cancelled bool
	// outage: the daemon was down by our doing at some time of the call.
	outage bool
	// contended: another call for this volume ran, or may still run because
	// its client never saw its end.
	contended bool
}

// objection says why an answer is not acceptable, or nothing if it is.
func objection(a answer) string {
	switch a.code {
	case codes.OK:
		return ""
	case codes.Canceled:
		if a.cancelled || a.outage {
			return ""
		}
		return "the client did not cancel the call"
	case codes.DeadlineExceeded:
		if a.cancelled || a.outage {
			return ""
		}
		return fmt.Sprintf("the call took longer than the kubelet waits (%s), or the daemon gave up by itself", callDeadline)
	case codes.Aborted:
		switch {
		case !a.method.ofVolume():
			return "the method concerns no volume, so nothing can be in its way"
		case a.contended || a.outage:
			return ""
		}
		return "no other call for this volume was running"
	case codes.Unavailable:
		if a.outage {
			return ""
		}
		return "the daemon was neither starting nor stopping"
	default:
		return "no situation of the run excuses this code"
	}
}
