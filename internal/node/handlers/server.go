package handlers

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/go-logr/logr"
)

const (
	// headerLimit is how long a client may take to send a request, idleLimit how long a connection
	// may be silent between two.
	headerLimit = 5 * time.Second
	idleLimit   = 30 * time.Second
	// mostHeader bounds the header of a request: a path of 4,096 bytes, each encoded in three, and
	// patterns to exclude.
	mostHeader = 64 << 10
)

// NewServer returns a server for the handler, with limits for clients that do not finish what they
// begin. Handlers set their own limits for the time of an answer.
func NewServer(h http.Handler, log logr.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit, MaxHeaderBytes: mostHeader,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(log.WithName("admin")), slog.LevelInfo),
	}
}
