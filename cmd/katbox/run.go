package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/ephemeral"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/logging"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/ops"
	"github.com/katbox/katbox/internal/lib/program"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/archiver"
	"github.com/katbox/katbox/internal/node/lastwords"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/retained"
	"github.com/katbox/katbox/internal/node/scratch"
	"github.com/katbox/katbox/internal/node/store"
	"github.com/katbox/katbox/internal/node/tracing"
	"github.com/katbox/katbox/internal/node/uplink"
)

const (
	// recordsFile is in the working directory. The dot keeps it apart from the pods' directories.
	recordsFile = ".katbox.db"
	// legacyFile is the archived Katbox's database in the same place.
	legacyFile = "deletedVolumes.db"
	// stopTimeout bounds the ordered stop, each of the others one step.
	stopTimeout  = 20 * time.Second
	callsTimeout = 10 * time.Second
	partTimeout  = time.Second
)

// run is the daemon with its log on stdout.
func run(ctx context.Context, o options, stdout io.Writer) error {
	counted := metrics.New(version, revision)
	sink, err := logging.NewSink(o.logFormat, stdout, counted.LogLineDropped)
	if err != nil {
		return err
	}
	defer sink.Close(program.OutputTimeout)
	log, err := newLogger(o.level(), o.logFormat, sink)
	if err != nil {
		return err
	}
	return live(ctx, o, counted, log)
}

// idleAfter is how long no volume is published before a daemon is at rest.
const idleAfter = 30 * time.Second

// instance is one run of the daemon. Each part starts with what started before it.
type instance struct {
	o       options
	counted *metrics.Metrics
	log     logr.Logger
	// stops contains a function for each part that has started.
	stops []func(context.Context) error
	// failed delivers why the CSI socket serves no more.
	failed chan error
	// idle gives memory back to the node once no pod has come for a while: what a burst of them, or reading a million records, left
	// behind a daemon at rest would keep.
	idle *time.Timer

	status   *ops.Server
	traces   *tracing.Tracing
	dir      *scratch.Dir
	records  *store.Store
	promises *promises
	// logs is nil with --logs=off.
	logs      *lastwords.Logs
	node      *ephemeral.Node
	registrar *kubelet.Registrar
	// uplink is set once all else serves, endings once the node has recovered. The node calls both from
	// then on.
	uplink  atomic.Pointer[uplink.Uplink]
	endings atomic.Pointer[endings]
	// archiver is nil with --archive=Never.
	archiver atomic.Pointer[archiver.Archiver]
	// threads is how many the process may have; 0 sets no limit.
	threads int
	// arrays is nil without volumes of arrays.
	arrays atomic.Pointer[arrayPart]
	// locals is nil without pools on the node's disks.
	locals atomic.Pointer[locals]
}

// live starts the daemon bottom-up, serves until ctx ends or a part fails, and stops what has
// started in reverse.
func live(ctx context.Context, o options, counted *metrics.Metrics, log logr.Logger) (err error) {
	log.Info("starting", "version", version, "driver", o.driverName, logkeys.Node, o.nodeID, "workdir", o.workdir)
	if err := setTimerSlack(timerSlack); err != nil {
		log.V(1).Info("each call costs a little more CPU", logkeys.Cause, err.Error())
	}
	status, err := ops.Start(ops.Config{Endpoint: o.httpEndpoint, Metrics: counted.Handler(), Log: log})
	if err != nil {
		return fmt.Errorf("--http-endpoint %s: %w", o.httpEndpoint, err)
	}
	i := &instance{o: o, counted: counted, log: log, status: status, failed: make(chan error, 4)}
	i.idle = time.AfterFunc(idleAfter, debug.FreeOSMemory)
	defer i.idle.Stop()
	defer func() { err = errors.Join(err, i.stop()) }()
	for _, start := range []func(context.Context) error{
		i.startTracing, i.openWorkdir, i.openRecords, i.readPolicy, i.followLogs, i.startNode, i.startOutcomes,
		i.listen, i.register, i.serveAdmin, i.connect, i.serveArrays, i.serveLocal,
	} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	status.Serving(func() error {
		if err := i.node.CheckPods(); err != nil {
			return err
		}
		if err := i.node.CheckRecords(); err != nil {
			return err
		}
		if err := i.promises.ready(); err != nil {
			return err
		}
		return i.registrar.Registered()
	})
	select {
	case <-ctx.Done():
		log.Info("stopping")
		return nil
	case err := <-i.node.Failed():
		return err
	case err := <-i.failed:
		return err
	case err := <-status.Failed():
		return err
	}
}

