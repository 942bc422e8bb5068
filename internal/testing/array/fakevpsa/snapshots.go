package fakevpsa

import "slices"

// noSnapshot is the number for a missing snapshot, the one that the fakes of both OpenStack drivers
// give.
const noSnapshot = noVolume

func (s *state) snapshot(id string) (*Snapshot, *refusal) {
	if sn := s.snapshots.get(id); sn != nil {
		return sn, nil
	}
	return nil, refuse(noSnapshot, "Snapshot %s should be found", id)
}

// source returns the volume of the consistency group that a path names.
func (s *state) source(c *call) (*Volume, *refusal) {
	if v := s.group(c.id); v != nil {
		return v, nil
	}
	return nil, refuse(noVolume, "Consistency group %s should be found", c.id)
}

func (s *state) createSnapshot(c *call) (answer, *refusal) {
	v, refused := s.source(c)
	if refused != nil {
		return nil, refused
	}
	if refused := s.busy(v); refused != nil {
		return nil, refused
	}
	sn := &Snapshot{
		Name: c.params.get("display_name"), Volume: v.ID, Group: v.Group, Pool: v.Pool, Size: v.Size,
		Created: c.now.Unix(), Modified: c.now.Unix(),
	}
	if refused := s.freeSnapshot(sn); refused != nil {
		return nil, refused
	}
	if refused := s.room(v.Pool, 0); refused != nil {
		return nil, refused
	}
	sn.ID = s.newID("snap")
	sn.Status, sn.Until = s.born()
	s.addSnapshot(sn)
	c.did(sn.ID)
	return s.created("snapshot_name", sn.ID), nil
}

func (s *state) freeSnapshot(sn *Snapshot) *refusal {
	if !labels.MatchString(sn.Name) {
		return refuse(otherError, "%q is no valid name", sn.Name)
	}
	if other := s.snapshots.named(sn.label()); other != nil && other.ID != sn.ID {
		return refuse(otherError, "Snapshot name %s already exists", sn.Name)
	}
	return nil
}

func (s *state) listSnapshots(c *call) (answer, *refusal) {
	return s.snapshotsAnswer(c, s.snapshots.all()), nil
}

func (s *state) listSnapshotsOfGroup(c *call) (answer, *refusal) {
	v, refused := s.source(c)
	if refused != nil {
		return nil, refused
	}
	all := slices.DeleteFunc(s.snapshots.all(), func(sn *Snapshot) bool { return sn.Group != v.Group })
	return s.snapshotsAnswer(c, all), nil
}

func (s *state) snapshotsAnswer(c *call, snapshots []*Snapshot) answer {
	names := map[string]string{}
	for _, sn := range snapshots {
		if v := s.volumes.get(sn.Volume); v != nil {
			names[v.ID] = v.Name
		}
	}
	write := s.snapshotWriter()
	return list("snapshots", c, snapshots, func(e *encoder, sn *Snapshot) { write(e, sn, names[sn.Volume]) })
}

func (s *state) getSnapshot(c *call) (answer, *refusal) {
	sn, refused := s.snapshot(c.id)
	if refused != nil {
		return nil, refused
	}
	write, volume := s.snapshotWriter(), s.volumes.get(sn.Volume)
	return one("snapshot", func(e *encoder) {
		if volume != nil {
			write(e, sn, volume.Name)
			return
		}
		write(e, sn, "")
	}), nil
}

// snapshotWriter returns what writes snapshots as they are now. It needs no lock.
func (s *state) snapshotWriter() func(e *encoder, sn *Snapshot, volume string) {
	requests := s.requests
	return func(e *encoder, sn *Snapshot, volume string) {
		e.text("name", sn.ID)
		e.text("display_name", sn.Name)
		e.text("cg_name", sn.Group)
		e.text("cg_display_name", volume)
		e.text("pool_name", sn.Pool)
		e.text("status", sn.status(requests))
		e.text("volume_display_name", volume)
		e.text("volume_ext_name", sn.Volume)
		e.number("volume_capacity_mb", sn.Size<<10)
		e.time("created_at", sn.Created)
		e.time("modified_at", sn.Modified)
	}
}

func (s *state) renameSnapshot(c *call) (answer, *refusal) {
	old, refused := s.snapshot(c.id)
	if refused != nil {
		return nil, refused
	}
	changed := *old
	changed.Name, changed.Modified = c.params.get("newname"), c.now.Unix()
	if refused := s.freeSnapshot(&changed); refused != nil {
		return nil, refused
	}
	s.snapshots.put(&changed)
	c.did(old.ID)
	return s.created("snapshot_name", old.ID), nil
}

func (s *state) deleteSnapshot(c *call) (answer, *refusal) {
	sn, refused := s.snapshot(c.id)
	if refused != nil {
		return nil, refused
	}
	s.dropSnapshot(sn)
	c.did(sn.ID)
	return nil, nil
}

// clone makes a volume as large as its source, which is the volume as it is, or one of its snapshots.
func (s *state) clone(c *call) (answer, *refusal) {
	source, refused := s.source(c)
	if refused != nil {
		return nil, refused
	}
	if refused := s.busy(source); refused != nil {
		return nil, refused
	}
	v := &Volume{
		Name: c.params.get("name"), Pool: source.Pool, Size: source.Size, Allocated: newVolume, Block: source.Block,
		Source: source.ID, Options: source.Options, Created: c.now.Unix(), Modified: c.now.Unix(),
	}
	if !v.Block {
		v.Export = "/export/" + v.Name
	}
	for _, key := range []string{"snapshot", "snapshot_id"} {
		id := c.params.get(key)
		if id == "" {
			continue
		}
		sn, refused := s.snapshot(id)
		if refused != nil {
			return nil, refused
		}
		if sn.Group != source.Group {
			return nil, refuse(otherError, "Snapshot %s is not of consistency group %s", id, source.Group)
		}
		v.Size, v.Source = sn.Size, sn.ID
	}
	if _, refused := s.admit(c, v); refused != nil {
		return nil, refused
	}
	return s.created("cg_name", v.Group), nil
}
