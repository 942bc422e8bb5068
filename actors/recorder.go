package actors

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// Records is where records are made durable; *store.Store is one.
type Records interface {
	// Journal takes a change over that survives the end of the process when Journal returns, and is durable with the
	// next commit. wait is why it has to wait for a commit instead, as one does while the oldest change
	// that was taken over has not been durable for longer than patience; then nothing was taken over. first tells that no
	// other one was since the last commit began. It does not wait for the disk.
	Journal(change volume.Change, patience time.Duration) (first bool, wait, err error)
	// Waiting is since when the oldest change waits that was taken over and is not durable; zero if all are.
	Waiting() time.Time
	// Commit makes all changes durable with one sync, or none of them, and before them what Journal has taken over,
	// unless they alone find room. No changes are a commit too:
	// it reports whether one is possible. After an error that is [volume.ErrRecordsDamaged] none is
	// possible any more.
	Commit(changes []volume.Change) error
	// Journalled reports whether a change of the volume that Journal has taken over is not durable.
	Journalled(id volume.ID) bool
	// ReserveError says why no room is reserved for when the disk is full.
	ReserveError() error
}

// RecordMetrics count what happens to records.
type RecordMetrics interface {
	// Committed: a commit of a number of changes has ended, with those that were answered before.
	Committed(took time.Duration, changes int, err error)
	// Reserved reports whether room is reserved for records.
	Reserved(ok bool)
	// Waits reports whether calls wait for the disk that need not.
	Waits(waits bool)
}

// Recording is where the records of a kind are made durable, and what counts that.
type Recording struct {
	Records Records
	Metrics RecordMetrics
	Lag     Lag
	// NoRoom is called when what was answered finds no room on the disk. It does not block; nil does nothing.
	NoRoom func()
	// lagging counts the changes that the journal has taken over, until a commit has succeeded that writes them.
	lagging *atomic.Int64
}

// Lag is how far the disk may be behind what was answered.
type Lag struct {
	// Sync is how long after an answer the commit begins at the latest that makes it durable. With 0 each answer waits.
	Sync time.Duration
	// Patience is for how long changes are answered while no commit succeeds.
	Patience time.Duration
}

const (
	// CommitProves is how long a commit proves that the next one is possible.
	CommitProves = time.Second
	// MaxProbes bounds the probes that wait. internal/lib/ops asks one question at a time and gives
	// each up after a while: on a disk that hangs they add up here.
	MaxProbes = 16
)

// recorder owns the commits of records. While one is being synced, it collects the changes that
// arrive for the next one (group commit), so that a burst of calls costs a few syncs and not one
// each. What the journal has taken over goes with any commit; for that alone there is one after a while.
type recorder struct {
	Recording
	// fatal is called when no record can be made durable any more.
	fatal func(error)
	log   logr.Logger
	// changes wait for the next commit, and the callers who asked for them for answers.
	changes    []volume.Change
	answers    []messages.Reply[struct{}]
	committing bool
	// timer begins the next commit for the journal alone, and is nil where none is needed. due: its time has come.
	timer *time.Timer
	due   bool
	// failing: the last commit has failed while the journal waited for one.
	failing bool
	// probes wait for the end of the commit that is running.
	probes []messages.Reply[struct{}]
	// succeeded is when a commit did last.
	succeeded time.Time
}

// committed tells the recorder itself that a commit has ended.
type committed struct {
	answers []messages.Reply[struct{}]
	err     error
	// apart are those whose changes were committed without the others, and what came of that.
	apart    []messages.Reply[struct{}]
	apartErr error
	// skipped: there was nothing to commit. waits: the journal still has what is not durable.
	skipped, waits bool
}

// commitDue tells the recorder itself that the journal has waited for long enough.
type commitDue struct{}

