package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

// The events of a watch.
const (
	added   = "ADDED"
	changed = "CHANGED"
	gone    = "GONE"
)

const (
	// watchPause is the time between two lists of a watch. If a list takes long, the pause is watchShare
	// times as long as that, so that a watch of many volumes does not keep the nodes busy.
	watchPause = 5 * time.Second
	watchShare = 10
)

// watch remembers what the user has seen. Its memory grows with the volumes that are watched, some 300
// bytes for each.
type watch struct {
	*listing
	seen map[types.UID]seen
	seed maphash.Seed
	// round counts the lists.
	round int
	table volumeTable
}

// seen is a volume that was shown.
type seen struct {
	namespace, name string
	// state is a hash of what a user sees of it, except of what depends on the time.
	state uint64
	// round is the last one in which it was listed.
	round int
}

// follow shows the list, and then what is different each time that it is read again, until ctx ends. wait
// waits between two lists.
func (l *listing) follow(ctx context.Context, wait func(context.Context, time.Duration) error) error {
	w := &watch{listing: l, seen: map[types.UID]seen{}, seed: maphash.MakeSeed()}
	for {
		began := l.s.Now()
		switch err := w.look(ctx); {
		case err != nil && w.round > 1 && passing(err):
			l.s.warn(err.Error() + "; asking again")
		case err != nil:
			return err
		}
		if err := wait(ctx, max(watchPause, watchShare*l.s.Now().Sub(began))); err != nil {
			return err
		}
	}
}

// passing reports whether an error of a request may be gone the next time: too many requests, a gateway
// that restarts, a network that is away.
func passing(err error) bool {
	if !errors.As(err, new(*cluster.Explained)) {
		return false // standard output has gone
	}
	if !errors.As(err, new(*api.Error)) {
		return true
	}
	for _, code := range []int{
		http.StatusGone, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	} {
		if verbs.HasCode(err, code) {
			return true
		}
	}
	return false
}

// look reads the list once and shows what is different.
func (w *watch) look(ctx context.Context) error {
	w.round++
	_, incomplete, err := w.each(ctx, func(page []resource.RetainedVolume) error {
		for i := range page {
			if err := w.meet(&page[i]); err != nil {
				return err
			}
		}
		return w.flush()
	})
	// What a node holds that did not answer is not gone.
	if err != nil || incomplete {
		return err
	}
	for _, uid := range w.unseen() {
		known := w.seen[uid]
		delete(w.seen, uid)
		v := resource.RetainedVolume{}
		v.APIVersion, v.Kind = resource.GroupVersion.String(), resource.Kind
		v.Namespace, v.Name, v.UID = known.namespace, known.name, uid
		if err := w.show(gone, &v); err != nil {
			return err
		}
	}
	return w.flush()
}

// unseen returns the volumes that the last list did not have, by their names.
func (w *watch) unseen() (all []types.UID) {
	for uid, known := range w.seen {
		if known.round != w.round {
			all = append(all, uid)
		}
	}
	slices.SortFunc(all, func(a, b types.UID) int {
		return cmp.Or(cmp.Compare(w.seen[a].namespace, w.seen[b].namespace), cmp.Compare(w.seen[a].name, w.seen[b].name))
	})
	return all
}

// meet takes note of a volume that was listed.
func (w *watch) meet(v *resource.RetainedVolume) error {
	state := maphash.String(w.seed, owner(v.Spec.Owner)+"\x00"+size(v))
	known, ok := w.seen[v.UID]
	w.seen[v.UID] = seen{namespace: v.Namespace, name: v.Name, state: state, round: w.round}
	switch {
	case !ok:
		return w.show(added, v)
	case known.state != state:
		return w.show(changed, v)
	}
	return nil
}

// show shows an event.
func (w *watch) show(event string, v *resource.RetainedVolume) error {
	if w.output == outputJSON {
		text, err := json.Marshal(struct {
			Type   string                   `json:"type"`
			Object *resource.RetainedVolume `json:"object"`
		}{event, v})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w.s.Stdout, "%s\n", terminal.JSON(text))
		return err
	}
	if w.table.Table == nil {
		w.table = newVolumeTable(w.s.Stdout, w.s, w.output == outputWide, "EVENT")
	}
	w.table.row(v, event)
	return nil
}

func (w *watch) flush() error {
	if w.table.Table == nil {
		return nil
	}
	return w.table.Flush()
}
