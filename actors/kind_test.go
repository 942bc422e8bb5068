package actors

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// counters is a kind of its own: a volume counts how often it is asked, and its count is what is
// kept of it while it has no actor.
type counters struct {
	env        *System
	supervisor *Supervisor
	asleep     map[volume.ID]int
	// awakenings counts the actors that were started.
	awakenings int
	// single: the single actor has started. panics counts those of volumes.
	single atomic.Bool
	panics int
	// hold, when set, is what a volume waits for before it panics.
	hold chan struct{}
	// broken: volumes panic at whatever they are told.
	broken atomic.Bool
	// stops counts the ends of the supervisor.
	stops int
}

// count asks a volume for its count. It panics at it where that is asked for.
type count struct {
	messages.Routing
	panics bool
	messages.Reply[int]
}

// stuckOnce makes a volume say that it is stuck, and answers once it is resumed.
type stuckOnce struct {
	messages.Routing
	messages.Reply[int]
}

// howMany is for the kind itself.
type howMany struct{ messages.Reply[int] }

func (k *counters) Start(s *Supervisor) {
	k.supervisor = s
	s.Spawn("single", actor.PropsFromFunc(func(c actor.Context) {
		if _, ok := c.Message().(*actor.Started); ok {
			k.single.Store(true)
		}
	}))
}

func (k *counters) Asked(messages.Request) bool { return false }

func (k *counters) Wake(m messages.Request) any {
	id := m.Route().ID
	kept := k.asleep[id]
	delete(k.asleep, id)
	return kept
}

func (k *counters) Props(id volume.ID, state any) *actor.Props {
	k.awakenings++
	kept := state.(int)
	var waiting *stuckOnce
	received := new(uint64)
	return actor.PropsFromProducer(func() actor.Actor {
		return actor.ReceiveFunc(func(c actor.Context) {
			if _, ok := c.Message().(messages.ToVolume); ok {
				*received++
				if k.broken.Load() {
					panic("broken for the test")
				}
			}
			switch m := c.Message().(type) {
			case *count:
				if m.panics {
					if k.hold != nil {
						<-k.hold
					}
					panic("broken for the test")
				}
				kept++
				m.Send(kept, nil)
			case *stuckOnce:
				waiting = m
				c.Send(c.Parent(), &messages.Stuck{ID: id, Actor: c.Self().Id, Attempt: 1})
				return
			case *messages.Resume:
				if waiting != nil {
					waiting.Send(kept, nil)
					waiting = nil
				}
			default:
				return
			}
			c.Send(c.Parent(), &messages.AtRest{ID: id, Actor: c.Self().Id, State: kept, Received: *received})
		})
	}, actor.WithReceiverMiddleware(Recovering(logr.Discard())), AtOnce)
}

func (k *counters) Idle(_ volume.ID, state any, _ bool) {
	if state == nil {
		k.panics++
	}
}

func (k *counters) Sleep(id volume.ID, state any) { k.asleep[id] = state.(int) }

func (k *counters) Receive(c actor.Context) {
	if m, ok := c.Message().(*howMany); ok {
		m.Send(len(k.asleep), nil)
	}
}

func (k *counters) Stop() { k.stops++ }

// noRecords takes every change.
type noRecords struct{ err error }

func (r noRecords) Commit([]volume.Change) error { return r.err }
func (noRecords) ReserveError() error            { return nil }
func (noRecords) Waiting() time.Time             { return time.Time{} }
func (noRecords) Journalled(volume.ID) bool      { return false }
func (noRecords) Journal(volume.Change, time.Duration) (bool, error, error) {
	return false, errors.New("no journal"), nil
}

type noMetrics struct{}

func (noMetrics) VolumeParked()                       {}
func (noMetrics) VolumeUnparked()                     {}
func (noMetrics) ActorRestarted()                     {}
func (noMetrics) Committed(time.Duration, int, error) {}
func (noMetrics) Reserved(bool)                       {}
func (noMetrics) Waits(bool)                          {}

// inKind runs a test with a system of counters.
func inKind(t *testing.T, test func(t *testing.T, k *counters, ask func(id volume.ID, panics bool) (int, error))) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(logr.Discard(), 0)
		k := &counters{env: s, asleep: map[volume.ID]int{}}
		if err := s.Start(k, noMetrics{}, &Recording{Records: noRecords{}, Metrics: noMetrics{}}); err != nil {
			t.Fatal(err)
		}
		test(t, k, func(id volume.ID, panics bool) (int, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got, err := Ask(ctx, s.Root, s.Supervisor(), &count{Routing: messages.Routing{ID: id}, panics: panics})
			synctest.Wait()
			return got, err
		})
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if k.stops != 1 {
			t.Errorf("stopped %d times, want once", k.stops)
		}
		time.Sleep(2 * time.Second) // the library's dead letter throttle
	})
}

