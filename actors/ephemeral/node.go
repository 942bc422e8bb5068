// Package ephemeral is the first kind of volumes: a pod's inline volumes, which are retained for a
// lifespan after the pod is gone. [Node] is its front. Behind it are
//
//   - volumes, which owns the index of all volumes in the supervisor's turn. Its retention lets the retained ones
//     go, and next decides which goes next; its leases are what readers hold;
//   - one actor of the kit for each volume that is mounted or changing. What it does is subject, which plans
//     operations, one at a time; task is one that runs (publish, unpublish, delete);
//   - the disk actor, which erases what lies in the trash and measures the file system;
//   - the sizes actor, which measures how much space the retained volumes take;
//   - watch, which looks for pods that the kubelet forgot and for data directories without a record.
package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/pace"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/lastwords"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/node/scratch"
	"github.com/katbox/katbox/messages"
)

// Config is what a Node works with. The fields from Rebooted on may be zero.
type Config struct {
	// Mounter mounts and unmounts.
	Mounter Mounter
	// Bindings reads where data directories are mounted in the daemon's mount namespace. It is
	// called at the start, in doubtful cases and for deletions. The node fails when the error is
	// [scratch.ErrCovered].
	Bindings func() ([]mount.Binding, error)
	// Scratch holds the data directories.
	Scratch *scratch.Dir
	// Space measures the file system that Scratch is on, SpaceAfterErase does so after something
	// was erased, so that it shows; before is the last measurement.
	Space           func() (volume.Space, error)
	SpaceAfterErase func(before volume.Space) (volume.Space, error)
	// Records makes records durable. Lag is how far it may be behind what was answered.
	Records actors.Records
	Lag     actors.Lag
	// Known calls each with every record of an earlier run, in any order. It is called once, at the
	// start.
	Known func(each func(volume.Record)) error
	// PodsDir is the kubelet's directory of pods; targets are below it.
	PodsDir string
	// PressureInterval is how often the file system is measured.
	PressureInterval time.Duration
	// EraseParallel is how many deleted volumes are erased at the same time.
	EraseParallel int
	// OrphanGrace is how long a pod directory must be absent before its volume is retained without
	// an unpublish.
	OrphanGrace time.Duration
	// Metrics count everything that happens.
	Metrics *metrics.Metrics

	// Rebooted: the kernel was booted since the records were written last.
	Rebooted bool
	// Quota gives volumes projects; nil gives none. The node closes it.
	Quota *quota.Projects
	// Lifespan is how long a volume without terms is kept after its unpublish.
	Lifespan time.Duration
	// ReleaseGrace is how long a volume is kept at least that a person releases, or whose lifespan the
	// outcome of its pod shortens.
	ReleaseGrace time.Duration
	// MaxPin is how far from now a pin may end. MaxPinned is how much of the file system's bytes the
	// pinned volumes may take. If either is zero, no volume can be pinned.
	MaxPin    time.Duration
	MaxPinned lifespan.Amount
	// Limits say how much of the file system should stay free.
	Limits lifespan.Limits
	// MinLifespan, Fair, MaxRetained and PerOwner say which volumes go first; see [retained.Index].
	MinLifespan time.Duration
	Fair        bool
	MaxRetained func(namespace string) volume.Size
	PerOwner    func(namespace string) volume.PerOwner
	// Resized is called when the index of volumes takes much more memory than before, or less; see [retained.Index.Watch].
	Resized func(bytes int)
	// Published is called after a pod's volume was published, as long as its owner was not asked for.
	// The publish was answered before. The call must not block.
	Published func(volume.Record)
	// AskOwner asks a gateway, which answers with Own, for the owner of a volume that is about to be published. It
	// reports whether there is a gateway to ask; without AskOwner there is none. The call must not block.
	AskOwner func(volume.Record) bool
	// ToArchive is called when a volume has become one that is to be archived, or has changed while it was: [Node.ToArchive]
	// may have another answer. Nothing calls it without such volumes. The call must not block.
	ToArchive func()
	// Logs follows the logs of pods, of which LogsLimit bytes are kept of each pod; nil keeps none. The caller runs it, and
	// closes it once the node has stopped.
	Logs      *lastwords.Logs
	LogsLimit int64
	// Gone returns tombstones of the volumes that were deleted; [store.Store.Gone] is one. Without it
	// none are listed.
	Gone func(volume.GoneSelection) (volume.GonePage, error)
	// Threads is how many threads the process may have; 0 sets no limit.
	Threads int
	// Node is the node's name in the cluster, WorkdirOnNode the path of the working directory for a
	// person on the node. Both are for the log.
	Node, WorkdirOnNode string
	Log                 logr.Logger
	// Tracer makes spans; nil traces nothing.
	Tracer trace.Tracer
}

