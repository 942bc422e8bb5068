package check

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
)

func TestObjection(t *testing.T) {
	const (
		publish      = history.Publish
		unpublish    = history.Unpublish
		capabilities = history.GetCapabilities
	)
	for _, test := range []struct {
		name   string
		answer answer
		want   history.Promise
	}{
		{"success", answer{method: publish, code: codes.OK}, ""},
		{"success though cancelled", answer{method: publish, code: codes.OK, cancelled: true}, ""},
		{"slow success", answer{method: publish, code: codes.OK, took: 2 * time.Second}, history.Independent},
		{"slow success, cancelled", answer{method: publish, code: codes.OK, took: 2 * time.Second, cancelled: true}, ""},
		{"slow success, contended", answer{method: publish, code: codes.OK, took: 2 * time.Second, contended: true}, history.Independent},
		{"slow capabilities", answer{method: capabilities, code: codes.OK, took: 2 * time.Second}, history.Independent},
		{"slow success on a slow disk", answer{method: publish, code: codes.OK, took: 2 * time.Second, slow: true}, ""},
		{"slow success on a full disk", answer{method: publish, code: codes.OK, took: 2 * time.Second, full: true}, ""},
		{"slow refusal, held", answer{method: unpublish, code: codes.Aborted, took: 2 * time.Second, held: true}, ""},

		{"busy", answer{method: unpublish, code: codes.Aborted, contended: true}, ""},
		{"busy with recovery", answer{method: publish, code: codes.Aborted, outage: true}, ""},
		{"busy because held", answer{method: unpublish, code: codes.Aborted, held: true}, ""},
		{"busy with the disk", answer{method: unpublish, code: codes.Aborted, slow: true}, ""},
		{"busy with nothing", answer{method: unpublish, code: codes.Aborted}, history.AnyOrder},
		{"busy with nothing, cancelled", answer{method: unpublish, code: codes.Aborted, cancelled: true}, history.AnyOrder},
		{"busy with what is removed", answer{method: unpublish, code: codes.Aborted, removed: true}, history.AnyOrder},
		{"capabilities busy", answer{method: capabilities, code: codes.Aborted, contended: true}, history.AnyOrder},

		{"cancelled by us", answer{method: publish, code: codes.Canceled, cancelled: true}, ""},
		{"cancelled by the end of the driver", answer{method: publish, code: codes.Canceled, outage: true}, ""},
		{"cancelled by nobody", answer{method: publish, code: codes.Canceled}, history.AnyOrder},
		{"cancelled by another call", answer{method: publish, code: codes.Canceled, contended: true}, history.AnyOrder},
		{"expired by us", answer{method: publish, code: codes.DeadlineExceeded, cancelled: true}, ""},
		{"expired by itself", answer{method: publish, code: codes.DeadlineExceeded}, history.Independent},
		{"expired by itself, held", answer{method: unpublish, code: codes.DeadlineExceeded, held: true}, history.Independent},

		{"driver away", answer{method: capabilities, code: codes.Unavailable, outage: true}, ""},
		{"driver there", answer{method: publish, code: codes.Unavailable}, history.Lives},
		{"driver there, contended", answer{method: publish, code: codes.Unavailable, contended: true}, history.Lives},

		{"no room", answer{method: publish, code: codes.ResourceExhausted, full: true}, ""},
		{"no room to stage", answer{method: history.Stage, code: codes.ResourceExhausted, full: true}, ""},
		{"no room but there is", answer{method: publish, code: codes.ResourceExhausted}, history.AnyOrder},
		{"no room to unpublish", answer{method: unpublish, code: codes.ResourceExhausted, full: true}, history.FullDisk},
		{"no room to unpublish but there is", answer{method: unpublish, code: codes.ResourceExhausted}, history.AnyOrder},
		{"publish is uncertain on a full disk", answer{method: publish, code: codes.Aborted, full: true}, ""},
		{"unpublish is uncertain on a full disk", answer{method: unpublish, code: codes.Aborted, full: true}, history.FullDisk},
		{"unpublish is contended on a full disk", answer{method: unpublish, code: codes.Aborted, full: true, contended: true}, ""},
		{"unpublish fails on a full disk", answer{method: unpublish, code: codes.Internal, full: true}, history.FullDisk},
		{"publish fails on a full disk", answer{method: publish, code: codes.Internal, full: true}, history.AnyOrder},

		{"publish of what is removed", answer{method: publish, code: codes.Internal, removed: true}, ""},
		{"unpublish of what is removed", answer{method: unpublish, code: codes.Internal, removed: true}, history.AnyOrder},
	} {
		test.answer.patience = time.Second
		if got, why := objection(test.answer); got != test.want || (why == "") != (got == "") {
			t.Errorf("%s: breaks %q (%s), want %q", test.name, got, why, test.want)
		}
	}
	// everything is every situation that could excuse an unpublish.
	everything := answer{method: unpublish, cancelled: true, outage: true, contended: true, slow: true, held: true, removed: true}
	for _, code := range []codes.Code{
		codes.Unknown, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.ResourceExhausted, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented,
		codes.Internal, codes.DataLoss, codes.Unauthenticated,
	} {
		a := everything
		a.code = code
		if got, _ := objection(a); got != history.AnyOrder {
			t.Errorf("%s to an unpublish breaks %q, want that nothing excuses it", code, got)
		}
	}
}
