package pools

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/controller/array"
)

// memArray is an array in memory that keeps the promises of [array.Array].
type memArray struct {
	mu          sync.Mutex
	next        int
	room        array.Size
	volumes     map[string]array.Volume
	snapshots   map[string]array.Snapshot
	servers     map[string]array.Server
	attachments map[attachedTo]array.Attachment
	// grown counts how often a volume has grown.
	grown map[string]int
	// slow: new volumes and snapshots cannot be used at first.
	slow bool
	// shared: a volume that goes leaves no room, because snapshots share its blocks.
	shared bool
}

type attachedTo struct{ volume, server string }

func newMemArray() *memArray {
	return &memArray{
		room: 1000 * array.GiB, volumes: map[string]array.Volume{}, snapshots: map[string]array.Snapshot{}, servers: map[string]array.Server{},
		attachments: map[attachedTo]array.Attachment{}, grown: map[string]int{},
	}
}

func (a *memArray) id(kind string) string {
	a.next++
	return fmt.Sprintf("%s-%08x", kind, a.next)
}

func sorted[V any](m map[string]V) []V {
	all := make([]V, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[id])
	}
	return all
}

func (a *memArray) Health(context.Context) (array.Health, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return array.Health{
		Version: "22.06-sp1-123", IQN: "iqn.2011-04.com.zadara:mem", Portal: "10.0.0.9:3260", CHAP: array.CHAP{User: "u", Secret: "s"},
		Pools: []array.Pool{{ID: "pool-00000001", Name: "pool", Total: a.room.Bytes(), Available: a.room.Bytes()}},
	}, nil
}

func (a *memArray) Configure(context.Context) ([]string, error) { return nil, nil }

// view is a volume with what follows from others; mu is held.
func (a *memArray) view(v array.Volume) array.Volume {
	for at := range a.attachments {
		if at.volume == v.ID {
			v.Servers = append(v.Servers, at.server)
		}
	}
	slices.Sort(v.Servers)
	for _, s := range a.snapshots {
		v.HasSnapshots = v.HasSnapshots || s.VolumeID == v.ID
	}
	return v
}

func (a *memArray) Volumes(_ context.Context, visit func([]array.Volume) error) error {
	a.mu.Lock()
	var all []array.Volume
	for _, v := range sorted(a.volumes) {
		all = append(all, a.view(v))
	}
	a.mu.Unlock()
	return visit(all)
}

func (a *memArray) Snapshots(_ context.Context, visit func([]array.Snapshot) error) error {
	a.mu.Lock()
	all := sorted(a.snapshots)
	a.mu.Unlock()
	return visit(all)
}

func (a *memArray) Servers(context.Context) ([]array.Server, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return sorted(a.servers), nil
}

func (a *memArray) Volume(_ context.Context, id string) (array.Volume, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.volumes[id]
	if !ok {
		return v, array.ErrNotFound
	}
	return a.view(v), nil
}

func (a *memArray) VolumeNamed(_ context.Context, name string) (array.Volume, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.named(name)
}

func (a *memArray) named(name string) (array.Volume, error) {
	for _, v := range a.volumes {
		if v.Name == name {
			return a.view(v), nil
		}
	}
	return array.Volume{}, array.ErrNotFound
}

// add makes a volume, if there is room.
func (a *memArray) add(v array.Volume) (array.Volume, error) {
	if have, err := a.named(v.Name); err == nil {
		return have, nil
	}
	if v.Size > a.room {
		return v, array.ErrNoRoom
	}
	a.room -= v.Size
	v.ID, v.Group, v.Status, v.Usable = a.id("volume"), a.id("cg"), "Available", !a.slow
	if !v.Block {
		v.Export = "10.0.0.9:/export/" + v.Name
	}
	a.volumes[v.ID] = v
	return a.view(v), nil
}

func (a *memArray) CreateVolume(_ context.Context, n array.NewVolume) (array.Volume, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.add(array.Volume{Name: n.Name, PoolID: n.PoolID, Comment: n.Comment, Size: n.Size, Block: n.Block})
}

func (a *memArray) CloneVolume(_ context.Context, c array.NewClone) (array.Volume, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, v := range a.volumes {
		if v.Group == c.Group {
			if s, ok := a.snapshots[c.SnapshotID]; c.SnapshotID != "" && (!ok || s.Group != c.Group) {
				break
			}
			return a.add(array.Volume{Name: c.Name, PoolID: v.PoolID, Comment: c.Comment, Size: v.Size, Block: v.Block})
		}
	}
	return array.Volume{}, array.ErrNotFound
}

