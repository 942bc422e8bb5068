package uplink

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// mostHoldings bounds how many holdings a gateway gets, mostHoldingsInLine how many a line
	// has: a line may have 1 MiB, and a holding takes at most 400 bytes.
	mostHoldings       = 10_000
	mostHoldingsInLine = 2000
)

// summary streams what the node tells without being asked, until the gateway goes. It goes on when the
// connection is to be left: the gateway may take its end for the end of the connection, and cut what
// runs there. It ends the summary itself once it has that of the next connection.
func (c *connection) summary(w http.ResponseWriter, r *http.Request) {
	c.u.summaries.Add(1)
	defer c.u.summaries.Add(-1)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c.replaceSummary(cancel)
	s := newSummary(c, w)
	s.asks = c.u.asks.open(c.gateway)
	defer c.u.asks.close(s.asks)
	s.uploads = c.u.cfg.Uploads.open(c.gateway)
	defer c.u.cfg.Uploads.close(s.uploads)
	// The answers could not come on this connection any more.
	defer context.AfterFunc(c.leaveContext, func() {
		c.u.asks.close(s.asks)
		c.u.cfg.Uploads.close(s.uploads)
	})()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set(api.HeaderNode, c.u.cfg.Node)
	c.askedOnce.Do(func() { close(c.asked) })
	s.run(ctx)
}

// replaceSummary ends the summary that runs: a gateway reads one at a time.
func (c *connection) replaceSummary(cancel context.CancelFunc) {
	c.summaryMu.Lock()
	defer c.summaryMu.Unlock()
	if c.endSummary != nil {
		c.endSummary()
	}
	c.endSummary = cancel
}

// summary is a stream of summaries.
type summary struct {
	u       *Uplink
	asks    *listener
	uploads *listener
	out     *json.Encoder
	control *http.ResponseController
	// told are the holdings as the gateway knows them; full says that it knows them.
	told map[holdingKey]volume.Holding
	full bool
	// archive is what the gateway knows of what waits to be archived; nil if it knows nothing. archiveTold is when it was told.
	archive     *api.ArchiveWaiting
	archiveTold time.Time
	// wrote is when the last line was sent.
	wrote time.Time
}

func newSummary(c *connection, w http.ResponseWriter) *summary {
	control := http.NewResponseController(w)
	return &summary{u: c.u, out: json.NewEncoder(pieces{w, control}), control: control, told: map[holdingKey]volume.Holding{}}
}

// mostPiece is the most that is sent of a line at once, in a frame and a TLS record of its own. For as
// long as a connection lives its gateway keeps room for the largest frame: in one piece, the first line
// of 5,000 nodes would cost it 130 MB.
const mostPiece = 1000

// pieces sends what is written piece by piece.
type pieces struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// Write sends p.
func (s pieces) Write(p []byte) (written int, err error) {
	for piece := range slices.Chunk(p, mostPiece) {
		n, err := s.w.Write(piece)
		if written += n; err != nil {
			return written, err
		}
		if err := s.control.Flush(); err != nil {
			return written, err
		}
	}
	return written, nil
}

type holdingKey struct {
	namespace, uid string
	verdict        volume.Verdict
}

func keyOf(h volume.Holding) holdingKey { return holdingKey{h.Namespace, h.NamespaceUID, h.Verdict} }

// run writes lines until ctx ends or the gateway does not read.
func (s *summary) run(ctx context.Context) {
	look := time.NewTicker(s.u.pace.changes)
	defer look.Stop()
	for ok := s.tellHoldings(ctx); ok; {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			ok = s.tellHoldings(ctx)
		case <-s.asks.ready:
			// Others follow soon: pods come in crowds.
			ok = retry.Pause(ctx, s.u.pace.gather) == nil && s.tellAsks()
		case <-s.uploads.ready:
			words := s.u.cfg.Uploads.take(s.uploads)
			ok = len(words) == 0 || s.write(api.Summary{Uploads: words})
		}
	}
}

