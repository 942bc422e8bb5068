package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// Records is where records are made durable; *store.Store is one.
type Records interface {
	// Commit makes all changes durable with one sync, or none of them. No changes are a commit too:
	// it tells whether one is possible. After an error that is [volume.ErrRecordsDamaged] none is
	// possible any more.
	Commit(changes []volume.Change) error
	// ReserveError says why no room is reserved for when the disk is full.
	ReserveError() error
}

// RecordMetrics count what happens to records.
type RecordMetrics interface {
	// Committed: a commit of a number of changes has ended.
	Committed(took time.Duration, changes int, err error)
	// Reserved tells whether room is reserved for records.
	Reserved(ok bool)
}

// Recording is where the records of a kind are made durable, and what counts that.
type Recording struct {
	Records Records
	Metrics RecordMetrics
}

const (
	// CommitProves is how long a commit proves that the next one is possible.
	CommitProves = time.Second
	// MaxProbes bounds the probes that wait. internal/lib/ops asks one question at a time and gives
	// each up after a while: on a disk that hangs they add up here.
	MaxProbes = 16
)

// recorder owns the records on disk. While one commit is being synced, it collects the changes that
// arrive for the next one (group commit), so that a burst of calls costs a few syncs and not one
// each.
type recorder struct {
	records Records
	// fatal is called when no record can be made durable any more.
	fatal   func(error)
	log     logr.Logger
	metrics RecordMetrics
	// changes wait for the next commit, and the callers who asked for them for answers.
	changes    []volume.Change
	answers    []messages.Reply[struct{}]
	committing bool
	// probes wait for the end of the commit that is running.
	probes []messages.Reply[struct{}]
	// succeeded is when a commit did last.
	succeeded time.Time
}

// committed tells the recorder itself that a commit has ended.
type committed struct {
	answers []messages.Reply[struct{}]
	err     error
}

func recorderProps(recording Recording, fatal func(error), log logr.Logger) *actor.Props {
	r := &recorder{records: recording.Records, fatal: fatal, log: log, metrics: recording.Metrics}
	return actor.PropsFromFunc(r.Receive, actor.WithReceiverMiddleware(Recovering(log)))
}

func (r *recorder) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *messages.ChangeRecord:
		r.changes = append(r.changes, m.Change)
		r.answers = append(r.answers, m.Reply)
		r.commit(c)
	case *messages.Status:
		m.Send(struct{}{}, nil)
	case *messages.ProbeStore:
		r.probe(c, m)
	case *committed:
		r.answer(m)
		r.commit(c)
	default:
		IgnoreLifecycle(r.log, c)
	}
}

func (r *recorder) answer(m *committed) {
	r.committing = false
	for _, reply := range m.answers {
		reply.Send(struct{}{}, m.err)
	}
	if m.err == nil {
		r.succeeded = time.Now()
	}
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
	if r.committing || len(r.changes) == 0 && len(r.probes) == 0 {
		return
	}
	changes, answers := r.changes, r.answers
	r.changes, r.answers = nil, nil
	r.committing = true

	root, self := c.ActorSystem().Root, c.Self()
	go func() {
		began := time.Now()
		err := Guard(r.log, func() error { return r.records.Commit(changes) })
		r.metrics.Committed(time.Since(began), len(changes), err)
		r.metrics.Reserved(r.records.ReserveError() == nil)
		root.Send(self, &committed{answers: answers, err: err})
	}()
}

// Recorder asks the recorder. Its methods block, so only operations in goroutines of their own may
// use it. They have no deadline: the recorder answers every request, also after a panic.
type Recorder struct {
	root  *actor.RootContext
	actor *actor.PID
}

// Save makes a record durable.
func (r Recorder) Save(record volume.Record) error {
	return r.change(volume.Change{ID: record.ID, Record: &record})
}

// Forget removes a volume's record durably.
func (r Recorder) Forget(id volume.ID) error { return r.change(volume.Change{ID: id}) }

// Bury is Forget, and keeps the volume's tombstone with the same commit.
func (r Recorder) Bury(t volume.Tombstone) error {
	return r.change(volume.Change{ID: t.Record.ID, Tombstone: &t})
}

func (r Recorder) change(change volume.Change) error {
	_, err := Ask(context.Background(), r.root, r.actor, &messages.ChangeRecord{Change: change})
	return err
}
