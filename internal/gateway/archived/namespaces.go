package archived

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// mostNamespaces bounds the namespaces in the bucket that are known for lists: with the deleted ones, more than most clusters have.
	mostNamespaces = 20_000
	// lookLimit bounds one look, and retryEvery is the time until the next one where it failed.
	lookLimit  = 30 * time.Second
	retryEvery = 10 * time.Second
	// syncEvery is the time between two looks whether the namespaces of the cluster are known, at the start.
	syncEvery = 200 * time.Millisecond
	// trial is the end of the key of the object that is written as a trial.
	trial = "trial"
)

// follow looks up which namespaces the bucket has, and at first what the store heeds, until ctx ends.
func (a *Archive) follow(ctx context.Context) {
	for !a.cfg.Namespaces.Synced() { // what names the cluster comes with them
		if retry.Pause(ctx, syncEvery) != nil {
			return
		}
	}
	probed := false
	for said := ""; ctx.Err() == nil; {
		err := a.look(ctx)
		if err == nil && !probed {
			err = a.probe(ctx)
			probed = err == nil
		}
		a.cfg.Metrics.BucketUp(err == nil)
		pause := lookEvery
		why := ""
		if err != nil {
			pause, why = retryEvery, volume.OneLine(err)
		}
		switch {
		case ctx.Err() != nil:
			return
		case why != "" && said == "":
			a.cfg.Log.Error(err, "the bucket of the archive cannot be used; nothing is archived, read there or deleted until it can")
		case why == "" && said != "":
			a.cfg.Log.Info("the bucket of the archive can be used again", logkeys.Cause, said)
		}
		said = why
		if retry.Pause(ctx, retry.Around(pause)) != nil {
			return
		}
	}
}

// probe finds out whether the bucket can be written, and what the store makes of signatures.
func (a *Archive) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	cluster, err := a.Cluster()
	if err != nil {
		return err
	}
	heeds, err := a.cfg.Bucket.Probe(ctx, form.ClusterPrefix(cluster)+trial)
	if err != nil {
		return err
	}
	a.cfg.Metrics.ChecksumsHeeded(heeds.Checksum)
	a.cfg.Log.Info("the bucket of the archive can be used", "checksums", heeds.Checksum, "lengths", heeds.Length)
	if !heeds.Checksum {
		a.cfg.Log.Info("the store does not compare objects with the checksums that are signed: who steals a URL can write other bytes for " +
			"five minutes; the checksums in the index of a volume show that when it is read")
	}
	return nil
}

// look looks up which namespaces the bucket has.
func (a *Archive) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	cluster, err := a.Cluster()
	if err != nil {
		return err
	}
	uids := map[string]bool{}
	err = a.namespaces(ctx, cluster, func(uid string) error {
		if len(uids) == mostNamespaces {
			return errStop
		}
		uids[uid] = true
		return nil
	})
	truncated := errors.Is(err, errStop)
	if err != nil && !truncated {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if truncated && !a.truncated {
		a.cfg.Log.Info("the archive has more namespaces than a list of all looks at; that of one namespace that exists is complete",
			"most", mostNamespaces)
	}
	a.uids, a.truncated = uids, truncated
	// What was signed may be uploaded in the next five minutes.
	maps.DeleteFunc(a.expected, func(uid string, _ bool) bool { return uids[uid] })
	return nil
}

// namespaces calls fn with the UIDs of all namespaces in the bucket, however many, until it returns an error.
func (a *Archive) namespaces(ctx context.Context, cluster string, fn func(uid string) error) error {
	prefix := form.ClusterPrefix(cluster)
	for q := (bucket.Query{Prefix: prefix, Delimiter: "/"}); ; {
		page, err := a.page(ctx, q)
		if err != nil {
			return err
		}
		for _, p := range page.Prefixes {
			if err := fn(strings.TrimSuffix(strings.TrimPrefix(p, prefix), "/")); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		q.After = page.Last()
	}
}

// Expect takes note that the namespace with that UID will have an index. If it is never uploaded, that namespace is looked through in
// vain.
func (a *Archive) Expect(namespaceUID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.expected) < mostNamespaces {
		a.expected[namespaceUID] = true
	}
}

// Missing returns true while it is not known which namespaces the bucket has.
func (a *Archive) Missing() (fleet.Missing, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fleet.Missing{Node: fleet.Archived, Reason: fleet.NotListed}, a.uids == nil
}

// With returns the namespaces of the bucket that are selected.
func (a *Archive) With(w fleet.Where) []fleet.Node {
	var parts []fleet.Node
	for _, uid := range a.selected(w) {
		parts = append(parts, &tenant{archive: a, uid: uid})
	}
	return parts
}

// selected returns the UIDs of the namespaces that are selected. That of a namespace that exists need not be known.
func (a *Archive) selected(w fleet.Where) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var uids []string
	if w.UID != "" {
		uids = append(uids, w.UID)
	}
	if !w.All && w.Name == "" {
		return uids
	}
	known := maps.Clone(a.expected)
	maps.Copy(known, a.uids)
	for uid := range known {
		_, exists := a.cfg.Namespaces.OfUID(uid)
		if uid != w.UID && (w.All || !exists && !a.found.differs(uid, w.Name)) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// skipFor is how long a bucket is not asked for lists that has just not answered: else each list would wait for it.
const skipFor = 5 * time.Second

// reachable returns why the bucket is not asked just now; nil if it is.
func (a *Archive) reachable() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.away != nil && a.now().Sub(a.since) < skipFor {
		return a.away
	}
	return nil
}

// answered takes note of whether the bucket has answered a list.
func (a *Archive) answered(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.away = nil
	case errors.Is(err, bucket.ErrAway) && !errors.Is(err, context.Canceled):
		a.away, a.since = err, a.now()
	}
}
