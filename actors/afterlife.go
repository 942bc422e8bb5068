package actors

import (
	"path/filepath"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/duration"
	"github.com/katbox/katbox/internal/lifespan"
	"github.com/katbox/katbox/internal/logkeys"
	"github.com/katbox/katbox/internal/volume"
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

// interrupted is why a volume goes before its lifespan is over, when all that is known is that
// an earlier process began to delete it.
const interrupted = "interrupted"

// afterlife logs when a volume is retained and when it goes, with all that a person needs who
// looks for its files. Bursts are cut short; see [lineLimit].
type afterlife struct {
	log logr.Logger
	// node is the node's name, workdir the working directory's path on it.
	node, workdir string
	kept, gone    lineLimit
}

func newAfterlife(cfg Config) *afterlife {
	return &afterlife{
		log: cfg.Log, node: cfg.Node, workdir: cfg.WorkdirOnNode,
		kept: lineLimit{log: cfg.Log, summary: "retained more volumes than are logged one by one"},
		gone: lineLimit{log: cfg.Log, summary: "deleted more volumes than are logged one by one"},
	}
}

// retained logs that a volume is kept from now on. Its files are there until the time that the
// line tells, unless the disk fills up.
func (a *afterlife) retained(r volume.Record, reason string) {
	if !a.log.Enabled() || !a.kept.allow() {
		return
	}
	fields := a.about(r, "reason", reason)
	if !r.Published.IsZero() {
		fields = append(fields, "published", r.Published.UTC().Format(time.RFC3339))
	}
	until := lifespan.Deadline(r.Unpublished, r.Lifespan, 1)
	a.log.Info("retained", append(fields, "until", until.UTC().Format(time.RFC3339), "lifespan", duration.Format(r.Lifespan))...)
}

// deleted logs that a retained volume is gone, and why. factor is the pressure factor that made
// it go early.
func (a *afterlife) deleted(r volume.Record, reason volume.Reason, factor float64) {
	if !a.log.Enabled() || !a.gone.allow() {
		return
	}
	kept := time.Since(r.Unpublished)
	why := reason.String()
	if !reason.Early() && kept < r.Lifespan {
		why = interrupted
	}
	fields := a.about(r, "reason", why)
	if reason.Early() {
		fields = append(fields, "pressureFactor", factor)
	}
	a.log.Info("deleted", append(fields, "kept", duration.Format(kept.Round(time.Second)), "lifespan", duration.Format(r.Lifespan))...)
}

func (a *afterlife) about(r volume.Record, more ...any) []any {
	return append(logkeys.About(r, logkeys.Node, a.node, logkeys.Path, filepath.Join(a.workdir, string(r.Pod), string(r.ID))), more...)
}

// flush logs what is still counted, when nothing more comes.
func (a *afterlife) flush() {
	a.kept.flush()
	a.gone.flush()
}