// tellAsks sends the asks that wait.
func (s *summary) tellAsks() bool {
	words := s.u.asks.take(s.asks)
	return len(words) == 0 || s.write(api.Summary{Asks: words})
}

// tellHoldings sends what has changed, or the first time all; or a sign of life when it is time for
// that.
func (s *summary) tellHoldings(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, s.u.pace.changes)
	defer cancel()
	all, err := s.u.cfg.Volumes.Holdings(limited)
	if err != nil {
		s.u.cfg.Log.V(1).Info("the gateway is not told what is retained, trying again", logkeys.Cause, err.Error())
		return s.signOfLife()
	}
	changes, waiting := s.changes(all), s.waiting()
	if s.full && len(changes) == 0 && waiting == nil {
		return s.signOfLife()
	}
	for first := true; first || len(changes) > 0; first = false {
		line := api.Summary{Full: !s.full}
		if first {
			line.Archive = waiting
		}
		for _, h := range changes[:min(len(changes), mostHoldingsInLine)] {
			line.Holdings = append(line.Holdings, holding(h))
		}
		if changes = changes[len(line.Holdings):]; !s.write(line) {
			return false
		}
		s.full = true
	}
	return true
}

// waiting returns what waits to be archived, if the gateway does not know that, and notes that it does from now on. The bytes
// alone change all the time, and are told less often.
func (s *summary) waiting() *api.ArchiveWaiting {
	if s.u.cfg.Archive == nil {
		return nil
	}
	is := s.u.cfg.Archive()
	if was := s.archive; was != nil && was.Volumes == is.Volumes && was.Oldest.Equal(is.Oldest) && was.Newest.Equal(is.Newest) &&
		(was.Bytes == is.Bytes || time.Since(s.archiveTold) < s.u.pace.quiet) {
		return nil
	}
	s.archive, s.archiveTold = &is, time.Now()
	return &is
}

func (s *summary) signOfLife() bool {
	return time.Since(s.wrote) < s.u.pace.quiet-s.u.pace.changes || s.write(api.Summary{})
}

// changes returns which holdings the gateway does not know, and notes that it does from now on. One
// that is gone has no volumes.
func (s *summary) changes(all []volume.Holding) (changes []volume.Holding) {
	if len(all) > mostHoldings {
		// The gateway would not take more. The newest are those that people look for.
		all = slices.SortedFunc(slices.Values(all), func(a, b volume.Holding) int { return b.Newest.Compare(a.Newest) })[:mostHoldings]
	}
	now := make(map[holdingKey]volume.Holding, len(all))
	for _, h := range all {
		k := keyOf(h)
		now[k] = h
		if before := s.told[k]; before.Volumes != h.Volumes || !before.Newest.Equal(h.Newest) || !before.Oldest.Equal(h.Oldest) {
			changes = append(changes, h)
		}
	}
	for k, h := range s.told {
		if _, there := now[k]; !there {
			changes = append(changes, volume.Holding{Namespace: h.Namespace, NamespaceUID: h.NamespaceUID, Verdict: h.Verdict})
		}
	}
	s.told = now
	return changes
}

// holding returns a holding in the words of the API.
func holding(h volume.Holding) api.Holding {
	word := api.Holding{Namespace: h.Namespace, NamespaceUID: h.NamespaceUID, Volumes: h.Volumes, Newest: h.Newest, Oldest: h.Oldest}
	if h.Verdict != volume.Unasked {
		word.Verdict = h.Verdict.String()
	}
	return word
}

// write sends a line. It returns false if the gateway does not take it.
func (s *summary) write(line api.Summary) bool {
	line.Time, s.wrote = time.Now(), time.Now()
	// A gateway that does not read ends the stream, which the gateway may begin anew.
	_ = s.control.SetWriteDeadline(time.Now().Add(s.u.pace.stall))
	if s.out.Encode(line) != nil || s.control.Flush() != nil {
		return false
	}
	_ = s.control.SetWriteDeadline(time.Time{})
	return true
}
