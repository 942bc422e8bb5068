package ephemeral

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
)

// act is what a person decides about a retained volume.
type act struct {
	verb    string
	id      volume.ID
	by, why string
	// until is when a pin is to end; zero for other verbs.
	until time.Time
}

// decide carries a decision out, and logs it with what became of it.
func (n *Node) decide(ctx context.Context, d act, run func() error) error {
	before, _ := n.Describe(ctx, d.id) // of a volume that is not known, the ID is all there is
	before.Record.ID = d.id
	err := run()
	n.env.audit.decided(before.Record, d, err)
	return err
}

// audit logs what people decide. A flood of refused decisions does not hide the others.
type audit struct {
	log logr.Logger
	// node is the node's name.
	node          string
	done, refused lineLimit
}

func newAudit(cfg Config) *audit {
	a := &audit{log: cfg.Log, node: cfg.Node}
	for _, l := range []*lineLimit{&a.done, &a.refused} {
		l.burst, l.again, l.summaryAfter = afterlifeBurst, afterlifeAgain, afterlifeSummary
	}
	return a
}

// decided logs a decision. err is why it was refused, or failed; nil if it was carried out.
func (a *audit) decided(r volume.Record, d act, err error) {
	if !a.log.Enabled() {
		return
	}
	limit, result, more := &a.done, "done", "more decisions about retained volumes than are logged one by one"
	if err != nil {
		limit, result = &a.refused, volume.OneLine(err)
		more = "more refused decisions about retained volumes than are logged one by one"
	}
	limit.write(func() {
		fields := logkeys.About(r, logkeys.Node, a.node, "verb", d.verb,
			logkeys.User, upTo(d.by, volume.MaxHoldBy), "reason", upTo(d.why, volume.MaxHoldWhy))
		if !d.until.IsZero() {
			fields = append(fields, "until", d.until.UTC().Format(time.RFC3339))
		}
		a.log.Info("a person's decision about a retained volume", append(fields, "result", result)...)
	}, func(count int) { a.log.Info(more, "count", count) })
}

// upTo returns the beginning of a text that is too long to log: it may not have been checked yet.
func upTo(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return text[:bytes] + "..."
}

// flush logs what is still counted, when nothing more comes.
func (a *audit) flush() {
	a.done.flush()
	a.refused.flush()
}