func recorderProps(recording Recording, fatal func(error), log logr.Logger) *actor.Props {
	r := &recorder{Recording: recording, fatal: fatal, log: log}
	return actor.PropsFromFunc(r.Receive, actor.WithReceiverMiddleware(Recovering(log)))
}

func (r *recorder) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *messages.ChangeRecord:
		r.changes = append(r.changes, m.Change)
		r.answers = append(r.answers, m.Reply)
		r.commit(c)
	case *messages.RecordsWait:
		r.later(c)
	case *commitDue:
		r.timer, r.due = nil, true
		r.commit(c)
	case *messages.Status:
		m.Send(struct{}{}, nil)
	case *messages.ProbeStore:
		r.probe(c, m)
	case *committed:
		r.answer(m)
		if m.waits {
			r.later(c)
		}
		r.commit(c)
	case *actor.Stopping:
		StopTimer(r.timer)
	default:
		IgnoreLifecycle(r.log, c)
	}
}

// later sees to a commit for the journal, unless one is on its way.
func (r *recorder) later(c actor.Context) {
	if r.timer == nil {
		root, self := c.ActorSystem().Root, c.Self()
		r.timer = time.AfterFunc(r.Lag.Sync, func() { root.Send(self, &commitDue{}) })
	}
}

func (r *recorder) answer(m *committed) {
	r.committing = false
	for _, reply := range m.answers {
		reply.Send(struct{}{}, m.err)
	}
	for _, reply := range m.apart {
		reply.Send(struct{}{}, m.apartErr)
	}
	if m.err == nil && !m.skipped {
		r.succeeded = time.Now()
	}
	r.lags(m)
	probed := m.err
	if volume.IsNoSpace(probed) {
		probed = nil // a full disk answers, and to make room is what the daemon is for
	}
	for _, reply := range r.probes {
		reply.Send(struct{}{}, probed)
	}
	r.probes = nil
	if errors.Is(m.err, volume.ErrRecordsDamaged) {
		r.fatal(m.err)
	}
}

// lags reports a commit that has failed to make durable what was answered, which no call reports.
func (r *recorder) lags(m *committed) {
	failing := m.err != nil && m.waits
	if failing && volume.IsNoSpace(m.err) && r.NoRoom != nil {
		r.NoRoom()
	}
	switch {
	case failing && !r.failing:
		r.log.Error(m.err, "what was answered is not on the disk yet; it is tried again", logkeys.Interval, duration.Format(r.Lag.Sync))
	case !failing && r.failing && !m.waits:
		r.log.Info("all that was answered is on the disk again")
	case m.waits:
		return
	}
	r.failing = failing
}

// probe answers whether a commit is possible: at once when one has just been, else with the outcome
// of the one that runs, or of one without changes. One commit runs, however many probes wait and
// however long the disk hangs.
func (r *recorder) probe(c actor.Context, m *messages.ProbeStore) {
	switch {
	case !r.succeeded.IsZero() && time.Since(r.succeeded) < CommitProves:
		m.Send(struct{}{}, nil)
	case len(r.probes) >= MaxProbes:
		m.Fail(fmt.Errorf("%w: a write to the disk has not ended, and %d wait for it", volume.ErrUnavailable, len(r.probes)))
	default:
		r.probes = append(r.probes, m.Reply)
		r.commit(c)
	}
}

// commit starts a commit of all that is pending, unless one is running.
func (r *recorder) commit(c actor.Context) {
	if r.committing || len(r.changes) == 0 && len(r.probes) == 0 && !r.due {
		return
	}
	changes, answers, probed := r.changes, r.answers, len(r.probes) > 0
	r.changes, r.answers = nil, nil
	r.committing, r.due = true, false

	root, self := c.ActorSystem().Root, c.Self()
	go func() {
		done := &committed{answers: answers}
		if done.skipped = len(changes) == 0 && !probed && r.Records.Waiting().IsZero(); !done.skipped {
			lagging := r.lagging.Load()
			if done.err = r.write(changes, int(lagging)); done.err == nil {
				r.lagging.Add(-lagging)
			} else if volume.IsNoSpace(done.err) {
				r.writeApart(done, changes)
			}
			r.Metrics.Reserved(r.Records.ReserveError() == nil)
			done.waits = r.Lag.Sync > 0 && !r.Records.Waiting().IsZero()
		}
		root.Send(self, done)
	}()
}

