package kubelet

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestVerdictOfErrors(t *testing.T) {
	answer := func(c codes.Code) error { return status.Error(c, "said the driver") }
	for _, row := range []struct {
		err  error
		want verdict
	}{
		{nil, succeeded},
		{answer(codes.Internal), failed},
		{answer(codes.InvalidArgument), failed},
		{answer(codes.Unknown), failed},
		{fmt.Errorf("wrapped: %w", answer(codes.Aborted)), unknown},
		{answer(codes.Aborted), unknown},
		{answer(codes.Canceled), unknown},
		{answer(codes.DeadlineExceeded), unknown},
		{answer(codes.Unavailable), unknown},
		{answer(codes.ResourceExhausted), unknown},
		{errors.New("no status at all"), failed},
		{fmt.Errorf("%w: %w", errHalfDone, answer(codes.Internal)), unknown},
	} {
		if got := verdictOf(row.err); got != row.want {
			t.Errorf("verdict of %v: %d, want %d", row.err, got, row.want)
		}
	}
}

func TestWhatIsLearnedOfAMount(t *testing.T) {
	again := mount{state: uncertain, reconstructed: true}
	for _, row := range []struct {
		name   string
		before mount
		what   verdict
		want   mount
	}{
		{"it worked", mount{}, succeeded, mount{state: mounted}},
		{"it worked after a restart", again, succeeded, mount{state: mounted}},
		{"nobody knows", mount{}, unknown, mount{state: uncertain}},
		{"nobody knows, but it is mounted", mount{state: mounted}, unknown, mount{state: mounted}},
		{"it failed", mount{}, failed, mount{}},
		{"it failed after nobody knew", mount{state: uncertain}, failed, mount{}},
		{"it failed after a restart", again, failed, again},
		{"it failed, but is mounted", mount{state: mounted}, failed, mount{state: mounted}},
		{"it was not sent", mount{state: uncertain}, untouched, mount{state: uncertain}},
	} {
		if got := row.before.learn(row.what); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}
