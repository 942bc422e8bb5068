package index

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// Index is what is known of all resources, in little memory: there may be hundreds of thousands. The
// watches feed it, and each task that changes a resource does at once, so that no decision hangs on a
// watch event that is late. Only the supervisor's turn uses it.
type Index struct {
	volumes     map[string]*Volume
	snapshots   map[string]*Snapshot
	attachments map[string]*Attachment
	// pools are those that have a Pool, or volumes.
	pools map[string]*Pool
	// snapshotsOf and attachmentsOf are the names of those of a volume.
	snapshotsOf, attachmentsOf map[string][]string
	volumeNames, snapshotNames names
	// nodes are how nodes appear to arrays, as their PoolNodes say.
	nodes map[string]poolmessages.NodeAddress
	// deleted are resources that a task has deleted and whose end no watch has reported yet, with the
	// last version that was known: what is older than their end says nothing.
	deleted map[goneResource]uint64
	// UUIDOf returns the UUID of a pool on a node.
	UUIDOf func(pool string) string
	// words are strings that many resources share.
	words map[string]string
	// ofClaim are volumes by the UID of their claim, requested those that have another name than the one by
	// which CSI asked for them last, and retained those whose claims are gone.
	ofClaim, requested map[string]string
	// disks are the volumes whose disks are known, by what they are known by.
	disks    map[diskKey]string
	retained map[string]*Volume
}

type goneResource struct{ kind, name string }

// Pool are the resources on one pool.
type Pool struct {
	// Known: there is a Pool of that name.
	Known   bool
	volumes map[string]*Volume
	counts  poolmessages.PoolCounts
}

// Volume is what is known of a PoolVolume.
type Volume struct {
	version         uint64
	size            int64
	pool, class, id string
	fsType          string
	// wwid is what its disk is known by; empty where that is its ID.
	wwid   string
	source *pools.Source
	Flags  poolmessages.Flags
	// Lifespan is what the resource says; [NoLifespan] where it says nothing.
	Lifespan time.Duration
	// Claim is the UID of the claim that it was made for; request the name by which CSI asked for it last,
	// where that is not the volume's.
	Claim, request string
	// past is what a retained volume was, or one that was given to another claim; nil for others.
	past *poolmessages.Past
	// export and group are hashes of what the resource repeats of the array.
	export, group uint32
}

// Snapshot is what is known of a PoolSnapshot.
type Snapshot struct {
	version          uint64
	size             int64
	created          int64
	volume, pool, id string
	flags            poolmessages.Flags
	// group is a hash of what the resource repeats of the array.
	group uint32
}

// Attachment is what is known of a PoolAttachment.
type Attachment struct {
	version            uint64
	created            int64
	volume, Node, pool string
	// server is the ID of the node's record on the array.
	server string
	// address is the node's that the array lets in; empty where that does not matter, or is not known.
	address string
	flags   poolmessages.Flags
	// reached is where the node reaches the volume, over NFS or iSCSI, target and lun what it finds there.
	reached, target string
	lun             int
}

// New returns an index of no resources.
func New() *Index {
	return &Index{
		volumes: map[string]*Volume{}, snapshots: map[string]*Snapshot{}, attachments: map[string]*Attachment{},
		pools: map[string]*Pool{}, snapshotsOf: map[string][]string{}, attachmentsOf: map[string][]string{},
		nodes: map[string]poolmessages.NodeAddress{}, deleted: map[goneResource]uint64{}, words: map[string]string{},
		UUIDOf:  func(string) string { return "" },
		disks:   map[diskKey]string{},
		ofClaim: map[string]string{}, requested: map[string]string{}, retained: map[string]*Volume{},
	}
}

// word returns s in the memory of the first string like it.
func (x *Index) word(s string) string {
	if shared, ok := x.words[s]; ok {
		return shared
	}
	s = strings.Clone(s)
	x.words[s] = s
	return s
}

func (x *Index) pool(name string) *Pool {
	p := x.pools[name]
	if p == nil {
		p = &Pool{volumes: map[string]*Volume{}}
		x.pools[x.word(name)] = p
	}
	return p
}

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

// names are sorted names. They are sorted at the first question and kept so from then on.
type names struct {
	sorted []string
	valid  bool
}

