package main

import (
	"testing"

	"google.golang.org/grpc/codes"
)

func TestObjection(t *testing.T) {
	// all is every situation that could excuse anything.
	all := answer{cancelled: true, outage: true, contended: true}
	for _, test := range []struct {
		name   string
		answer answer
		ok     bool
	}{
		{"success", answer{method: publish, code: codes.OK}, true},
		{"success though cancelled", answer{method: publish, code: codes.OK, cancelled: true}, true},

		{"busy", answer{method: unpublish, code: codes.Aborted, contended: true}, true},
		{"busy with recovery", answer{method: publish, code: codes.Aborted, outage: true}, true},
		{"busy with nothing", answer{method: unpublish, code: codes.Aborted}, false},
		{"busy with nothing, cancelled", answer{method: unpublish, code: codes.Aborted, cancelled: true}, false},
		{"capabilities busy", answer{method: getCapabilities, code: codes.Aborted, contended: true}, false},

		{"cancelled by us", answer{method: publish, code: codes.Canceled, cancelled: true}, true},
		{"cancelled by the end of the daemon", answer{method: publish, code: codes.Canceled, outage: true}, true},
		{"cancelled by nobody", answer{method: publish, code: codes.Canceled}, false},
		{"cancelled by another call", answer{method: publish, code: codes.Canceled, contended: true}, false},
		{"expired by us", answer{method: publish, code: codes.DeadlineExceeded, cancelled: true}, true},
		{"expired by itself", answer{method: publish, code: codes.DeadlineExceeded}, false},

		{"daemon away", answer{method: getCapabilities, code: codes.Unavailable, outage: true}, true},
		{"daemon there", answer{method: publish, code: codes.Unavailable}, false},
		{"daemon there, contended", answer{method: publish, code: codes.Unavailable, contended: true}, false},
		{"daemon there, cancelled", answer{method: publish, code: codes.Unavailable, cancelled: true}, false},
	} {
		why := objection(test.answer)
		if ok := why == ""; ok != test.ok {
			t.Errorf("%s: acceptable is %t, want %t (%s)", test.name, ok, test.ok, why)
		}
	}
	for _, code := range []codes.Code{
		codes.Unknown, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.ResourceExhausted, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented,
		codes.Internal, codes.DataLoss, codes.Unauthenticated,
	} {
		excused := all
		excused.method, excused.code = publish, code
		if objection(excused) == "" {
			t.Errorf("%s is acceptable, want that nothing excuses it", code)
		}
	}
}
