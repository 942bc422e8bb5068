package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

// Names of the supervisor's children, one of each.
const (
	recorderName  = "recorder"
	pressureName  = "pressure"
	retentionName = "retention"
	eraserName    = "eraser"
	surveyorName  = "surveyor"
)

// supervisorProps describes the supervisor. It is one instance for good: a
// restart would stop all its children, so a panic in it ends the daemon, which
// recovers everything at its next start.
func supervisorProps(s *supervisor, n *Node, cfg Config, found recovered) *actor.Props {
	fatal := recoveringWith(cfg.Log, func(reason any) { n.fail(fmt.Errorf("supervisor failed: %v", reason)) })
	return actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			s.start(c, cfg, found)
		case *actor.Stopping:
			s.stopping = true
		case *actor.Stopped:
			close(n.stopped)
		default:
			s.Receive(c)
		}
	}, actor.WithReceiverMiddleware(fatal), actor.WithSupervisor(s), atOnce)
}

// start spawns the other actors and those of the volumes that are awake.
func (s *supervisor) start(c actor.Context, cfg Config, found recovered) {
	s.self = c.Self()
	s.records = recorderClient{root: s.root, recorder: s.spawn(c, recorderName, recorderProps(cfg.Records, s.fatal, cfg.Log, s.metrics))}
	s.eraser = s.spawn(c, eraserName, eraserProps(eraser{
		ctx: s.ctx, bin: s.scratch, workers: s.workers, turns: s.turns, pressure: s.child(c, pressureName), log: cfg.Log, metrics: s.metrics, tracer: s.tracer,
	}))
	surveyor := s.spawn(c, surveyorName, surveyorProps(surveyor{
		ctx: s.ctx, ground: s.scratch, workers: s.workers, calls: s.turns.calls, retention: s.child(c, retentionName), log: cfg.Log,
	}))
	s.retention = s.spawn(c, retentionName, retentionProps(retention{
		supervisor: s.self, eraser: s.eraser, surveyor: surveyor, metrics: s.metrics, early: cfg.Limits.Headroom > 0, atOnce: evictionsWithin(cap(s.workers.slots)), log: cfg.Log,
	}, found.asleep))
	s.spawn(c, pressureName, pressureProps(pressure{
		ctx: s.ctx, space: cfg.Space, spaceAfterErase: cfg.SpaceAfterErase, workers: s.workers, limits: cfg.Limits, interval: cfg.PressureInterval,
		retention: s.retention, eraser: s.eraser, log: cfg.Log, metrics: s.metrics,
	}))
	for i := range found.awake {
		record := found.awake[i]
		e := &entry{}
		s.table[record.ID] = e
		s.activate(c, record.ID, e, &record)
	}
}

// child is the address of a child that may not have been started yet.
func (s *supervisor) child(c actor.Context, name string) *actor.PID {
	return c.ActorSystem().NewLocalPID(s.self.Id + "/" + name)
}

func (s *supervisor) spawn(c actor.Context, name string, props *actor.Props) *actor.PID {
	pid, err := c.SpawnNamed(props, name)
	if err != nil {
		panic(fmt.Errorf("spawn the %s: %w", name, err)) // the names are ours alone
	}
	return pid
}
