package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	corev1 "k8s.io/api/core/v1"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// comparison compares what is on an array with the resources. It changes nothing on the array.
//
// It goes on beside operations. So what it finds missing on one side is looked at again there before it
// believes that: a task writes the resource of a volume before the volume is made, and removes it after
// the volume was deleted.
type comparison struct {
	*env.Environment
	pool   *v1alpha1.Pool
	array  array.Array
	poolID string
	// byID and byName are the PoolVolumes of the pool; seen are those whose volume was listed.
	byID, byName map[string]poolmessages.Content
	seen         map[string]bool
	// ofGroup is the PoolVolume of a consistency group.
	ofGroup map[string]string
	// servers are where the volumes with attachments are attached on the array, exports where they are mounted from.
	servers  map[string][]string
	exports  map[string]string
	attached map[string]bool
	// portal is the array's. from is the attachment over iSCSI that the array was asked about last.
	portal, from string
	// refused are the IDs of what cannot be imported, each of which is told once.
	refused map[string]bool
	// encrypts: there are encrypted volumes.
	encrypts bool
	findings
}

// findings is what a comparison has found.
type findings struct {
	// volumes and snapshots became ours again, external ones got a resource, missing ones are gone from
	// the array.
	volumes, snapshots, external, missing int
}

func (f findings) String() string {
	return fmt.Sprintf("imported %d volumes and %d snapshots again, and %d volumes and snapshots of others; %d are missing",
		f.volumes, f.snapshots, f.external, f.missing)
}

// synced is what came of a comparison.
type synced struct {
	generation int64
	findings
	// from is the attachment that the array was asked about last, portal the array's.
	from     string
	portal   string
	encrypts bool
}

// startSync compares what is on the array with the resources: once before the pool takes volumes, and
// every few minutes from then on.
func (p *poolActor) startSync(c actor.Context) {
	due := !p.imported.ok() || p.syncedAt.IsZero() || p.comparedAt != p.last.health.Portal || time.Since(p.syncedAt) >= p.SyncInterval
	if !due || p.syncing.Runs() || p.probing.Runs() || p.failures > 0 || p.ended || p.object.DeletionTimestamp != nil ||
		!p.reachable.ok() || !p.compatible.ok() || !p.configured.ok() {
		return
	}
	x := &comparison{
		Environment: p.Environment, pool: p.object, array: p.client, poolID: p.last.on.ID, refused: p.refused,
		portal: p.last.health.Portal, from: p.lookedAt,
	}
	// Where no worker takes it, the next probe tries again.
	_ = p.syncing.Begin(p.System, c.Self(), &workEnded{}, func() (synced, error) {
		defer p.Comparisons.Take(p.Context)()
		err := x.run(p.Context)
		return synced{findings: x.findings, from: x.from, portal: x.portal, encrypts: x.encrypts, generation: x.pool.Generation}, err
	})
}

// synced takes over what came of a comparison.
func (p *poolActor) synced(c actor.Context, s synced, err error) {
	p.dirty, p.lookedAt, p.encrypts = true, s.from, p.encrypts || s.encrypts
	p.judge()
	if p.Context.Err() != nil || p.ended {
		return
	}
	if err != nil {
		if !p.imported.ok() {
			p.imported = bad("ImportFailed", volume.OneLine(err))
		}
		p.Log.Error(err, "a pool cannot be compared with its resources", "pool", p.name)
		if errors.Is(err, array.ErrUnreachable) {
			p.doubted = true
			p.probeNow(c)
		}
		return
	}
	p.syncedAt, p.comparedAt = time.Now(), s.portal
	if s.findings != (findings{}) {
		kind := corev1.EventTypeNormal
		if s.missing > 0 {
			kind = corev1.EventTypeWarning
		}
		p.Resources.Events.Event(p.object, kind, "Imported", s.String())
	}
	if s.generation != p.object.Generation {
		p.probeNow(c)
		return
	}
	if !p.imported.ok() {
		p.imported = good("Imported")
	}
	if s.findings != (findings{}) {
		p.probeNow(c) // for the counters
	}
}

// nameTaken tells that a volume or a snapshot gets no resource, because another one has its name.
func (x *comparison) nameTaken(kind, id, name, has string) {
	if x.refused[id] {
		return
	}
	x.refused[id] = true
	x.Resources.Events.Event(x.pool, corev1.EventTypeWarning, "NotImported",
		fmt.Sprintf("%s %s (%s) has no resource, because %s; rename it on the %s", kind, name, id, has,
			rules.Medium(rules.KindOfPool(x.pool))))
}

// run compares all.
func (x *comparison) run(ctx context.Context) error {
	there, err := actors.Ask(ctx, x.Root, x.Supervisor(), &poolmessages.ListPool{Name: x.pool.Name})
	if err != nil {
		return err
	}
	x.prepare(there)
	var strangers []array.Volume
	err = x.array.Volumes(ctx, func(page []array.Volume) error {
		for i := range page {
			if err := x.listed(ctx, &page[i], &strangers); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the volumes: %w", err)
	}
	for i := range strangers {
		if err := x.adopt(ctx, &strangers[i]); err != nil {
			return err
		}
	}
	for _, v := range there.Volumes {
		if err := x.missingVolume(ctx, v); err != nil {
			return err
		}
	}
	if err := x.snapshotsOf(ctx, there.Snapshots); err != nil {
		return err
	}
	return x.attachmentsOf(ctx, there.Attachments)
}

func (x *comparison) prepare(there poolmessages.Contents) {
	x.byID, x.byName = make(map[string]poolmessages.Content, len(there.Volumes)), make(map[string]poolmessages.Content, len(there.Volumes))
	x.seen, x.ofGroup, x.servers, x.attached = map[string]bool{}, map[string]string{}, map[string][]string{}, map[string]bool{}
	x.exports = map[string]string{}
	for _, v := range there.Volumes {
		x.byName[v.Name] = v
		if v.ID != "" {
			x.byID[v.ID] = v
		}
	}
	for _, a := range there.Attachments {
		x.attached[a.Volume] = true
	}
}

// listed looks at one volume of the array. Volumes in other pools are none of this Pool's, unless they were moved there.
func (x *comparison) listed(ctx context.Context, v *array.Volume, strangers *[]array.Volume) error {
	x.encrypts = x.encrypts || v.Encrypted
	known, ok := x.byID[v.ID]
	if !ok {
		if v.PoolID == x.poolID && x.wants(v) {
			*strangers = append(*strangers, *v)
		}
		return nil
	}
	x.seen[v.ID] = true
	if v.Group != "" {
		x.ofGroup[v.Group] = known.Name
	}
	if x.attached[known.Name] {
		x.servers[known.Name], x.exports[known.Name] = append([]string{}, v.Servers...), v.Export
	}
	grown, differs := known.Size != v.Size.Bytes(), hasChanged(known, v)
	switch f := known.Flags; {
	case f.Has(poolmessages.FlagReady) && (grown || differs), f.Has(poolmessages.FlagRetained) && differs, f.Has(poolmessages.FlagFailed) &&
		v.Usable:
		return x.refresh(ctx, known.Name, v)
	}
	return nil
}
