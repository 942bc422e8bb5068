package index

import (
	"strings"
	"time"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
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