func (a *memArray) GrowVolume(_ context.Context, id string, to array.Size) (array.Volume, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.volumes[id]
	switch {
	case !ok:
		return v, array.ErrNotFound
	case to-v.Size > a.room:
		return v, array.ErrNoRoom
	case to > v.Size:
		a.room -= to - v.Size
		v.Size = to
		a.volumes[id] = v
		a.grown[id]++
	}
	return a.view(v), nil
}

// RenameVolume is what a person may do.
func (a *memArray) RenameVolume(_ context.Context, id, name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	v := a.volumes[id]
	v.Name = name
	a.volumes[id] = v
	return nil
}

func (a *memArray) CommentVolume(_ context.Context, id, comment string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	v := a.volumes[id]
	v.Comment = comment
	a.volumes[id] = v
	return nil
}

func (a *memArray) DeleteVolume(_ context.Context, id string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.volumes[id]
	if !ok {
		return nil
	}
	switch v = a.view(v); {
	case len(v.Servers) > 0:
		return array.ErrAttached
	case v.HasSnapshots:
		return array.ErrHasSnapshots
	}
	if !a.shared {
		a.room += v.Size
	}
	delete(a.volumes, id)
	return nil
}

func (a *memArray) Snapshot(_ context.Context, id string) (array.Snapshot, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.snapshots[id]
	if !ok {
		return s, array.ErrNotFound
	}
	return s, nil
}

func (a *memArray) CreateSnapshot(_ context.Context, n array.NewSnapshot) (array.Snapshot, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.volumes[n.VolumeID]
	if !ok {
		return array.Snapshot{}, array.ErrNotFound
	}
	for _, s := range a.snapshots {
		if s.VolumeID == n.VolumeID && s.Name == n.Name {
			return s, nil
		}
	}
	s := array.Snapshot{
		ID: a.id("snap"), Name: n.Name, VolumeID: v.ID, Group: v.Group, PoolID: v.PoolID, Size: v.Size,
		Created: time.Unix(1_800_000_000, 0).UTC(), Status: "normal", Usable: !a.slow,
	}
	a.snapshots[s.ID] = s
	return s, nil
}

func (a *memArray) DeleteSnapshot(_ context.Context, id string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.snapshots, id)
	return nil
}

func (a *memArray) EnsureServer(_ context.Context, n array.NewServer) (array.Server, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, s := range a.servers {
		if s.Name != n.Name {
			continue
		}
		if s.IQN == n.IQN && s.Address == n.Address {
			return s, nil
		}
		if a.serves(id) {
			return s, array.ErrAttached
		}
		s.IQN, s.Address = n.IQN, n.Address
		a.servers[id] = s
		return s, nil
	}
	s := array.Server{ID: a.id("srv"), Name: n.Name, IQN: n.IQN, Address: n.Address}
	a.servers[s.ID] = s
	return s, nil
}

// serves reports whether something is attached to a server.
func (a *memArray) serves(server string) bool {
	for at := range a.attachments {
		if at.server == server {
			return true
		}
	}
	return false
}

func (a *memArray) DeleteServer(_ context.Context, id string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.serves(id) {
		return array.ErrAttached
	}
	delete(a.servers, id)
	return nil
}

func (a *memArray) Attachments(_ context.Context, volumeID string) (all []array.Attachment, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.volumes[volumeID]; !ok {
		return nil, array.ErrNotFound
	}
	for at, found := range a.attachments {
		if at.volume == volumeID {
			all = append(all, found)
		}
	}
	slices.SortFunc(all, func(a, b array.Attachment) int { return cmp.Compare(a.ServerID, b.ServerID) })
	return all, nil
}

func (a *memArray) Attach(_ context.Context, n array.NewAttachment) (array.Attachment, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, known := a.volumes[n.VolumeID]
	if _, ok := a.servers[n.ServerID]; !ok || !known {
		return array.Attachment{}, array.ErrNotFound
	}
	at := attachedTo{n.VolumeID, n.ServerID}
	if found, ok := a.attachments[at]; ok {
		return found, nil
	}
	found := array.Attachment{ServerID: n.ServerID, VolumeID: n.VolumeID, ReadOnly: n.ReadOnly}
	if v.Block {
		found.Target, found.LUN = "iqn.2011-04.com.zadara:mem", a.freeLUN(n.ServerID)
	}
	a.attachments[at] = found
	return found, nil
}

// freeLUN is the lowest number that no volume has at a server.
func (a *memArray) freeLUN(server string) (lun int) {
	taken := map[int]bool{}
	for at, found := range a.attachments {
		if at.server == server {
			taken[found.LUN] = true
		}
	}
	for taken[lun] {
		lun++
	}
	return lun
}

func (a *memArray) Detach(_ context.Context, volumeID, serverID string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.attachments, attachedTo{volumeID, serverID})
	return nil
}
