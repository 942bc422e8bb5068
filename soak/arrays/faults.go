package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/daemon"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
)

// fault is something that goes wrong for a while.
type fault struct {
	name string
	// begin and end are what happens to the array; end is empty where it ends by itself.
	begin, end order
	// least and most are how long it lasts.
	least, most time.Duration
	// killed are the programs that are killed meanwhile, and started again.
	killed func(*programs) []*daemon.Binary
}

// order is a request to the array.
type order struct{ method, path, body string }

// rest makes some requests to the array fail in one way; what is submitted is carried out after 5 s.
func rest(kind string) fault {
	return fault{
		name: kind, least: time.Second, most: 4 * time.Second,
		begin: order{http.MethodPost, "faults", fmt.Sprintf(`{"kind":%q,"times":3,"skip":2,"delay":"5s"}`, kind)},
		end:   order{http.MethodDelete, "faults", ""},
	}
}

func away(how string) fault {
	return fault{
		name: "away: " + how, least: 2 * time.Second, most: 14 * time.Second,
		begin: order{http.MethodPost, "away", fmt.Sprintf(`{"how":%q}`, how)}, end: order{http.MethodPost, "back", ""},
	}
}

var faults = []fault{
	rest("lose-answer"), rest("lose-request"), rest("hang"), rest("hang-after"), rest("http"), rest("submit"),
	{
		name: "token revoked", least: time.Second, most: 6 * time.Second,
		begin: order{http.MethodPatch, "settings", `{"token":"another"}`}, end: order{http.MethodPatch, "settings", `{"token":"` + token + `"}`},
	},
	away("network"), away("down"),
	{name: "portal moved", begin: order{http.MethodPost, "switch", ""}},
	{name: "daemon killed", killed: func(p *programs) []*daemon.Binary { return []*daemon.Binary{p.daemon} }},
	{name: "controller killed", killed: func(p *programs) []*daemon.Binary { return []*daemon.Binary{p.controller} }},
	{name: "both killed", killed: func(p *programs) []*daemon.Binary { return []*daemon.Binary{p.daemon, p.controller} }},
}

// breakThings has one fault after the other, each kind once in a round, until breaking ends. Each is mended.
func (r *run) breakThings(breaking, whole context.Context) {
	random := rand.New(rand.NewPCG(r.o.seed, 1<<63))
	for breaking.Err() == nil {
		for _, n := range random.Perm(len(faults)) {
			f := faults[n]
			length := f.least + time.Duration(random.Int64N(int64(f.most-f.least)+1))
			calm := time.Duration(500+random.IntN(2500)) * time.Millisecond
			if pause.For(breaking, calm) != nil {
				return
			}
			r.found.say("%s, for %s", f.name, length.Round(time.Millisecond))
			if err := r.befall(whole, f, length); err != nil && whole.Err() == nil {
				r.found.broken(history.Lives, nil, "%s: %v", f.name, err)
				return
			}
		}
	}
}

// befall has one fault begin and end.
func (r *run) befall(ctx context.Context, f fault, length time.Duration) error {
	if f.killed != nil {
		return restart(ctx, f.killed(r.programs))
	}
	if err := r.array.order(ctx, f.begin.method, f.begin.path, f.begin.body); err != nil {
		return err
	}
	if f.end == (order{}) {
		return nil
	}
	_ = pause.For(ctx, length)
	return r.array.order(ctx, f.end.method, f.end.path, f.end.body)
}

// restart kills programs together, and starts them again.
func restart(ctx context.Context, killed []*daemon.Binary) error {
	for _, one := range killed {
		one.Kill()
	}
	failed := make([]error, len(killed))
	var all sync.WaitGroup
	for i, one := range killed {
		all.Go(func() { failed[i] = one.Start(ctx) })
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}