func (n *names) add(name string) {
	if !n.valid {
		return
	}
	if i, found := slices.BinarySearch(n.sorted, name); !found {
		n.sorted = slices.Insert(n.sorted, i, name)
	}
}

func (n *names) remove(name string) {
	if i, found := slices.BinarySearch(n.sorted, name); n.valid && found {
		n.sorted = slices.Delete(n.sorted, i, i+1)
	}
}

// after returns the names that come after one.
func after[V any](n *names, all map[string]V, last string) []string {
	if !n.valid {
		n.sorted, n.valid = slices.Sorted(maps.Keys(all)), true
	}
	i, found := slices.BinarySearch(n.sorted, last)
	if found {
		i++
	}
	return n.sorted[i:]
}

// moved reports whether a volume is attached for an address that its node does not have any more.
func (x *Index) moved(a *Attachment) bool {
	address := x.nodes[a.Node].Address
	return a.address != "" && address != "" && a.address != address && a.flags.Has(poolmessages.FlagReady) &&
		!a.flags.Has(poolmessages.FlagDeleting)
}

// Unfinished reports whether something is left to do for a resource.
func (x *Index) Unfinished(kind, name string) (volume.ID, bool) {
	switch kind {
	case poolmessages.PoolVolumeKind:
		v := x.volumes[name]
		return messages.KeyOf(rules.KindVolume, name), v != nil && v.Flags.Has(poolmessages.FlagUnfinished)
	case poolmessages.PoolSnapshotKind:
		s := x.snapshots[name]
		return messages.KeyOf(rules.KindSnapshot, name), s != nil && s.flags.Has(poolmessages.FlagUnfinished)
	case poolmessages.PoolAttachmentKind:
		a := x.attachments[name]
		return messages.KeyOf(rules.KindAttachment, name), a != nil && (a.flags.Has(poolmessages.FlagUnfinished) || x.moved(a))
	}
	return "", false
}

// AllUnfinished returns all resources with something left to do.
func (x *Index) AllUnfinished() (ids []volume.ID) {
	for name, v := range x.volumes {
		if v.Flags.Has(poolmessages.FlagUnfinished) {
			ids = append(ids, messages.KeyOf(rules.KindVolume, name))
		}
	}
	for name, s := range x.snapshots {
		if s.flags.Has(poolmessages.FlagUnfinished) {
			ids = append(ids, messages.KeyOf(rules.KindSnapshot, name))
		}
	}
	for name, a := range x.attachments {
		if a.flags.Has(poolmessages.FlagUnfinished) || x.moved(a) {
			ids = append(ids, messages.KeyOf(rules.KindAttachment, name))
		}
	}
	return ids
}

// Volume returns what is known of a volume; nil where there is none.
func (x *Index) Volume(name string) *Volume { return x.volumes[name] }

// VolumeOfClaim returns the name of the volume that was made for a claim with a UID; empty where there is none.
func (x *Index) VolumeOfClaim(uid string) string { return x.ofClaim[uid] }

// RequestedAs returns the volume that has another name than the one by which CSI asked for it last; empty where there is none.
func (x *Index) RequestedAs(request string) string { return x.requested[request] }

// HasPool reports whether there is a Pool of a name.
func (x *Index) HasPool(name string) bool {
	p := x.pools[name]
	return p != nil && p.Known
}

// NodeOf returns the node of an attachment; empty where it is not known.
func (x *Index) NodeOf(attachment string) string {
	if a := x.attachments[attachment]; a != nil {
		return a.Node
	}
	return ""
}

// SetNode notes how a node appears to arrays. It returns the attachments that are for an address which the node had before.
func (x *Index) SetNode(name string, at poolmessages.NodeAddress) (moved []string) {
	before := x.nodes[name]
	x.nodes[x.word(name)] = at
	if at.Address == before.Address {
		return nil
	}
	for attachment, a := range x.attachments {
		if a.Node == name && x.moved(a) {
			moved = append(moved, attachment)
		}
	}
	return moved
}

// ForgetNode forgets how a node appears to arrays.
func (x *Index) ForgetNode(name string) { delete(x.nodes, name) }