// check names the first field that is missing.
func (c Config) check() error {
	for _, field := range []struct {
		name string
		ok   bool
	}{
		{"Mounter", c.Mounter != nil}, {"Bindings", c.Bindings != nil}, {"Scratch", c.Scratch != nil},
		{"Space", c.Space != nil}, {"SpaceAfterErase", c.SpaceAfterErase != nil}, {"Records", c.Records != nil},
		{"Known", c.Known != nil}, {"PodsDir", c.PodsDir != ""}, {"PressureInterval", c.PressureInterval > 0},
		{"EraseParallel", c.EraseParallel > 0}, {"OrphanGrace", c.OrphanGrace > 0}, {"Metrics", c.Metrics != nil},
	} {
		if !field.ok {
			return fmt.Errorf("ephemeral: Config.%s is missing", field.name)
		}
	}
	return nil
}

// Node is the front of the actors: it starts them, asks them, stops them.
type Node struct {
	*actors.System
	env     *environment
	cancel  func()
	watches sync.WaitGroup
	// podsError is why the kubelet's pods cannot be seen; nil when they can.
	podsError atomic.Pointer[error]
	// holdings is the last answer of Holdings.
	holdings atomic.Pointer[messages.Holdings]
}

// Start recovers what an earlier run left and starts the actors. When it returns, the node is ready
// for calls; the search for orphans and the emptying of the trash go on behind it.
func Start(cfg Config) (*Node, error) { return start(cfg) }

// start is Start with more middleware for the volume actors, which tests use to make them fail.
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

	system, calls := actors.NewSystem(cfg.Log, cfg.Threads), pace.NewCalls()
	ctx, cancel := context.WithCancelCause(context.Background())
	n := &Node{System: system, cancel: func() { cancel(actors.ErrStopping) }, env: &environment{
		System: system, Config: cfg, ctx: ctx,
		subjects: &actors.Subjects{System: system, Context: ctx, Aside: isAside},
		mounts:   newMountTable(cfg.Bindings, system.Fail), diskActor: system.Single(diskName),
		turns:   pace.NewTurns(cfg.EraseParallel, calls, actors.LowPriority, cfg.Metrics.EntriesErased),
		readers: pace.NewLine(calls), calls: calls, afterlife: newAfterlife(cfg), audit: newAudit(cfg), clock: found.clock,
	}}
	var queue *logsQueue
	if cfg.Logs != nil {
		queue, n.env.ends = newLogsQueue(), &ends{all: map[volume.PodUID][]byte{}}
	}
	if err := system.Start(n.volumes(found, queue, more), cfg.Metrics, &actors.Recording{
		Records: cfg.Records, Metrics: cfg.Metrics, Lag: cfg.Lag,
		NoRoom: func() { system.Root.Send(n.env.diskActor, &messages.NoSpace{}) },
	}); err != nil {
		n.cancel()
		return nil, err
	}
	w := &watch{environment: n.env, setPodsError: n.setPodsError}
	n.watches.Go(func() { n.env.mounts.serve(ctx) })
	n.watches.Go(func() { every(ctx, podsInterval(cfg.OrphanGrace), w.directories) })
	n.watches.Go(func() { every(ctx, orphanInterval, w.orphans) })
	n.watches.Go(func() { n.watchProjects(ctx) })
	if cfg.Quota.Counts() {
		n.watches.Go(func() { every(ctx, limitsInterval, n.holdLimits) })
	}
	if cfg.Logs != nil {
		for range logsParallel {
			n.watches.Go(func() { n.keepLogs(ctx, queue) })
		}
	}
	return n, nil
}

