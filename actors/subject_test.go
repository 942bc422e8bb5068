package actors

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// doWork asks a subject to work until it may end, or to panic.
type doWork struct {
	messages.Routing
	what   string
	until  chan struct{}
	panics bool
	messages.Reply[string]
}

// worker is a subject, and what it was asked.
type worker struct {
	Simple
	progress Progress
	worked   []string
	// left is how often an operation leaves something to do.
	left int
	// queued: other work waits for its turn. aside: it is none of a kubelet's.
	queued, aside bool
}

func (w *worker) Plan(m messages.Request) *Operation {
	work, ok := m.(*doWork)
	if !ok {
		return nil
	}
	w.worked = append(w.worked, work.what)
	op := Order("work", work, func(o *doWork) bool { return o.what == work.what }, func(ctx context.Context) (string, error) {
		w.progress.Waits("the end of " + work.what)
		if work.panics {
			panic("for the test")
		}
		select {
		case <-work.until:
		case <-ctx.Done():
		}
		return work.what, ctx.Err()
	})
	op.Then = func(e *Outcome) {
		if w.left > 0 {
			e.Unfinished = errors.New("half done")
		}
	}
	op.Progress = &w.progress
	op.Behind = func(messages.Request) bool { return w.queued }
	return op
}

func (w *worker) Rest() *Operation {
	if w.left == 0 {
		return nil
	}
	w.left--
	w.worked = append(w.worked, "rest")
	return &Operation{Name: "rest", Run: func(context.Context) Outcome { return Outcome{} }}
}

// subjectKind is a kind with one subject.
type subjectKind struct {
	counters
	subjects Subjects
	worker   *worker
}

func (k *subjectKind) Start(s *Supervisor)       { k.supervisor = s }
func (k *subjectKind) Wake(messages.Request) any { return nil }
func (k *subjectKind) Sleep(volume.ID, any)      {}
func (k *subjectKind) Props(id volume.ID, _ any) *actor.Props {
	return k.subjects.Props(id, "thing "+string(id), k.worker)
}

// inSubjects runs a test with a subject, of which late tells since when callers do not wait for it any more.
func inSubjects(t *testing.T, test func(t *testing.T, w *worker, ask func(*doWork) error, late *time.Time)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(logr.Discard(), 0)
		var late time.Time
		w := &worker{}
		k := &subjectKind{worker: w, subjects: Subjects{
			System: s, Context: t.Context(), Longest: time.Hour, Patience: 10 * time.Second,
			Aside: func(messages.Request) bool { return w.aside },
			Ended: func(string, time.Duration, error) {}, Late: func(_ volume.ID, since time.Time) { late = since },
		}}
		if err := s.Start(k, noMetrics{}, nil); err != nil {
			t.Fatal(err)
		}
		test(t, w, func(m *doWork) error {
			m.ID = "a"
			got, err := Ask(context.Background(), s.Root, s.Supervisor(), m)
			if err == nil && got != m.what {
				t.Errorf("asked for %s, got %s", m.what, got)
			}
			return err
		}, &late)
		synctest.Wait()
		if k.supervisor.IsAwake("a") {
			t.Error("awake with nothing to do")
		}
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second) // the library's dead letter throttle
	})
}

// TestSubjectLosesPatience: callers are answered after a while and learn what is waited for; the operation goes on,
// and the same call gets its outcome.
func TestSubjectLosesPatience(t *testing.T) {
	inSubjects(t, func(t *testing.T, w *worker, ask func(*doWork) error, late *time.Time) {
		end := make(chan struct{})
		began := time.Now()
		err := ask(&doWork{what: "x", until: end})
		took := time.Since(began)
		if !errors.Is(err, volume.ErrUnavailable) || took != 10*time.Second || !strings.Contains(err.Error(), "the end of x since") {
			t.Errorf("after %v: %v", took, err)
		}
		synctest.Wait()
		if !late.Equal(began) {
			t.Errorf("late since %v, want %v", late, began)
		}
		again := make(chan error, 1)
		go func() { again <- ask(&doWork{what: "x"}) }()
		if err := ask(&doWork{what: "y"}); !errors.Is(err, volume.ErrBusy) {
			t.Errorf("other work: %v", err)
		}
		synctest.Wait()
		close(end)
		err = <-again
		synctest.Wait()
		if err != nil || len(w.worked) != 1 || !late.IsZero() {
			t.Errorf("%v, worked %v, late since %v", err, w.worked, late)
		}
	})
}

