package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/actors/ephemeral"
	"github.com/katbox/katbox/internal/driver"
	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/store"
	"github.com/katbox/katbox/internal/volume"
)

const (
	// recordsFile is where the records are, in the working directory. The dot
	// keeps it apart from the pods' directories.
	recordsFile = ".katbox.db"
	// legacyFile is the archived Katbox's database in the same place.
	legacyFile = "deletedVolumes.db"
)

// run is the daemon with its log on stdout.
func run(ctx context.Context, o options, stdout io.Writer) error {
	counted := metrics.New(version, revision)
	sink, err := newSink(o.logFormat, stdout, counted)
	if err != nil {
		return err
	}
	defer sink.Close(logTimeout)
	log, err := newLogger(o.level(), o.logFormat, sink)
	if err != nil {
		return err
	}
	return live(ctx, o, counted, log)
}

// live builds the daemon bottom-up, serves until ctx ends, and takes it down in
// reverse.
func live(ctx context.Context, o options, counted *metrics.Metrics, log logr.Logger) (err error) {
	log.Info("starting", "version", version, "driver", o.driverName, "node", o.nodeID, "workdir", o.workdir)
	if err := allowSlack(timerSlack); err != nil {
		log.V(1).Info("each call costs a little more CPU", "cause", err.Error())
	}

	status, err := startOps(o, counted, log)
	if err != nil {
		return err
	}
	defer stopOps(status, log)
	traces, err := startTracing(o, log)
	if err != nil {
		return err
	}
	defer stopTracing(traces, log)

	cfg := o.driverConfig()
	podsDir := driver.PodsDir(cfg.KubeletDir)
	if err := checkWorkdir(o.workdir, podsDir); err != nil {
		return err
	}
	tellPropagation(podsDir, log)
	dir, err := openWorkdir(o.workdir, log)
	if err != nil {
		return err
	}
	locked := false
	defer func() { err = errors.Join(err, closeWorkdir(dir, o.workdir, locked, log)) }()

	records, err := store.Open(filepath.Join(o.workdir, recordsFile))
	if err != nil {
		return err
	}
	locked = true
	defer func() { err = errors.Join(err, records.Close()) }()
	records.OnCompaction(func(c store.Compaction) { logCompaction(c, log) })

	mounter, err := newMounter(o, log)
	if err != nil {
		return err
	}
	threads, err := threadLimit(os.DirFS("/"))
	if err != nil {
		log.Info("no limit of threads found; a file system that hangs may end the daemon where there is one", "cause", err.Error())
	}
	log.V(1).Info("limits", "threads", threads)

	free, err := limits(o, dir, podsDir, log)
	if err != nil {
		return err
	}
	node, err := ephemeral.Start(ephemeral.Config{
		Mounter:          mounter,
		Bindings:         func() ([]mount.Binding, error) { return dir.Bindings(podsDir) },
		Scratch:          dir,
		Space:            dir.Space,
		SpaceAfterErase:  dir.SpaceAfterErase,
		Records:          records,
		Known:            func(each func(volume.Record)) error { return load(records, o, log, each) },
		Rebooted:         records.Rebooted(),
		PodsDir:          podsDir,
		Lifespan:         o.afterLifespan,
		Limits:           free,
		PressureInterval: o.pruneInterval,
		RetainedGrew:     scaleGC,
		EraseParallel:    o.eraseParallel,
		OrphanGrace:      o.orphanGrace,
		Node:             o.nodeID,
		WorkdirOnNode:    o.pathOnNode(),
		Threads:          threads,
		Log:              log,
		Metrics:          counted,
		Tracer:           traces.Tracer(),
	})
	if err != nil {
		return err
	}
	if err := records.RebootSeen(); err != nil {
		log.Info("the next start looks once more for mounts that went with the last boot", "cause", err.Error())
	}
	status.Recovered(node.Healthy)
	cfg.Volumes, cfg.Log, cfg.Metrics, cfg.Trace = node, log, counted, traces.Calls()
	return serve(ctx, o, cfg, node, status, log)
}
