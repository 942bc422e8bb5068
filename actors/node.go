package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/katbox/katbox/internal/lifespan"
	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/retained"
	"github.com/katbox/katbox/internal/scratch"
	"github.com/katbox/katbox/internal/store"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// Config is what a Node works with. All fields are required, but Limits,
// Lifespan, Rebooted, Threads, RetainedGrew, Node, WorkdirOnNode and
// Tracer may be zero.
type Config struct {
	// Mounter mounts and unmounts.
	Mounter Mounter
	// Bindings returns where data directories are mounted at present in the daemon's
	// mount namespace, those below PodsDir in terms of that. It is called at the start, for doubtful
	// cases and for deletions. The node gives up when the error is
	// [scratch.ErrCovered].
	Bindings func() ([]mount.Binding, error)
	// Scratch holds the data directories.
	Scratch *scratch.Dir
	// Space measures the file system that Scratch is on.
	Space func() (volume.Space, error)
	// SpaceAfterErase does that after something was erased, so that it shows. before
	// is what was measured last.
	SpaceAfterErase func(before volume.Space) (volume.Space, error)
	// Records makes records durable.
	Records Records
	// Known calls each with every record of an earlier run, in any order. It is
	// called once, at the start.
	Known func(each func(volume.Record)) error
	// Rebooted: the kernel was booted since the records were written last.
	Rebooted bool
	// PodsDir is the kubelet's directory of pods; targets are below it.
	PodsDir string
	// Lifespan is how long a volume is kept after its unpublish.
	Lifespan time.Duration
	// Limits say how much of the file system should stay free.
	Limits lifespan.Limits
	// PressureInterval is how often the file system is measured.
	PressureInterval time.Duration
	// RetainedGrew is called whenever the queue of retained volumes takes more memory; see
	// [retained.Queue].
	RetainedGrew func(bytes int)
	// EraseParallel is how many deleted volumes are erased at the same time.
	EraseParallel int
	// OrphanGrace is how long a pod directory must be absent before its volume
	// is retained without an unpublish.
	OrphanGrace time.Duration
	// Threads is how many threads the process may have; 0 when nothing bounds them.
	Threads int
	// Node is the node's name in the cluster, WorkdirOnNode where a person on the node finds
	// the directory that Scratch is in. Both are for the log.
	Node, WorkdirOnNode string
	Log                 logr.Logger
	// Metrics are told of everything that happens.
	Metrics *metrics.Metrics
	// Tracer makes spans; nil when nothing is to be traced.
	Tracer trace.Tracer
}

// check names the first field that is missing.
func (c Config) check() error {
	switch {
	case c.Mounter == nil:
		return errors.New("actors: Config.Mounter is missing")
	case c.Bindings == nil:
		return errors.New("actors: Config.Bindings is missing")
	case c.Scratch == nil:
		return errors.New("actors: Config.Scratch is missing")
	case c.Space == nil:
		return errors.New("actors: Config.Space is missing")
	case c.SpaceAfterErase == nil:
		return errors.New("actors: Config.SpaceAfterErase is missing")
	case c.Records == nil:
		return errors.New("actors: Config.Records is missing")
	case c.Known == nil:
		return errors.New("actors: Config.Known is missing")
	case c.PodsDir == "":
		return errors.New("actors: Config.PodsDir is missing")
	case c.PressureInterval <= 0:
		return errors.New("actors: Config.PressureInterval has to be longer than 0")
	case c.EraseParallel <= 0:
		return errors.New("actors: Config.EraseParallel has to be more than 0")
	case c.OrphanGrace <= 0:
		return errors.New("actors: Config.OrphanGrace has to be longer than 0")
	case c.Metrics == nil:
		return errors.New("actors: Config.Metrics is missing")
	}
	return nil
}

// Node is the front of the actors: it starts them, asks them, stops them.
type Node struct {
	system     *actor.ActorSystem
	supervisor *actor.PID
	workers    *workers
	calls      *calls
	afterlife  *afterlife
	traced     bool
	cancel     context.CancelFunc
	watches    sync.WaitGroup
	failed     chan error
	stopped    chan struct{}
	// unseen is why the kubelet's pods cannot be seen; nil when they can.
	unseen atomic.Pointer[error]
}

