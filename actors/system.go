package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

const (
	supervisorName = "supervisor"
	recorderName   = "recorder"
)

// ErrStopping: no operation starts any more.
var ErrStopping = fmt.Errorf("%w: the daemon is stopping", volume.ErrUnavailable)

// Metrics count what happens to the actors.
type Metrics interface {
	VolumeParked()
	VolumeUnparked()
	ActorRestarted()
}

// System is the actors of a process. [NewSystem] makes one without actors, which knows the
// addresses that they will have; [System.Start] starts them.
type System struct {
	// Root sends messages where there is no actor's context.
	Root *actor.RootContext
	// Workers carry operations out.
	Workers *Workers
	// Recorder records changes, in a kind that has records.
	Recorder Recorder

	log     logr.Logger
	system  *actor.ActorSystem
	failed  chan error
	stopped chan struct{}
}

// NewSystem prepares a system of a process that may have a number of threads; 0 sets no limit.
func NewSystem(log logr.Logger, threads int) *System {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return librarySlog(log) }))
	s := &System{
		Root: system.Root, Workers: NewWorkers(workersWithin(threads)), log: log, system: system, failed: make(chan error, 1),
		stopped: make(chan struct{}),
	}
	s.Recorder = Recorder{root: s.Root, actor: s.Single(recorderName), log: log, waits: &atomic.Bool{}}
	return s
}

// Supervisor is the address of the supervisor.
func (s *System) Supervisor() *actor.PID { return s.system.NewLocalPID(supervisorName) }

// Single is the address of a single actor that the supervisor spawns.
func (s *System) Single(name string) *actor.PID {
	return s.system.NewLocalPID(supervisorName + "/" + name)
}

// Start starts the supervisor, and with it all others. A kind that keeps no records on this machine
// needs no recording.
func (s *System) Start(kind Kind, m Metrics, recording *Recording) error {
	if recording != nil {
		recording.lagging = &atomic.Int64{}
	}
	s.Recorder.Recording = recording
	supervisor := &Supervisor{
		kind: kind, log: s.log, metrics: m, fatal: s.Fail, root: s.Root, awake: map[volume.ID]*entry{}, byActor: map[string]volume.ID{},
	}
	if _, err := s.Root.SpawnNamed(supervisor.props(recording, s.stopped), supervisorName); err != nil {
		return fmt.Errorf("spawn the supervisor: %w", err)
	}
	// A request to an actor that has ended is answered, not left to time out.
	s.system.EventStream.Subscribe(func(event any) {
		if letter, ok := event.(*actor.DeadLetterEvent); ok {
			if request, ok := letter.Message.(messages.Failer); ok {
				request.Fail(ErrStopping)
			}
		}
	})
	return nil
}

// Change asks the supervisor for what is answered with an error alone, and waits for the answer.
func (s *System) Change(ctx context.Context, m messages.Question[struct{}]) error {
	_, err := Ask(ctx, s.Root, s.Supervisor(), m)
	return err
}

// Fail reports that the process cannot go on. The first report counts.
func (s *System) Fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// Failed delivers the reason when the process cannot go on and has to be started again. All that it
// knows is on disk.
func (s *System) Failed() <-chan error { return s.failed }

// Healthy returns nil when the actors answer and records can be made durable. A disk without room
// answers too.
func (s *System) Healthy(ctx context.Context) error {
	if err := s.Ready(ctx); err != nil {
		return fmt.Errorf("the actors do not answer: %w", err)
	}
	if _, err := Ask(ctx, s.Root, s.Supervisor(), &messages.ProbeStore{}); err != nil {
		return fmt.Errorf("records cannot be made durable: %w", err)
	}
	return nil
}

// Ready returns nil when the actors answer.
func (s *System) Ready(ctx context.Context) error {
	_, err := Ask(ctx, s.Root, s.Supervisor(), &messages.Status{})
	return err
}

// Stop lets running operations end, then ends the actors. It is to be called once, after the last
// call was answered. Its error says what did not end before ctx did.
func (s *System) Stop(ctx context.Context) error {
	err := s.Workers.Close(ctx)
	s.Root.Stop(s.Supervisor())
	select {
	case <-s.stopped:
	case <-ctx.Done():
		err = errors.Join(err, fmt.Errorf("actors still running: %w", ctx.Err()))
	}
	s.system.Shutdown()
	return err
}

// lastOperations is how long operations have to end by themselves when the process stops. Most take less.
const lastOperations = 5 * time.Second

// StopAndCancel is [System.Stop] for operations that give up when cancel is called. Most may end before that: one that
// is cut off leaves its outcome unknown.
func (s *System) StopAndCancel(ctx context.Context, cancel context.CancelFunc) error {
	wait := lastOperations
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/2)
	}
	cutOff := time.AfterFunc(wait, cancel)
	defer cutOff.Stop()
	defer cancel()
	return s.Stop(ctx)
}
