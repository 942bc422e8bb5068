package uplink

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/lib/logkeys"
	poolwire "github.com/katbox/katbox/internal/link/wire"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/local"
)

// forController answers a request of a controller.
func (c *connection) forController(pools http.Handler, w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == api.SummaryPath:
		c.only(http.MethodGet, w, r, c.tellPools)
	case path == poolwire.Path, strings.HasPrefix(path, poolwire.Path+"/"):
		pools.ServeHTTP(w, r)
	default:
		api.WriteError(w, api.NewError(api.NotFound, "there is nothing for a controller at %q", path))
	}
}

// tellPools streams which pools the node has, until the controller goes; see [connection.summary].
func (c *connection) tellPools(w http.ResponseWriter, r *http.Request) {
	c.u.summaries.Add(1)
	defer c.u.summaries.Add(-1)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c.replaceSummary(cancel)
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set(api.HeaderNode, c.u.cfg.Node)
	c.askedOnce.Do(func() { close(c.asked) })
	control := http.NewResponseController(w)
	s := &poolsTold{u: c.u, out: json.NewEncoder(pieces{w, control}), control: control}
	look := time.NewTicker(c.u.pace.changes)
	defer look.Stop()
	for s.tell(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// poolsTold is a stream of summaries of pools.
type poolsTold struct {
	u       *Uplink
	out     *json.Encoder
	control *http.ResponseController
	// told are the pools as the controller knows them; full says that it knows them.
	told  []local.Pool
	full  bool
	wrote time.Time
}

// tell sends all pools if they have changed, else a sign of life when it is time for one. It returns false if the
// controller does not take it. How full a disk is makes no news: the controller asks for that.
func (s *poolsTold) tell(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, s.u.pace.changes)
	defer cancel()
	all, err := s.u.cfg.Pools.Pools(limited)
	if err == nil && len(all) > poolwire.MostPools {
		s.u.cfg.Log.Info("the node has more pools than a controller takes", "pools", len(all), "taken", poolwire.MostPools)
		all = all[:poolwire.MostPools]
	}
	switch {
	case err != nil:
		s.u.cfg.Log.V(1).Info("the controller is not told which pools there are, trying again", logkeys.Cause, err.Error())
	case !s.full || !slices.EqualFunc(s.told, all, poolwire.SamePool):
		s.told, s.full = slices.Clone(all), true
		return s.write(poolwire.Summary{Full: true, Pools: all})
	}
	return time.Since(s.wrote) < s.u.pace.quiet-s.u.pace.changes || s.write(poolwire.Summary{})
}

// write sends a line. It returns false if the controller does not take it.
func (s *poolsTold) write(line poolwire.Summary) bool {
	line.Time, s.wrote = time.Now(), time.Now()
	_ = s.control.SetWriteDeadline(time.Now().Add(s.u.pace.stall))
	if s.out.Encode(line) != nil || s.control.Flush() != nil {
		return false
	}
	_ = s.control.SetWriteDeadline(time.Time{})
	return true
}