// Start recovers what an earlier run left and starts the actors. When it
// returns, the node is ready for calls; the search for orphans and the
// emptying of the trash go on behind it.
func Start(cfg Config) (*Node, error) { return start(cfg) }

// start is Start with more middleware for the volume actors, which tests use
// to make them fail.
func start(cfg Config, more ...actor.ReceiverMiddleware) (*Node, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	bindings, err := cfg.Bindings()
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	found, err := recoverNode(cfg, bindings)
	if err != nil {
		return nil, err
	}

	n := &Node{traced: cfg.Tracer != nil, afterlife: newAfterlife(cfg), workers: newWorkers(workersWithin(cfg.Threads)), calls: newCalls(),
		failed: make(chan error, 1), stopped: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return librarySlog(cfg.Log) }))
	env := &environment{
		ctx: ctx, root: n.system.Root, mounter: cfg.Mounter, mounts: newMountTable(cfg.Bindings, n.fail), scratch: cfg.Scratch,
		workers: n.workers, turns: newTurns(cfg.EraseParallel, n.calls, cfg.Metrics), podsDir: cfg.PodsDir,
		lifespan: cfg.Lifespan, orphanGrace: cfg.OrphanGrace, log: cfg.Log, afterlife: n.afterlife, metrics: cfg.Metrics, tracer: cfg.Tracer,
	}
	n.spawn(cfg, env, found, more)
	n.startWatches(ctx, env)
	return n, nil
}

// recoverNode makes of the records and mounts what the actors begin with.
func recoverNode(cfg Config, bindings []mount.Binding) (found recovered, err error) {
	found.asleep = &retained.Queue{Grew: cfg.RetainedGrew}
	r := newRecovery(bindings, cfg.PodsDir, func(record volume.Record) {
		found.asleep.Push(record)
		cfg.Metrics.VolumeChanged(nil, &record)
	})
	r.rebooted = cfg.Rebooted
	err = cfg.Known(r.add)
	if err == nil {
		r.addUnknown()
		err = saveAll(cfg.Records, r.changed)
	}
	if err != nil {
		return recovered{}, err
	}
	found.awake = r.awake
	for i := range found.awake {
		cfg.Metrics.VolumeChanged(nil, &found.awake[i])
	}
	tellElsewhere(cfg, found.awake)
	cfg.Metrics.Reserved(cfg.Records.ReserveError() == nil)
	cfg.Log.Info("recovered", "mounts", len(bindings), "awake", len(found.awake), "retained", found.asleep.Len(),
		"corrected", len(r.changed))
	return found, nil
}

func saveAll(records Records, changed []volume.Record) error {
	if len(changed) == 0 {
		return nil
	}
	changes := make([]store.Change, len(changed))
	for i := range changed {
		changes[i] = store.Change{ID: changed[i].ID, Record: &changed[i]}
	}
	if err := records.Commit(changes); err != nil {
		return fmt.Errorf("record what was found mounted: %w", err)
	}
	return nil
}

// spawn starts the supervisor and has it start the rest.
func (n *Node) spawn(cfg Config, env *environment, found recovered, more []actor.ReceiverMiddleware) {
	s := &supervisor{environment: env, table: map[volume.ID]*entry{}, byActor: map[string]volume.ID{}, fatal: n.fail, sees: n.sees, more: more}
	n.supervisor = n.system.Root.Spawn(supervisorProps(s, n, cfg, found))

	// A request to an actor that has ended is answered, not left to time out.
	n.system.EventStream.Subscribe(func(event any) {
		if letter, ok := event.(*actor.DeadLetterEvent); ok {
			if request, ok := letter.Message.(messages.Failer); ok {
				request.Fail(fmt.Errorf("%w: the daemon is stopping", volume.ErrUnavailable))
			}
		}
	})
}

// fail reports that the node cannot go on. The first report counts.
func (n *Node) fail(err error) {
	select {
	case n.failed <- err:
	default:
	}
}