// write commits changes, and with them a number of those that the journal has.
func (r *recorder) write(changes []volume.Change, lagging int) error {
	began := time.Now()
	err := Guard(r.log, func() error { return r.Records.Commit(changes) })
	r.Metrics.Committed(time.Since(began), len(changes)+lagging, err)
	return err
}

// writeApart commits those changes of a commit without room that the journal does not hold up: they find room where what was
// answered before does not, and may be what makes it.
func (r *recorder) writeApart(done *committed, changes []volume.Change) {
	var free []volume.Change
	var held, apart []messages.Reply[struct{}]
	for i, change := range changes {
		if r.Records.Journalled(change.ID) {
			held = append(held, done.answers[i])
		} else {
			free, apart = append(free, change), append(apart, done.answers[i])
		}
	}
	if len(free) > 0 && len(held) > 0 {
		done.answers, done.apart, done.apartErr = held, apart, r.write(free, 0)
	}
}

// Recorder records changes. Its methods block, so only operations in goroutines of their own may
// use it. They have no deadline: the recorder answers every request, also after a panic.
type Recorder struct {
	*Recording
	root  *actor.RootContext
	actor *actor.PID
	log   logr.Logger
	// waits: the last change that might have lagged had to wait.
	waits *atomic.Bool
}

// Save records what is known of a volume: durably, or where the change may lag (see [volume.MayLag]) so that the
// end of the process does not undo it. The record does not change any more.
func (r Recorder) Save(record *volume.Record, mayLag bool) error {
	return r.change(volume.Change{ID: record.ID, Record: record}, mayLag)
}

// Forget removes a volume's record, as Save does.
func (r Recorder) Forget(id volume.ID, mayLag bool) error {
	return r.change(volume.Change{ID: id}, mayLag)
}

// Bury is Forget, durably, and keeps the volume's tombstone with the same commit.
func (r Recorder) Bury(t volume.Tombstone) error {
	return r.change(volume.Change{ID: t.Record.ID, Tombstone: &t}, false)
}

func (r Recorder) change(change volume.Change, mayLag bool) error {
	if mayLag && r.Lag.Sync > 0 {
		first, wait, err := r.Records.Journal(change, r.Lag.Patience)
		if first {
			r.root.Send(r.actor, &messages.RecordsWait{})
		}
		r.say(wait)
		if wait == nil && err == nil {
			r.lagging.Add(1)
		}
		if wait == nil || err != nil {
			return err
		}
	}
	_, err := Ask(context.Background(), r.root, r.actor, &messages.ChangeRecord{Change: change})
	return err
}

// say reports when calls begin to wait for the disk that need not, and when they do no more.
func (r Recorder) say(wait error) {
	if waits := wait != nil; r.waits.CompareAndSwap(!waits, waits) {
		r.Metrics.Waits(waits)
		if waits {
			r.log.Info("calls wait until their records are on the disk", logkeys.Cause, wait.Error())
		} else {
			r.log.Info("calls are answered again before their records are on the disk")
		}
	}
}

// Lagging returns nil unless no commit has made durable what was answered for longer than [Lag.Patience].
func (r Recorder) Lagging() error {
	since := r.Records.Waiting()
	if since.IsZero() || time.Since(since) <= r.Lag.Patience {
		return nil
	}
	return fmt.Errorf("what was answered %s ago is not on the disk, so calls wait for that: see what the disk does, "+
		"and the daemon's log for why commits fail", duration.Format(time.Since(since).Round(time.Second)))
}