// volumes is the owner of all volumes, with the single actors that it starts.
func (n *Node) volumes(found recovered, queue *logsQueue, more []actor.ReceiverMiddleware) *volumes {
	env := n.env
	kept := newPins(env.MaxPinned, env.Metrics)
	if space, err := env.Space(); err == nil { // else the next measurement says it
		kept.total = space.Total.Bytes
	}
	return &volumes{
		environment: env, recovered: found.awake, pinned: found.pinned, pins: kept,
		setPodsError: n.setPodsError, more: more,
		retention: newRetention(env.ctx, found.index, deletionsWithin(n.Workers.Limit()), env.Limits.Headroom > 0, env.Metrics, env.Log),
		disk:      &disk{eraser: eraser{environment: env, trash: env.Scratch}, supervisor: n.Supervisor()},
		sizes:     &sizes{environment: env, usage: env.Scratch, supervisor: n.Supervisor()},
		leases:    newLeases(env.ctx, env.Metrics), tenantPods: newTenantPods(), index: found.index,
		logs: newLogs(env, queue),
	}
}

// Publish mounts a volume.
func (n *Node) Publish(ctx context.Context, p volume.Publication) error {
	if p.Attach != (volume.Place{}) {
		return n.publishWhenTold(ctx, p)
	}
	return n.publish(ctx, p)
}

func (n *Node) publish(ctx context.Context, p volume.Publication) error {
	defer n.env.calls.Begin()()
	return n.Change(ctx, &messages.PublishVolume{Routing: n.routing(ctx, p.ID), Publication: p})
}

// Unpublish unmounts a volume, which is retained when target was its last one.
func (n *Node) Unpublish(ctx context.Context, id volume.ID, target string) error {
	defer n.env.calls.Begin()()
	n.openLogs(ctx, target)
	return n.Change(ctx, &messages.UnpublishVolume{Routing: n.routing(ctx, id), Target: target})
}

// Stats measures a volume that is published at path.
func (n *Node) Stats(ctx context.Context, id volume.ID, path string) (volume.Stats, error) {
	return actors.Ask(ctx, n.Root, n.Supervisor(), &messages.VolumeStats{Routing: n.routing(ctx, id), Path: path})
}

// CheckRecords returns nil unless no record has reached the disk for longer than [actors.Lag] allows.
func (n *Node) CheckRecords() error { return n.Recorder.Lagging() }

func (n *Node) setPodsError(err error) { n.podsError.Store(&err) }

// CheckPods returns nil when the kubelet's pods can be seen. While they cannot, no volume is
// retained without an unpublish, and most likely no pod sees its mounts.
func (n *Node) CheckPods() error {
	if err := n.podsError.Load(); err != nil {
		return *err
	}
	return nil
}

func (n *Node) routing(ctx context.Context, id volume.ID) messages.Routing {
	deadline, _ := ctx.Deadline()
	r := messages.Routing{ID: id, Deadline: deadline}
	if n.env.Tracer != nil {
		if call := trace.SpanContextFromContext(ctx); call.IsValid() {
			r.Origin = &messages.Origin{Parent: call, Asked: time.Now()}
		}
	}
	return r
}

// Stop lets running operations end, then ends the actors and the searches. It is to be called once,
// after the last call was answered. Its error says what did not end before ctx did.
func (n *Node) Stop(ctx context.Context) error {
	n.cancel()
	err := n.System.Stop(ctx)
	n.env.afterlife.flush()
	n.env.audit.flush()
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
