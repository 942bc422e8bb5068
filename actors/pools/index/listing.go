package index

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// Find answers for one volume.
func (a *Admission) Find(m *poolmessages.FindVolume) {
	if a.noVolume(m, m.Name, m.Kind) {
		return
	}
	v := a.volumes[m.Name]
	if v != nil && v.Flags.Has(poolmessages.FlagRetained) {
		m.Fail(fmt.Errorf("%w: volume %s is retained, because its claim was deleted", volume.ErrNotFound, m.Name))
		return
	}
	if v == nil {
		m.Fail(cmp.Or(a.mayBeUnknown("volume "+m.Name), fmt.Errorf("%w: there is no PoolVolume %s", volume.ErrNotFound, m.Name)))
		return
	}
	found := a.describe(m.Name, v)
	for _, op := range a.admitted.attaching(m.Name) {
		if !slices.Contains(found.Nodes, op.node) {
			found.Nodes = append(found.Nodes, op.node)
		}
	}
	m.Send(found, nil)
}

// describe returns a volume as those who ask know it.
func (x *Index) describe(name string, v *Volume) pools.Volume {
	found := pools.Volume{
		ID: name, Size: v.size, Class: v.class, Pool: v.pool, Block: v.Flags.Has(poolmessages.FlagBlock), Protocol: pools.NFS, FSType: v.fsType,
	}
	switch {
	case v.Flags.Has(poolmessages.FlagISCSI):
		found.Protocol = pools.ISCSI
	case v.Flags.Has(poolmessages.FlagLocal):
		found.Protocol, found.On = pools.Local, x.UUIDOf(v.pool)
	}
	if v.source != nil {
		found.Source = *v.source
	}
	for _, a := range x.attachmentsOf[name] {
		found.Nodes = append(found.Nodes, x.attachments[a].Node)
	}
	slices.Sort(found.Nodes)
	return found
}

// VolumePage returns a page of those volumes of a kind that there are on arrays.
func (x *Index) VolumePage(kind pools.Kind, page pools.Page) (got poolmessages.VolumePage) {
	for _, name := range after(&x.volumeNames, x.volumes, page.After) {
		v := x.volumes[name]
		if v.id == "" || kind != "" && v.kind() != kind || v.Flags.Has(poolmessages.FlagRetained) {
			continue
		}
		if page.Limit > 0 && len(got.Volumes) == page.Limit {
			got.More = true
			break
		}
		got.Volumes = append(got.Volumes, x.describe(name, v))
	}
	return got
}

// kindOfSnapshot is the kind of the pool that a snapshot is in: that of its volume, which it keeps.
func (x *Index) kindOfSnapshot(s *Snapshot) pools.Kind {
	if v := x.volumes[s.volume]; v != nil {
		return v.kind()
	}
	return pools.KindArray
}

// SnapshotPage returns a page of those snapshots of a kind that there are on arrays.
func (x *Index) SnapshotPage(kind pools.Kind, which pools.SnapshotSelection, page pools.Page) (got poolmessages.SnapshotPage) {
	candidates := after(&x.snapshotNames, x.snapshots, page.After)
	switch {
	case which.ID != "":
		candidates = only(which.ID, page.After)
	case which.Volume != "":
		of := slices.Sorted(slices.Values(x.snapshotsOf[which.Volume]))
		candidates = slices.DeleteFunc(of, func(name string) bool { return name <= page.After })
	}
	for _, name := range candidates {
		s := x.snapshots[name]
		if s == nil || s.id == "" || which.Volume != "" && s.volume != which.Volume ||
			kind != "" && x.kindOfSnapshot(s) != kind {
			continue
		}
		if page.Limit > 0 && len(got.Snapshots) == page.Limit {
			got.More = true
			break
		}
		got.Snapshots = append(got.Snapshots, pools.Snapshot{
			ID: name, Volume: s.volume, Size: s.size, Created: time.Unix(s.created, 0).UTC(), Ready: s.flags.Has(poolmessages.FlagReady),
		})
	}
	return got
}

func only(name, after string) []string {
	if name <= after {
		return nil
	}
	return []string{name}
}

// sweepPage is how many volumes the supervisor tells of in one turn.
const sweepPage = 1000

// ClaimedPage answers [ListClaimed].
func (x *Index) ClaimedPage(last string) poolmessages.ClaimedPage {
	page := poolmessages.ClaimedPage{ByClaim: map[string]string{}}
	names := after(&x.volumeNames, x.volumes, last)
	if len(names) > sweepPage {
		names = names[:sweepPage]
		page.Last = names[sweepPage-1]
	}
	for _, name := range names {
		v := x.volumes[name]
		if !v.Flags.Has(poolmessages.FlagReady) || v.Flags&(poolmessages.FlagExternal|poolmessages.FlagDeleting|poolmessages.FlagRetained) != 0 {
			continue
		}
		// A claim that was gone before its volume was made is known by the name alone.
		if uid := cmp.Or(v.Claim, rules.UIDPattern.FindString(cmp.Or(v.request, name))); uid != "" {
			page.ByClaim[uid] = name
		}
	}
	return page
}
