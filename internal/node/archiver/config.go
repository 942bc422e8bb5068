package archiver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/metrics"
)

// Volumes are the volumes of the node.
type Volumes interface {
	// ToArchive returns which volume is archived next, and what waits. The volumes of not do not count; those of later count,
	// and are not next. The caller does not change either any more.
	ToArchive(ctx context.Context, not, later map[volume.ID]struct{}) (volume.Waiting, error)
	// ReadToArchive begins to read a volume. archived records until when the archive has a copy of what was read.
	ReadToArchive(ctx context.Context, id volume.ID) (
		reading *files.Reading, archived func(ctx context.Context, until time.Time) error, err error)
}

// Asker asks any gateway for a URL, until ctx ends; after again it asks once more.
type Asker interface {
	Ask(ctx context.Context, word api.UploadAsk, again time.Duration) (api.UploadAnswer, error)
}

// Config is what an Archiver works with. Log may be zero.
type Config struct {
	Volumes Volumes
	Gateway Asker
	// Client sends requests to the bucket; see [NewClient]. Insecure allows URLs without TLS.
	Client   *http.Client
	Insecure bool
	// Rate is how many bytes of volumes are read in a second, 0 for any number. Max is how large the tar of a volume may be; 0
	// for as large as an archive can be.
	Rate, Max int64
	// Describe describes a volume in the words of the API.
	Describe func(volume.Description) api.Volume
	// LowPriority lowers the I/O priority of the calling goroutine until end is called.
	LowPriority func() (end func())
	Metrics     *metrics.Metrics
	Log         logr.Logger
}

// check names the first field that is missing.
func (c Config) check() error {
	for _, field := range []struct {
		name string
		ok   bool
	}{
		{"Volumes", c.Volumes != nil}, {"Gateway", c.Gateway != nil}, {"Client", c.Client != nil}, {"Describe", c.Describe != nil},
		{"LowPriority", c.LowPriority != nil}, {"Metrics", c.Metrics != nil},
	} {
		if !field.ok {
			return fmt.Errorf("archiver: Config.%s is missing", field.name)
		}
	}
	return nil
}

// pace sets the times of an Archiver; tests shorten them.
type pace struct {
	// look is the longest time between two looks at what waits, gather the shortest.
	look, gather time.Duration
	// ask bounds how long an ask for a URL waits for its answer, again is after how long it is repeated.
	ask, again time.Duration
	// upload bounds an upload, and least is how many bytes the bucket has to take in each second beyond that.
	upload time.Duration
	least  time.Duration // as a divisor of them
	// tries is how often an object is tried in a row, try the waits between.
	tries int
	try   retry.Backoff
	// volume are the waits before a volume is tried again, all those before any is after failures in a row, and before that one is if the
	// failure may concern all.
	volume, all retry.Backoff
	// note bounds how long it takes to record that a volume is archived.
	note time.Duration
}

var usualPace = pace{
	look: 15 * time.Second, gather: 100 * time.Millisecond,
	ask: time.Minute, again: 20 * time.Second, upload: time.Minute, least: 256 << 10,
	tries: 4, try: retry.Backoff{First: time.Second, Longest: 10 * time.Second, Jitter: 0.5},
	volume: retry.Backoff{First: 10 * time.Second, Longest: 10 * time.Minute, Jitter: 0.5},
	all:    retry.Backoff{First: time.Second, Longest: time.Minute, Jitter: 0.5},
	note:   30 * time.Second,
}