// onStop adds the stop of a part that has started.
func (i *instance) onStop(stop func(context.Context) error) { i.stops = append(i.stops, stop) }

// stop stops all parts, the last one first. The HTTP server goes last: until then it reports that
// the daemon is stopping.
func (i *instance) stop() (err error) {
	i.status.Stopping()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, stop := range slices.Backward(i.stops) {
		err = errors.Join(err, stop(ctx))
	}
	i.stopPart("stopped answering", i.status.Stop)
	return err
}

// stopPart stops a part that has a time limit of its own. A failure is only logged: any client of the
// part could cause it.
func (i *instance) stopPart(what string, stop func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), partTimeout)
	defer cancel()
	if err := stop(ctx); err != nil {
		i.log.Info(what, logkeys.Cause, err.Error())
	}
}

// startTracing sends traces to a collector, if there is one.
func (i *instance) startTracing(context.Context) (err error) {
	if i.o.otlpEndpoint == "" {
		return nil
	}
	i.traces, err = tracing.Start(tracing.Config{Endpoint: i.o.otlpEndpoint, NodeID: i.o.nodeID, Version: version,
		Log: i.log.WithName("tracing")})
	if err != nil {
		return fmt.Errorf("--otlp-endpoint: %w", err)
	}
	i.onStop(func(context.Context) error {
		i.stopPart("stopped tracing", i.traces.Stop)
		return nil
	})
	return nil
}

func (i *instance) openRecords(context.Context) (err error) {
	i.records, err = store.Open(filepath.Join(i.o.workdir, recordsFile))
	if err != nil {
		return err
	}
	i.onStop(func(context.Context) error { return i.records.Close() })
	i.tellJournal(i.records.Found())
	i.counted.WatchRecords(metrics.RecordTimes{Waiting: i.records.Waiting, Writing: i.records.Writing})
	if i.o.recordSync > 0 {
		if err := i.records.StartJournal(); err != nil {
			i.log.Info("there is no journal, so each call waits for the disk", logkeys.Cause, err.Error())
		}
	}
	i.records.OnCompaction(i.logCompaction)
	i.records.KeepTombstones(i.o.tombstones)
	return nil
}

// tellJournal says what the start has found of the journal.
func (i *instance) tellJournal(found store.Found) {
	if found.Entries > 0 {
		i.log.Info("took over what the last run had answered and not yet written to its records", "changes", found.Entries)
	}
	if found.Lost > 0 {
		i.log.Error(nil, "the journal of the records is damaged, and the last changes that calls were answered with are lost; nothing "+
			"goes earlier for that: a volume without a record is found by its directory, and one that is still recorded as in use is retained "+
			"once its pod is gone; see what the disk and the kernel's log say", "changes", found.Lost, logkeys.Directory, i.o.workdir)
	}
	for _, file := range found.Aside {
		i.log.Error(nil, "set a journal aside that is not of these records; the last changes of the records beside which it was "+
			"written are in it: if those were moved or replaced by mistake, stop the daemon and put them back together with it, "+
			"else remove it", logkeys.Path, file)
	}
}

