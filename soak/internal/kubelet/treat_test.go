package kubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/workload"
)

// scripted answers calls one after the other, each after it took so long.
type scripted struct {
	mu      sync.Mutex
	start   time.Time
	takes   time.Duration
	answers []codes.Code
	sent    []string // when, and what came of it
}

func (s *scripted) send(ctx context.Context, giveUp time.Duration) error {
	s.mu.Lock()
	at := time.Since(s.start)
	code := codes.OK
	if len(s.answers) > 0 {
		code, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()
	takes := s.takes
	if giveUp > 0 && giveUp < takes {
		takes, code = giveUp, codes.Canceled
	}
	if !sleep(ctx, nil, takes) {
		code = codes.Canceled
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, fmt.Sprintf("%s %s", at, code))
	return status.Error(code, "")
}

func TestTreat(t *testing.T) {
	const ok, busy, bad = codes.OK, codes.Aborted, codes.Internal
	together := workload.Call{Repeat: workload.TwiceTogether}
	inTurn := workload.Call{Repeat: workload.TwiceInTurn}
	for _, row := range []struct {
		name    string
		plan    workload.Call
		answers []codes.Code
		stop    time.Duration
		want    []string
		verdict verdict
	}{
		{"once", workload.Call{}, []codes.Code{ok}, 0, []string{"0s OK"}, succeeded},
		{"an error is not repeated here", workload.Call{}, []codes.Code{busy}, 0, []string{"0s Aborted"}, unknown},
		{"given up", workload.Call{CancelAfter: 200 * time.Millisecond}, nil, 0, []string{"0s Canceled"}, unknown},
		{"answered before it was given up", workload.Call{CancelAfter: time.Minute}, nil, 0, []string{"0s OK", "1s OK"}, succeeded},
		{"together", together, nil, 0, []string{"0s OK", "0s OK"}, succeeded},
		{"together, and each until it succeeds", together, []codes.Code{ok, busy, busy, ok}, 0,
			[]string{"0s OK", "0s Aborted", "1.5s Aborted", "3.5s OK"}, succeeded},
		{"together, and the pod ends", together, []codes.Code{ok, bad, bad, ok}, 2 * time.Second,
			[]string{"0s OK", "0s Internal", "1.5s Internal"}, unknown},
		{"together, and both fail for good", together, []codes.Code{bad, bad}, time.Second + 1,
			[]string{"0s Internal", "0s Internal"}, failed},
		{"in turn", inTurn, nil, 0, []string{"0s OK", "1s OK"}, succeeded},
		{"in turn only after a success", inTurn, []codes.Code{bad}, 0, []string{"0s Internal"}, failed},
		{"in turn until it succeeds", inTurn, []codes.Code{ok, bad, ok}, 0,
			[]string{"0s OK", "1s Internal", "2.5s OK"}, succeeded},
		{"in turn, and the pod ends", inTurn, []codes.Code{ok, bad, ok}, 2*time.Second + 1,
			[]string{"0s OK", "1s Internal"}, unknown},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scripted{start: time.Now(), takes: time.Second, answers: row.answers}
				stop := make(chan struct{})
				if row.stop > 0 {
					time.AfterFunc(row.stop, func() { close(stop) })
				}
				var tr treatment
				err := tr.treat(t.Context(), row.plan, Timing{}.orReal(), stop, s.send)
				// Of two at the same moment either may be the first.
				slices.Sort(s.sent)
				slices.Sort(row.want)
				if !slices.Equal(s.sent, row.want) {
					t.Errorf("sent %q, want %q", s.sent, row.want)
				}
				if got := verdictOf(err); got != row.verdict {
					t.Errorf("verdict %d of %v, want %d", got, err, row.verdict)
				}
			})
		})
	}
}

func TestTreatOnlyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted{start: time.Now(), takes: time.Second}
		plan := workload.Call{CancelAfter: time.Millisecond, Repeat: workload.TwiceTogether}
		var tr treatment
		var verdicts []verdict
		for range 3 {
			verdicts = append(verdicts, verdictOf(tr.treat(t.Context(), plan, Timing{}.orReal(), nil, s.send)))
		}
		if want := []verdict{unknown, succeeded, succeeded}; !slices.Equal(verdicts, want) {
			t.Errorf("verdicts %v, want %v", verdicts, want)
		}
		if want := 1 + 2 + 1; len(s.sent) != want {
			t.Errorf("%d calls, want %d: %q", len(s.sent), want, s.sent)
		}
	})
}

func TestPersistEndsWithTheKubelet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		failure := errors.New("no")
		if err := persist(ctx, Timing{}.orReal(), nil, func() error { return failure }); !errors.Is(err, failure) {
			t.Errorf("error %v, want %v", err, failure)
		}
	})
}

func TestReorder(t *testing.T) {
	for _, row := range []struct {
		overtaken  time.Duration
		call, late time.Duration
	}{
		{300 * time.Millisecond, 0, 300 * time.Millisecond},
		{-200 * time.Millisecond, 200 * time.Millisecond, 0},
		{0, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			at := func(d *time.Duration) func() {
				*d = -1
				return func() {
					*d = time.Since(start)
					time.Sleep(time.Second)
				}
			}
			var call, late time.Duration
			reorder(t.Context(), row.overtaken, at(&call), at(&late))
			if call != row.call || late != row.late {
				t.Errorf("overtaken by %s: calls at %s and %s, want %s and %s", row.overtaken, call, late, row.call, row.late)
			}
			if took, want := time.Since(start), time.Second+max(row.call, row.late); took != want {
				t.Errorf("both were answered after %s, want %s", took, want)
			}
		})
	}
}