// TestKindAsksAndSleeps: a volume's actor starts when it is asked, ends when it has nothing to do,
// and its state is kept between two actors.
func TestKindAsksAndSleeps(t *testing.T) {
	inKind(t, func(t *testing.T, k *counters, ask func(volume.ID, bool) (int, error)) {
		for i := range 3 {
			if got, err := ask("a", false); got != i+1 || err != nil {
				t.Errorf("count %d, %v; want %d", got, err, i+1)
			}
		}
		if k.awakenings != 3 || k.asleep["a"] != 3 || k.supervisor.IsAwake("a") || len(k.supervisor.Active()) != 0 || !k.single.Load() {
			t.Errorf("%d actors, %v asleep; want three, one after the other", k.awakenings, k.asleep)
		}
		if got, err := Ask(t.Context(), k.env.Root, k.env.Supervisor(), &howMany{}); got != 1 || err != nil {
			t.Errorf("the kind answers %d, %v; want 1 asleep", got, err)
		}
	})
}

// TestKindRestarts: a panic answers its caller, and the volume goes on.
func TestKindRestarts(t *testing.T) {
	inKind(t, func(t *testing.T, k *counters, ask func(volume.ID, bool) (int, error)) {
		if _, err := ask("a", true); !errors.Is(err, volume.ErrUncertain) {
			t.Errorf("a panic: %v", err)
		}
		if got, err := ask("b", false); got != 1 || err != nil {
			t.Errorf("another volume: %d, %v", got, err)
		}
		time.Sleep(RestartBackoff.Longest)
		synctest.Wait()
		if got, err := ask("a", false); got != 1 || err != nil || k.panics != 1 {
			t.Errorf("after the restart: %d, %v, %d panics", got, err, k.panics)
		}
	})
}

// TestKindParks: an actor that fails again and again is restarted rarely, and its volume says so.
func TestKindParks(t *testing.T) {
	inKind(t, func(t *testing.T, k *counters, ask func(volume.ID, bool) (int, error)) {
		k.broken.Store(true)
		if _, err := ask("a", true); !errors.Is(err, volume.ErrUncertain) {
			t.Errorf("a panic: %v", err)
		}
		time.Sleep(MaxRestarts * RestartBackoff.Longest)
		synctest.Wait()
		if _, err := ask("a", true); !errors.Is(err, volume.ErrUnavailable) || k.panics != MaxRestarts+1 {
			t.Errorf("after %d panics: %v; want it parked after %d", k.panics, err, MaxRestarts+1)
		}
		k.broken.Store(false)
		time.Sleep(ParkedBackoff.First)
		synctest.Wait()
		if got, err := ask("a", false); got != 1 || err != nil {
			t.Errorf("after it was parked: %d, %v", got, err)
		}
	})
}

// TestKindResumes: a volume that says that it is stuck is resumed.
func TestKindResumes(t *testing.T) {
	inKind(t, func(t *testing.T, k *counters, ask func(volume.ID, bool) (int, error)) {
		if _, err := ask("a", false); err != nil {
			t.Fatal(err)
		}
		if got, err := Ask(t.Context(), k.env.Root, k.env.Supervisor(), &stuckOnce{Routing: messages.Routing{ID: "a"}}); got != 1 || err != nil {
			t.Errorf("resumed with %d, %v; want 1", got, err)
		}
		synctest.Wait()
		if k.supervisor.IsAwake("a") {
			t.Error("still awake")
		}
	})
}

// TestKindIsNotToldOfPanicsAtTheEnd: a kind that has been stopped might wake another volume, for
// whose end the supervisor would wait for ever.
func TestKindIsNotToldOfPanicsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(logr.Discard(), 0)
		k := &counters{env: s, asleep: map[volume.ID]int{}, hold: make(chan struct{})}
		if err := s.Start(k, noMetrics{}, &Recording{Records: noRecords{}, Metrics: noMetrics{}}); err != nil {
			t.Fatal(err)
		}
		s.Root.Send(s.Supervisor(), &stuckOnce{Routing: messages.Routing{ID: "a"}}) // it stays awake
		synctest.Wait()
		question := &count{panics: true}
		question.Prepare()
		go s.Root.Send(s.Single("volume1"), question)
		synctest.Wait()
		stopped := make(chan error)
		go func() { stopped <- s.Stop(t.Context()) }()
		synctest.Wait()
		close(k.hold)
		if err := <-stopped; err != nil || k.stops != 1 || k.panics != 0 {
			t.Errorf("stopped %d times, with %d panics reported, %v; want once and none", k.stops, k.panics, err)
		}
		time.Sleep(2 * time.Second) // the library's dead letter throttle
	})
}

// TestKindWithoutRecordsAnswers: its records are elsewhere, and its health is that of the actors.
func TestKindWithoutRecordsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(logr.Discard(), 0)
		if err := s.Start(&counters{env: s, asleep: map[volume.ID]int{}}, noMetrics{}, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Healthy(t.Context()); err != nil {
			t.Error(err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second) // the library's dead letter throttle
	})
}

// TestKindStops: who asks a system that has ended gets an answer.
func TestKindStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(logr.Discard(), 0)
		if err := s.Start(&counters{env: s, asleep: map[volume.ID]int{}}, noMetrics{}, &Recording{Records: noRecords{},
			Metrics: noMetrics{}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Healthy(t.Context()); err != nil {
			t.Error(err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := Ask(t.Context(), s.Root, s.Supervisor(), &count{}); !errors.Is(err, volume.ErrUnavailable) {
			t.Errorf("after the end: %v", err)
		}
		time.Sleep(2 * time.Second) // the library's dead letter throttle
	})
}