// startNode recovers the volumes of earlier runs. The node is ready for calls then.
func (i *instance) startNode(context.Context) error {
	mounter, err := i.newMounter()
	if err != nil {
		return err
	}
	i.threads, err = threadLimit(os.DirFS("/"))
	if err != nil {
		i.log.Info("no limit of threads found; if there is one, a file system that hangs may end the daemon", logkeys.Cause, err.Error())
	}
	i.log.V(1).Info("limits", "threads", i.threads)
	free, err := i.limits()
	if err != nil {
		return err
	}
	maxPinned, err := i.o.pinnedAmount()
	if err != nil {
		return err // it was checked before
	}
	projects, err := i.projects()
	if err != nil {
		return err
	}
	i.node, err = ephemeral.Start(ephemeral.Config{
		Mounter:          mounter,
		Bindings:         i.bindings,
		Scratch:          i.dir,
		Quota:            projects,
		Space:            i.dir.Space,
		SpaceAfterErase:  i.dir.SpaceAfterErase,
		Records:          i.records,
		Lag:              actors.Lag{Sync: i.o.recordSync, Patience: i.o.syncPatience},
		Known:            i.load,
		Gone:             i.records.Gone,
		Rebooted:         i.records.Rebooted(),
		PodsDir:          i.o.podsDir(),
		Lifespan:         i.o.afterLifespan,
		Limits:           free,
		MinLifespan:      i.o.minLifespan,
		Fair:             i.o.pressureOrder == fairOrder,
		MaxRetained:      i.promises.maxRetained(),
		PerOwner:         i.promises.perOwner(),
		PressureInterval: i.o.pruneInterval,
		Resized:          scaleGC,
		Published:        i.published,
		AskOwner:         func(r volume.Record) bool { return i.uplink.Load().Ask(r) },
		ToArchive:        func() { i.archiver.Load().Wake() },
		EraseParallel:    i.o.eraseParallel,
		OrphanGrace:      i.o.orphanGrace,
		Logs:             i.logs,
		LogsLimit:        i.o.logs.bytes(),
		ReleaseGrace:     i.o.releaseGrace,
		MaxPin:           i.o.maxPin,
		MaxPinned:        maxPinned,
		Node:             i.o.nodeID,
		WorkdirOnNode:    i.o.pathOnNode(),
		Threads:          i.threads - i.o.arrays.threads(i.threads) - i.o.local.threads(i.threads),
		Log:              i.log,
		Metrics:          i.counted,
		Tracer:           i.traces.Tracer(),
	})
	if err != nil {
		return err
	}
	i.onStop(func(ctx context.Context) error {
		err := i.node.Stop(ctx)
		if err != nil {
			err = fmt.Errorf("stop: %w", err)
		}
		i.log.Info("stopped")
		return err
	})
	if err := i.records.RebootSeen(); err != nil {
		i.log.Info("the next start looks once more for mounts that went with the last boot", logkeys.Cause, err.Error())
	}
	i.status.Recovered(i.healthy)
	i.idle.Reset(0)
	return nil
}

// bindings returns which data directories are mounted where pods see them.
func (i *instance) bindings() ([]mount.Binding, error) {
	bindings, err := i.dir.Bindings(i.o.podsDir())
	return slices.DeleteFunc(bindings, func(b mount.Binding) bool { return !i.o.arrays.onNode(b.Target) }), err
}

// healthy returns nil while the actors answer and records can be made durable.
func (i *instance) healthy(ctx context.Context) error {
	err := i.node.Healthy(ctx)
	for _, p := range i.parts() {
		err = errors.Join(err, p.healthy(ctx))
	}
	return err
}

// published passes on that a volume was published. It does not block.
func (i *instance) published(r volume.Record) {
	i.idle.Reset(idleAfter)
	i.uplink.Load().Published(r)
	if e := i.endings.Load(); e != nil {
		e.Published(r)
	}
}

// scaleGC sets the garbage collector's target as the index of volumes grows. GOGC in the environment
// overrides it; a GOMEMLIMIT holds beside it.
func scaleGC(index int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(retained.GCPercent(index))
	}
}
