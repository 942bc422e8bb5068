package index

import (
	"cmp"
	"slices"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// See takes over what a resource is. It returns false where the index has something newer.
func (x *Index) See(m *poolmessages.Seen) bool {
	version, key := rules.ResourceVersion(m.Object), goneResource{rules.ResourceKind(m.Object), m.Object.GetName()}
	if last, ok := x.deleted[key]; ok {
		if m.Object.GetDeletionTimestamp() != nil || version != 0 && version <= last {
			return false // it is the one that was deleted
		}
		if !m.ByTask {
			delete(x.deleted, key) // another one of this name, and the watch is past the end of the first
		}
	}
	switch o := m.Object.(type) {
	case *v1alpha1.PoolVolume:
		return x.seeVolume(o, version)
	case *v1alpha1.PoolSnapshot:
		return x.seeSnapshot(o, version)
	case *v1alpha1.PoolAttachment:
		return x.seeAttachment(o, version)
	case *v1alpha1.Pool:
		x.pool(o.Name).Known = true
	}
	return true
}

func (x *Index) seeVolume(o *v1alpha1.PoolVolume, version uint64) bool {
	before := x.volumes[o.Name]
	if before != nil && rules.IsOlder(version, before.version) {
		return false
	}
	v := &Volume{
		version: version, size: o.Status.Capacity.Value(), pool: x.word(o.Spec.PoolName), class: x.word(o.Spec.ClassName), id: o.Status.ID,
		fsType: x.word(o.Spec.FSType),
		Flags: poolmessages.FlagIf(o.Spec.VolumeMode == v1alpha1.Block, poolmessages.FlagBlock) |
			poolmessages.FlagIf(o.Spec.Protocol == v1alpha1.ISCSI, poolmessages.FlagISCSI) |
			poolmessages.FlagIf(o.Spec.Management == v1alpha1.External, poolmessages.FlagExternal) |
			poolmessages.FlagIf(o.DeletionTimestamp != nil, poolmessages.FlagDeleting) |
			poolmessages.FlagIf(rules.UnfinishedVolume(o), poolmessages.FlagUnfinished) |
			poolmessages.FlagIf(o.Status.State == v1alpha1.VolumeReady, poolmessages.FlagReady) |
			poolmessages.FlagIf(o.Status.State == v1alpha1.VolumeFailed, poolmessages.FlagFailed) |
			poolmessages.FlagIf(o.Spec.Protocol == v1alpha1.Local, poolmessages.FlagLocal) |
			poolmessages.FlagIf(o.Status.State == v1alpha1.VolumeRetained || rules.IsEnding(o), poolmessages.FlagRetained),
		Lifespan: rules.LifespanFromSpec(o.Spec.Lifespan), past: x.pastOf(o), export: rules.Hash(o.Status.ExportPath),
		group: rules.Hash(o.Status.GroupID),
	}
	v.Claim, v.request, v.wwid = rules.ClaimUID(o), o.Spec.RequestName, o.Status.WWID
	if s := o.Spec.Source; s != nil {
		v.source = &pools.Source{Snapshot: s.Snapshot, Volume: s.Volume}
	}
	if before == nil {
		x.volumeNames.add(o.Name)
	} else {
		x.leave(o.Name, before)
	}
	x.volumes[o.Name] = v
	p := x.pool(v.pool)
	p.volumes[o.Name] = v
	if key := (diskKey{v.pool, v.wwid}); v.wwid != "" && x.volumes[x.disks[key]] == nil {
		x.disks[key] = o.Name
	}
	*counted(&p.counts, v) += 1
	x.enterAfterlife(o.Name, v)
	return true
}

// leave takes a volume out of its pool.
func (x *Index) leave(name string, v *Volume) {
	p := x.pool(v.pool)
	delete(p.volumes, name)
	*counted(&p.counts, v) -= 1
	if key := (diskKey{v.pool, v.wwid}); v.wwid != "" && x.disks[key] == name {
		delete(x.disks, key)
	}
	x.leaveAfterlife(name, v)
}

// kind of the pool that the volume is in.
func (v *Volume) kind() pools.Kind {
	if v.Flags.Has(poolmessages.FlagLocal) {
		return pools.KindLocal
	}
	return pools.KindArray
}

// counted is the number that counts a volume.
func counted(c *poolmessages.PoolCounts, v *Volume) *int {
	if v.Flags.Has(poolmessages.FlagExternal) {
		return &c.External
	}
	return &c.Managed
}

func (x *Index) seeSnapshot(o *v1alpha1.PoolSnapshot, version uint64) bool {
	before := x.snapshots[o.Name]
	if before != nil && rules.IsOlder(version, before.version) {
		return false
	}
	s := &Snapshot{
		version: version, size: o.Status.Size.Value(), volume: o.Spec.VolumeName, pool: x.word(o.Spec.PoolName), id: o.Status.ID,
		flags: poolmessages.FlagIf(o.Spec.Management == v1alpha1.External, poolmessages.FlagExternal) |
			poolmessages.FlagIf(o.DeletionTimestamp != nil, poolmessages.FlagDeleting) |
			poolmessages.FlagIf(rules.UnfinishedSnapshot(o), poolmessages.FlagUnfinished) |
			poolmessages.FlagIf(o.Status.State == v1alpha1.SnapshotReady, poolmessages.FlagReady) |
			poolmessages.FlagIf(o.Status.State == v1alpha1.SnapshotFailed, poolmessages.FlagFailed),
		group: rules.Hash(o.Status.GroupID),
	}
	if o.Status.CreationTime != nil {
		s.created = o.Status.CreationTime.Unix()
	}
	if before == nil {
		x.snapshotNames.add(o.Name)
	} else {
		x.leaveSnapshot(o.Name, before) // it may be another one of this name
	}
	x.snapshotsOf[s.volume] = append(x.snapshotsOf[s.volume], o.Name)
	countSnapshot(&x.pool(s.pool).counts, s.flags, 1)
	x.snapshots[o.Name] = s
	return true
}

func (x *Index) seeAttachment(o *v1alpha1.PoolAttachment, version uint64) bool {
	before := x.attachments[o.Name]
	if before != nil && rules.IsOlder(version, before.version) {
		return false
	}
	a := &Attachment{
		version: version, created: o.CreationTimestamp.Unix(), volume: o.Spec.VolumeName, Node: x.word(o.Spec.NodeName),
		pool: x.word(o.Spec.PoolName), server: x.word(o.Status.ServerID), address: x.word(o.Status.Address),
		flags: poolmessages.FlagIf(o.Spec.Shared, poolmessages.FlagShared) |
			poolmessages.FlagIf(o.DeletionTimestamp != nil, poolmessages.FlagDeleting) |
			poolmessages.FlagIf(rules.UnfinishedAttachment(o), poolmessages.FlagUnfinished) |
			poolmessages.FlagIf(o.Status.State == v1alpha1.AttachmentReady || o.Status.State == v1alpha1.AttachmentLoginPending,
				poolmessages.FlagReady) |
			poolmessages.FlagIf(o.Status.State == v1alpha1.AttachmentFailed, poolmessages.FlagFailed) |
			poolmessages.FlagIf(o.Spec.Protocol == v1alpha1.ISCSI, poolmessages.FlagISCSI),
		reached: cmp.Or(o.Status.Export, x.word(o.Status.Portal)), target: x.word(o.Status.Target), lun: rules.LUN(o),
	}
	if before != nil {
		x.leaveAttachment(o.Name, before)
	}
	x.attachmentsOf[a.volume] = append(x.attachmentsOf[a.volume], o.Name)
	x.pool(a.pool).counts.Attachments++
	x.attachments[o.Name] = a
	return true
}

// Drop forgets a resource. It returns the pool that it was on.
func (x *Index) Drop(g *poolmessages.Gone) (pool string) {
	key := goneResource{g.Kind, g.Name}
	if _, ok := x.deleted[key]; ok && !g.ByTask {
		delete(x.deleted, key)
		return "" // a task has said so before, and there may be another one of this name
	}
	known, version := false, uint64(0)
	switch g.Kind {
	case poolmessages.PoolVolumeKind:
		if v := x.volumes[g.Name]; v != nil {
			known, version, pool = true, v.version, v.pool
			x.leave(g.Name, v)
			delete(x.volumes, g.Name)
			x.volumeNames.remove(g.Name)
		}
	case poolmessages.PoolSnapshotKind:
		if s := x.snapshots[g.Name]; s != nil {
			known, version, pool = true, s.version, s.pool
			x.leaveSnapshot(g.Name, s)
			delete(x.snapshots, g.Name)
			x.snapshotNames.remove(g.Name)
		}
	case poolmessages.PoolAttachmentKind:
		if a := x.attachments[g.Name]; a != nil {
			known, version, pool = true, a.version, a.pool
			x.leaveAttachment(g.Name, a)
			delete(x.attachments, g.Name)
		}
	case poolmessages.PoolKind:
		x.pool(g.Name).Known = false
		pool = g.Name
	}
	if g.ByTask && known {
		x.deleted[key] = version
	}
	if p := x.pools[pool]; p != nil && !p.Known && p.counts == (poolmessages.PoolCounts{}) {
		delete(x.pools, pool)
	}
	return pool
}

// leaveSnapshot takes a snapshot away from its volume and its pool.
func (x *Index) leaveSnapshot(name string, s *Snapshot) {
	without(x.snapshotsOf, s.volume, name)
	countSnapshot(&x.pool(s.pool).counts, s.flags, -1)
}

// leaveAttachment takes an attachment away from its volume and its pool.
func (x *Index) leaveAttachment(name string, a *Attachment) {
	without(x.attachmentsOf, a.volume, name)
	x.pool(a.pool).counts.Attachments--
}

// countSnapshot counts a snapshot.
func countSnapshot(c *poolmessages.PoolCounts, f poolmessages.Flags, n int) {
	c.Snapshots += n
	if !f.Has(poolmessages.FlagExternal) {
		c.ManagedSnapshots += n
	}
}

func without(of map[string][]string, volume, name string) {
	left := slices.DeleteFunc(of[volume], func(s string) bool { return s == name })
	if len(left) == 0 {
		delete(of, volume)
		return
	}
	of[volume] = left
}
