package fakevpsa

import (
	"fmt"
	"maps"
	"time"

	"github.com/katbox/katbox/internal/testing/array/dataplane"
)

// The methods in this file change the array behind the backs of its clients, as a person or another
// client does. They are no requests: they are not counted, and not among the changes.

// Seed adds volumes with the names PREFIX00000 and so on, in the first pool. It is fast.
func (a *Array) Seed(prefix string, count int, size int64, block bool) error {
	return a.alter(func(s *state, now time.Time) error {
		pool := s.pools.items[0].ID
		for i := range count {
			v := &Volume{Name: fmt.Sprintf("%s%05d", prefix, i), Pool: pool, Size: size, Allocated: newVolume, Block: block}
			if err := s.insert(v, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// AddVolume adds a volume of another client, and returns it with its ID. Empty are filled in: the
// pool, the size, the export.
func (a *Array) AddVolume(v Volume) (Volume, error) {
	v.Attachments, v.Snapshots, v.Options = nil, 0, maps.Clone(v.Options)
	err := a.alter(func(s *state, now time.Time) error {
		fill(&v.Pool, s.pools.items[0].ID)
		v.Size = max(v.Size, 1)
		added := v
		err := s.insert(&added, now)
		v = added
		return err
	})
	return v, err
}

// insert adds a volume without asking whether the pool has room.
func (s *state) insert(v *Volume, now time.Time) error {
	if s.pools.get(v.Pool) == nil {
		return fmt.Errorf("there is no pool %s", v.Pool)
	}
	if refused := s.freeName(v.Name); refused != nil {
		return fmt.Errorf("volume %s: %s", v.Name, refused.text)
	}
	if !v.Block {
		fill(&v.Export, "/export/"+v.Name)
	}
	v.ID, v.Group = s.newID("volume"), s.newID("cg")
	v.Created, v.Modified = now.Unix(), now.Unix()
	s.addVolume(v)
	return nil
}

// AddSnapshot adds a snapshot of a volume, and returns it with its ID.
func (a *Array) AddSnapshot(volume, name string) (Snapshot, error) {
	var sn Snapshot
	err := a.alter(func(s *state, now time.Time) error {
		v := s.volumes.get(volume)
		if v == nil {
			return fmt.Errorf("there is no volume %s", volume)
		}
		sn = Snapshot{
			Name: name, Volume: v.ID, Group: v.Group, Pool: v.Pool, Size: v.Size, Created: now.Unix(), Modified: now.Unix(),
		}
		if refused := s.freeSnapshot(&sn); refused != nil {
			return fmt.Errorf("snapshot %s: %s", name, refused.text)
		}
		sn.ID = s.newID("snap")
		added := sn
		s.addSnapshot(&added)
		return nil
	})
	return sn, err
}

// AddServer adds a server record, and returns it with its ID.
func (a *Array) AddServer(sv Server) (Server, error) {
	err := a.alter(func(s *state, now time.Time) error {
		sv.ID = ""
		if refused := s.freeServer(&sv); refused != nil {
			return fmt.Errorf("server %s: %s", sv.Name, refused.text)
		}
		sv.ID, sv.Created, sv.Modified = s.newID("srv"), now.Unix(), now.Unix()
		added := sv
		s.servers.put(&added)
		return nil
	})
	return sv, err
}

// AddPool adds a pool, and returns it with its ID.
func (a *Array) AddPool(p Pool) (Pool, error) {
	err := a.alter(func(s *state, _ time.Time) error {
		if err := s.addPool(p); err != nil {
			return err
		}
		p = *s.pools.items[len(s.pools.items)-1]
		return nil
	})
	return p, err
}

// Remove makes a volume, snapshot or server vanish, attached or not, with the snapshots of a volume.
func (a *Array) Remove(id string) error {
	return a.alter(func(s *state, now time.Time) error {
		if v := s.volumes.get(id); v != nil {
			s.deletedBehind(v, now)
			return nil
		}
		if sn := s.snapshots.get(id); sn != nil {
			s.dropSnapshot(sn)
			return nil
		}
		if s.servers.get(id) == nil {
			return fmt.Errorf("there is neither a volume nor a snapshot nor a server %s", id)
		}
		for _, v := range s.volumes.all() {
			for i, at := range v.Attachments {
				if at.Server == id {
					s.changeVolume(v, now, func(v *Volume) { v.Attachments = append(v.Attachments[:i], v.Attachments[i+1:]...) })
				}
			}
		}
		s.servers.remove(id)
		return nil
	})
}

// ChangeVolume changes a volume. Its ID, attachments and snapshots stay.
func (a *Array) ChangeVolume(id string, change func(*Volume)) error {
	return a.alter(func(s *state, now time.Time) error {
		v := s.volumes.get(id)
		if v == nil {
			return fmt.Errorf("there is no volume %s", id)
		}
		s.changeVolume(v, now, func(changed *Volume) {
			change(changed)
			changed.ID, changed.Group, changed.Pool = v.ID, v.Group, v.Pool
			changed.Attachments, changed.Snapshots = v.Attachments, v.Snapshots
		})
		return nil
	})
}

// SetStatus gives a volume or a snapshot a status, such as Migrating, for the given number of
// requests; for ever when that is 0. An empty status is the usual one.
func (a *Array) SetStatus(id, status string, requests int64) error {
	return a.alter(func(s *state, now time.Time) error {
		var until int64
		if requests > 0 {
			until = s.requests + requests
		}
		if v := s.volumes.get(id); v != nil {
			s.changeVolume(v, now, func(v *Volume) { v.Status, v.Until = status, until })
			return nil
		}
		sn := s.snapshots.get(id)
		if sn == nil {
			return fmt.Errorf("there is neither a volume nor a snapshot %s", id)
		}
		changed := *sn
		changed.Status, changed.Until = status, until
		s.snapshots.put(&changed)
		return nil
	})
}

// ChangePool changes a pool: its capacity, what else is in use, its mode. Its ID stays.
func (a *Array) ChangePool(id string, change func(*Pool)) error {
	return a.alter(func(s *state, _ time.Time) error {
		p := s.pools.get(id)
		if p == nil {
			return fmt.Errorf("there is no pool %s", id)
		}
		s.changePool(p, func(changed *Pool) {
			change(changed)
			changed.ID, changed.provisioned, changed.allocated = p.ID, p.provisioned, p.allocated
		})
		return nil
	})
}

// Change changes what the array is, and how it answers: a new token revokes the old one, another
// Active switches the controllers, Version makes it an older one. An Active of -1 leaves no controller
// active.
func (a *Array) Change(change func(*Settings)) error {
	return a.alter(func(s *state, _ time.Time) error {
		set := s.settings
		change(&set)
		if set.Active < -1 || set.Active > 1 {
			return fmt.Errorf("there is no controller %d", set.Active)
		}
		s.settings = set
		return nil
	})
}

// Leave makes the array answer no more, neither requests nor, with a data plane, those who use its
// volumes, until Return.
func (a *Array) Leave(how dataplane.Away) error {
	if how != dataplane.Network && how != dataplane.Down {
		return fmt.Errorf("an array is away by %q or %q, not by %q", dataplane.Network, dataplane.Down, how)
	}
	return a.Change(func(set *Settings) { set.Away = how })
}

// Return makes it answer again. Requests that it has not answered stay without an answer.
func (a *Array) Return() error {
	return a.Change(func(set *Settings) { set.Away = dataplane.Here })
}

// SwitchController makes the other controller the active one.
func (a *Array) SwitchController() error {
	return a.Change(func(set *Settings) { set.Active = 1 - max(set.Active, 0) })
}
