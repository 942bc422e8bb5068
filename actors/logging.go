package actors

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// keyActor is the key of an actor's name; the keys that others log as well are those of logkeys.
const keyActor = "actor"

// librarySlog is the actor library's log in our own sink. The library tells at
// Info what belongs to Debug (each start, each dead letter).
func librarySlog(log logr.Logger) *slog.Logger {
	return slog.New(demoting{logr.ToSlogHandler(log.WithName("protoactor"))})
}

// demoting handles Info records as what logr calls V(1), our debug level. slog's
// own Debug is V(4), which not even that shows.
type demoting struct{ slog.Handler }

func demote(level slog.Level) slog.Level {
	if level == slog.LevelInfo {
		return slog.LevelInfo - 1
	}
	return level
}

func (d demoting) Enabled(ctx context.Context, level slog.Level) bool {
	return d.Handler.Enabled(ctx, demote(level))
}

func (d demoting) Handle(ctx context.Context, record slog.Record) error {
	record.Level = demote(record.Level)
	return d.Handler.Handle(ctx, record)
}

func (d demoting) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demoting{d.Handler.WithAttrs(attrs)}
}

func (d demoting) WithGroup(name string) slog.Handler {
	return demoting{d.Handler.WithGroup(name)}
}