// TestSubjectTakesTurns: requests that may wait are carried out one after the other; those that have waited too
// long are not carried out.
func TestSubjectTakesTurns(t *testing.T) {
	inSubjects(t, func(t *testing.T, w *worker, ask func(*doWork) error, _ *time.Time) {
		w.queued = true
		end := make(chan struct{})
		ended := make(chan error, 4)
		for _, what := range []string{"x", "y", "y"} {
			go func() { ended <- ask(&doWork{what: what, until: end}) }()
			synctest.Wait()
		}
		close(end)
		for range 3 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if got := strings.Join(w.worked, " "); got != "x y" {
			t.Errorf("worked %s", got)
		}
		hangs := make(chan struct{})
		go func() { ended <- ask(&doWork{what: "z", until: hangs}) }()
		synctest.Wait()
		time.Sleep(time.Second)
		if err := ask(&doWork{what: "late"}); !errors.Is(err, volume.ErrUnavailable) {
			t.Errorf("behind what hangs: %v", err)
		}
		if err := <-ended; !errors.Is(err, volume.ErrUnavailable) {
			t.Errorf("what hangs: %v", err)
		}
		close(hangs)
		synctest.Wait()
		if got := strings.Join(w.worked, " "); got != "x y z" {
			t.Errorf("worked %s", got)
		}
	})
}

// TestSubjectBoundsWhatWaits: a caller that asks over and over is answered that the subject is busy, and costs no memory. What
// waits is carried out, and requests whose callers have left make room for others.
func TestSubjectBoundsWhatWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		// what the flood asks for; a different thing waits for its turn, the same one shares the outcome.
		what string
		// aside: the requests are of no kubelet.
		aside bool
		// wait is how many wait for their answer.
		wait int
	}{
		"turns":  {what: "y", wait: MaxCallers},
		"asides": {what: "y", aside: true, wait: MaxAsides},
		"same":   {what: "x", wait: MaxCallers - 1},
	} {
		t.Run(name, func(t *testing.T) {
			inSubjects(t, func(t *testing.T, w *worker, ask func(*doWork) error, _ *time.Time) {
				w.queued, w.aside = true, tt.aside
				const flood = 2 * MaxCallers
				end, ended := make(chan struct{}), make(chan error, flood+2)
				go func() { ended <- ask(&doWork{what: "x", until: end}) }()
				synctest.Wait()
				for range flood {
					go func() {
						ended <- ask(&doWork{what: tt.what, until: end, Routing: messages.Routing{Deadline: time.Now().Add(time.Second)}})
					}()
				}
				synctest.Wait()
				if refused := len(ended); refused != flood-tt.wait {
					t.Errorf("%d of %d are refused, want all but %d", refused, flood, tt.wait)
				}
				for len(ended) > 0 {
					if err := <-ended; !errors.Is(err, volume.ErrBusy) {
						t.Error(err)
					}
				}
				time.Sleep(2 * time.Second)
				go func() { ended <- ask(&doWork{what: tt.what, until: end}) }()
				synctest.Wait()
				for range tt.wait {
					if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}
				close(end)
				for range 2 {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestSubjectGoesOnLater: what an operation has left is done, and the actor stays until then.
func TestSubjectGoesOnLater(t *testing.T) {
	inSubjects(t, func(t *testing.T, w *worker, ask func(*doWork) error, _ *time.Time) {
		end := make(chan struct{})
		close(end)
		w.left = 1
		if err := ask(&doWork{what: "x", until: end}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := strings.Join(w.worked, " "); got != "x rest" {
			t.Errorf("worked %s", got)
		}
	})
}

// TestSubjectPanics: a mistake in an operation answers its callers.
func TestSubjectPanics(t *testing.T) {
	inSubjects(t, func(t *testing.T, _ *worker, ask func(*doWork) error, _ *time.Time) {
		if err := ask(&doWork{what: "x", panics: true}); !errors.Is(err, volume.ErrUncertain) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
	})
}

// restless is a kind that wakes its subject whenever its actor has ended, as for something that is left to do.
type restless struct {
	subjectKind
	wakes int
}

func (k *restless) Sleep(id volume.ID, _ any) { k.wake(id) }

func (k *restless) wake(id volume.ID) {
	if k.wakes++; k.wakes < 10 {
		k.supervisor.Wake(id, nil, &messages.Resume{})
	}
}

func (k *restless) Receive(c actor.Context) {
	if m, ok := c.Message().(*howMany); ok {
		k.wake("a")
		m.Send(k.wakes, nil)
	}
}

// TestSubjectWaitsForTheEnd: what cannot begin because the process stops does not try that without a pause.
func TestSubjectWaitsForTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(logr.Discard(), 0)
		ctx, cancel := context.WithCancel(t.Context())
		k := &restless{subjectKind: subjectKind{worker: &worker{left: 10}, subjects: Subjects{System: s, Context: ctx}}}
		if err := s.Start(k, noMetrics{}, nil); err != nil {
			t.Fatal(err)
		}
		cancel()
		s.Workers.closed.Store(true)
		if _, err := Ask(t.Context(), s.Root, s.Supervisor(), &howMany{}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if k.wakes != 1 {
			t.Errorf("woken %d times, want once", k.wakes)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second) // the library's dead letter throttle
	})
}
