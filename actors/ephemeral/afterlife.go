package ephemeral

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
)

// Why a volume is retained, in one word.
const (
	// unpublished: the kubelet has unpublished it.
	unpublished = "unpublished"
	// abandoned: its pod is gone without an unpublish.
	abandoned = "abandoned"
	// adopted: its data directory was found without a record.
	adopted = "adopted"
)

const (
	// afterlifeBurst is how many lines of one kind a burst of volumes may write, which is more than
	// the drain of a node brings; a burst that goes on writes as many again in afterlifeAgain. A
	// line has some 500 bytes, so a million volumes write at most 50 kB/s.
	afterlifeBurst = 1000
	afterlifeAgain = 10 * time.Second
	// afterlifeSummary is how long lines are counted that were left out.
	afterlifeSummary = time.Second
)

// afterlife logs when a volume is retained and when it goes, with everything that a person needs to
// find its files.
type afterlife struct {
	log logr.Logger
	// node is the node's name, workdir the working directory's path on it.
	node, workdir string
	kept, gone    lineLimit
}

func newAfterlife(cfg Config) *afterlife {
	a := &afterlife{log: cfg.Log, node: cfg.Node, workdir: cfg.WorkdirOnNode}
	for _, l := range []*lineLimit{&a.kept, &a.gone} {
		l.burst, l.again, l.summaryAfter = afterlifeBurst, afterlifeAgain, afterlifeSummary
	}
	return a
}

// retained logs that a volume is kept from now on. Its files are there until the time in the line,
// unless the disk fills up.
func (a *afterlife) retained(r volume.Record, reason string) {
	if !a.log.Enabled() {
		return
	}
	a.kept.write(func() {
		fields := a.about(r, "reason", reason)
		if !r.Published.IsZero() {
			fields = append(fields, "published", r.Published.UTC().Format(time.RFC3339))
		}
		until := lifespan.Deadline(r.Unpublished, r.Lifespan, 1)
		a.log.Info("retained", append(fields, "until", until.UTC().Format(time.RFC3339), "lifespan", duration.Format(r.Lifespan))...)
	}, func(count int) { a.log.Info("retained more volumes than are logged one by one", "count", count) })
}

// deleted logs that a retained volume is gone, and why.
func (a *afterlife) deleted(stone volume.Tombstone) {
	if !a.log.Enabled() {
		return
	}
	a.gone.write(func() {
		fields := a.about(stone.Record, "reason", stone.Reason.String())
		if stone.Reason.Early() {
			fields = append(fields, "pressureFactor", stone.Factor)
		}
		a.log.Info("deleted", append(fields, "kept", duration.Format(stone.Kept.Round(time.Second)),
			"lifespan", duration.Format(stone.Record.Lifespan))...)
	}, func(count int) { a.log.Info("deleted more volumes than are logged one by one", "count", count) })
}

func (a *afterlife) about(r volume.Record, more ...any) []any {
	return append(logkeys.About(r, logkeys.Node, a.node, logkeys.Path, filepath.Join(a.workdir, string(r.Pod), string(r.ID))), more...)
}

// flush logs what is still counted, when nothing more comes.
func (a *afterlife) flush() {
	a.kept.flush()
	a.gone.flush()
}

// lineLimit bounds the lines of one kind of event, which may come in any number. It counts the
// lines beyond the bound, and writes one summary of them after a while.
type lineLimit struct {
	// burst is how many lines may come at once, again the time after which as many may come again.
	burst float64
	again time.Duration
	// summaryAfter is how long lines are counted before their summary is written.
	summaryAfter time.Duration

	mu sync.Mutex
	// used are the lines that were written, less those that time has given back.
	used    float64
	since   time.Time
	leftOut int
	// summary is that of the last line that was left out.
	summary func(leftOut int)
	timer   *time.Timer
}

// newLineLimit returns a limit of burst lines in each interval, after which it writes the summary.
func newLineLimit(burst int, interval time.Duration) *lineLimit {
	return &lineLimit{burst: float64(burst), again: interval, summaryAfter: interval}
}

// write writes a line. Beyond the limit it writes the summary later, with the number of lines that
// were left out.
func (l *lineLimit) write(line func(), summary func(leftOut int)) {
	if l.allow(summary) {
		line()
	}
}

func (l *lineLimit) allow(summary func(leftOut int)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.used = max(l.used-l.burst*now.Sub(l.since).Seconds()/l.again.Seconds(), 0)
	l.since = now
	if l.used+1 <= l.burst {
		l.used++
		return true
	}
	l.summary = summary
	if l.leftOut++; l.timer == nil {
		l.timer = time.AfterFunc(l.summaryAfter, l.flush)
	}
	return false
}

// flush writes the summary of the lines that were left out since the last time.
func (l *lineLimit) flush() {
	l.mu.Lock()
	leftOut, summary := l.leftOut, l.summary
	actors.StopTimer(l.timer)
	l.leftOut, l.timer = 0, nil
	l.mu.Unlock()
	if leftOut > 0 {
		summary(leftOut)
	}
}