func (n *Node) startWatches(ctx context.Context, env *environment) {
	w := &watch{environment: env, supervisor: n.supervisor, fatal: n.fail, sees: n.sees}
	n.watches.Go(func() { env.mounts.serve(ctx) })
	n.watches.Go(func() { every(ctx, podsInterval(env.orphanGrace), w.directories) })
	n.watches.Go(func() { every(ctx, orphanInterval, w.orphans) })
}

// Failed delivers the reason when the node cannot go on and the daemon has to
// be started again. All it knows is on disk.
func (n *Node) Failed() <-chan error { return n.failed }

// Publish mounts a volume.
func (n *Node) Publish(ctx context.Context, p volume.Publication) error {
	defer n.calls.begin()()
	m := &messages.PublishVolume{Routing: n.routing(ctx, p.ID), Publication: p, Reply: messages.NewReply[struct{}]()}
	_, err := ask(ctx, n.system.Root, n.supervisor, m, m.Reply)
	return err
}

// Unpublish unmounts a volume; it is retained when target was its last one.
func (n *Node) Unpublish(ctx context.Context, id volume.ID, target string) error {
	defer n.calls.begin()()
	m := &messages.UnpublishVolume{Routing: n.routing(ctx, id), Target: target, Reply: messages.NewReply[struct{}]()}
	_, err := ask(ctx, n.system.Root, n.supervisor, m, m.Reply)
	return err
}

// Stats measures a volume that is published at path.
func (n *Node) Stats(ctx context.Context, id volume.ID, path string) (volume.Stats, error) {
	m := &messages.VolumeStats{Routing: n.routing(ctx, id), Path: path, Reply: messages.NewReply[volume.Stats]()}
	return ask(ctx, n.system.Root, n.supervisor, m, m.Reply)
}

// Ready returns nil when the actors answer.
func (n *Node) Ready(ctx context.Context) error {
	m := &messages.Status{Reply: messages.NewReply[struct{}]()}
	_, err := ask(ctx, n.system.Root, n.supervisor, m, m.Reply)
	return err
}

func (n *Node) sees(err error) { n.unseen.Store(&err) }

// SeesPods returns nil when the kubelet's pods can be seen. As long as they cannot,
// no volume is retained without an unpublish, and most likely no pod sees its mounts.
func (n *Node) SeesPods() error {
	if err := n.unseen.Load(); err != nil {
		return *err
	}
	return nil
}

// Healthy returns nil when the actors answer and records can be made durable. A
// disk without room answers too.
func (n *Node) Healthy(ctx context.Context) error {
	if err := n.Ready(ctx); err != nil {
		return fmt.Errorf("the actors do not answer: %w", err)
	}
	m := &messages.ProbeStore{Reply: messages.NewReply[struct{}]()}
	if _, err := ask(ctx, n.system.Root, n.supervisor, m, m.Reply); err != nil {
		return fmt.Errorf("records cannot be made durable: %w", err)
	}
	return nil
}

func (n *Node) routing(ctx context.Context, id volume.ID) messages.Routing {
	deadline, _ := ctx.Deadline()
	r := messages.Routing{ID: id, Deadline: deadline}
	if n.traced {
		if call := trace.SpanContextFromContext(ctx); call.IsValid() {
			r.From = &messages.Origin{Parent: call, Asked: time.Now()}
		}
	}
	return r
}

// Stop lets running operations end, then ends the actors. It is to be called
// once, after the last call was answered. Its error says what did not end
// before ctx did.
func (n *Node) Stop(ctx context.Context) error {
	n.cancel()
	err := n.workers.Close(ctx)
	n.system.Root.Stop(n.supervisor)
	select {
	case <-n.stopped:
	case <-ctx.Done():
		err = errors.Join(err, fmt.Errorf("actors still running: %w", ctx.Err()))
	}
	n.system.Shutdown()
	n.afterlife.flush()
	ended := make(chan struct{})
	go func() {
		n.watches.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		err = errors.Join(err, fmt.Errorf("searches of the working directory still running: %w", ctx.Err()))
	}
	return err
}
