package fakevpsa

import (
	"errors"
	"fmt"
	"slices"

	"github.com/katbox/katbox/internal/testing/array/dataplane"
)

// follower makes a data plane do what the state says. It compares: whatever has changed the state, the
// same calls follow, also after a crash between the two. What fails is tried again with the next request.
type follower struct {
	plane dataplane.Plane
	// behind: something has failed.
	behind bool
	// What the plane has: nil before it was asked. A snapshot's disk is empty.
	disks      map[string]dataplane.Disk
	initiators map[string]bool
	exports    map[dataplane.Export]bool
	front      *dataplane.Front
	// leaving are the places of exports that could not be taken away, or not wholly. Until then nothing comes there.
	leaving map[dataplane.Export]bool
}

// place is where a client finds an export: another volume may come there.
func place(e dataplane.Export) dataplane.Export {
	e.Volume = ""
	return e
}

// follow calls the data plane, if there is one. The caller holds the lock.
func (a *Array) follow() error {
	if a.plane == nil {
		return nil
	}
	before := a.plane.behind
	err := a.plane.follow(a.state)
	a.plane.behind = err != nil
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the data plane does not follow: %w", err)
	if !before && a.isBehind != nil {
		a.isBehind(err)
	}
	return err
}

// catchUp does what has failed. Who asked for it has the error. The caller holds the lock.
func (a *Array) catchUp() {
	if a.plane != nil && a.plane.behind {
		_ = a.follow() // it is behind still
	}
}

// wants is the data plane that a state asks for.
type wants struct {
	disks map[string]dataplane.Disk
	// order has the IDs of the volumes and snapshots such that each comes after its source.
	order []string
	// sources has those of clones and snapshots.
	sources    map[string]string
	initiators map[string]bool
	exports    map[dataplane.Export]bool
	target     string
	front      dataplane.Front
}

func (s *state) wants() wants {
	w := wants{
		disks: map[string]dataplane.Disk{}, sources: map[string]string{}, initiators: map[string]bool{},
		exports: map[dataplane.Export]bool{}, target: s.target(), front: s.front(),
	}
	for _, sv := range s.servers.items {
		if sv.IQN != "" {
			w.initiators[sv.IQN] = true
		}
	}
	for _, v := range slices.Concat(s.volumes.items, s.bin.items) {
		d := dataplane.Disk{ID: v.ID, Size: v.Size << 30, Block: v.Block}
		if v.Deleted == 0 {
			d.Path = v.Export
		}
		w.disks[v.ID] = d
		w.sources[v.ID] = v.Source
		for _, at := range v.Attachments {
			if sv := s.servers.get(at.Server); sv != nil {
				e := exportOf(v, sv, at)
				readOnly, twice := w.exports[e]
				w.exports[e] = at.ReadOnly && (readOnly || !twice)
			}
		}
	}
	for _, sn := range s.snapshots.items {
		w.disks[sn.ID] = dataplane.Disk{ID: sn.ID}
		w.sources[sn.ID] = sn.Volume
	}
	for _, v := range slices.Concat(s.volumes.items, s.bin.items) {
		w.arrange(v.ID)
	}
	for _, sn := range s.snapshots.items {
		w.arrange(sn.ID)
	}
	return w
}

// arrange puts a disk into the order, its source before.
func (w *wants) arrange(id string) {
	if _, exists := w.disks[id]; !exists || slices.Contains(w.order, id) {
		return
	}
	w.arrange(w.sources[id])
	w.order = append(w.order, id)
}

func exportOf(v *Volume, sv *Server, at Attachment) dataplane.Export {
	if v.Block {
		return dataplane.Export{Volume: v.ID, IQN: sv.IQN, LUN: at.LUN}
	}
	return dataplane.Export{Path: v.Export, Address: sv.Address}
}

func (s *state) front() dataplane.Front {
	set := s.settings
	f := dataplane.Front{User: set.CHAPUser, Secret: set.CHAPSecret, Away: set.Away}
	for i, portal := range set.Portals {
		if (i == set.Active || set.BothPortals) && !slices.Contains(f.Portals, portal) {
			f.Portals = append(f.Portals, portal)
		}
	}
	return f
}

func (f *follower) follow(s *state) error {
	w := s.wants()
	if f.disks == nil {
		if err := f.find(w); err != nil {
			return err
		}
	}
	var errs []error
	try := func(err error) bool {
		if err != nil {
			errs = append(errs, err)
		}
		return err == nil
	}
	// What is taken away goes first: its place may be needed.
	for e := range f.exports {
		if _, wanted := w.exports[e]; wanted && !f.leaving[place(e)] {
			continue
		}
		f.leaving[place(e)] = true
		if try(f.plane.Unexport(e)) {
			delete(f.exports, e)
			delete(f.leaving, place(e))
		}
	}
	for iqn := range f.initiators {
		if !w.initiators[iqn] && try(f.plane.Dismiss(iqn)) {
			delete(f.initiators, iqn)
		}
	}
	f.followDisks(w, try)
	if f.front == nil || !sameFront(*f.front, w.front) {
		if try(f.plane.Front(w.front)) {
			f.front = &w.front
		}
	}
	for iqn := range w.initiators {
		if !f.initiators[iqn] && try(f.plane.Admit(iqn)) {
			f.initiators[iqn] = true
		}
	}
	for e, readOnly := range w.exports {
		if f.leaving[place(e)] {
			continue
		}
		if was, exists := f.exports[e]; (!exists || was != readOnly) && try(f.plane.Export(e, readOnly)) {
			f.exports[e] = readOnly
		}
	}
	return errors.Join(errs...)
}

// followDisks makes the volumes and snapshots, and then deletes those that are not wanted: a clone may
// need them.
func (f *follower) followDisks(w wants, try func(error) bool) {
	// Those that leave their place before those that may take it.
	order := slices.Clone(w.order)
	slices.SortStableFunc(order, func(a, b string) int { return w.inService(a) - w.inService(b) })
	for _, id := range order {
		want := w.disks[id]
		was, exists := f.disks[id]
		if exists && was == want {
			continue
		}
		if try(f.followDisk(want, was, exists, w)) {
			f.disks[id] = want
		}
	}
	for id := range f.disks {
		if _, wanted := w.disks[id]; !wanted && try(f.plane.Delete(id)) {
			delete(f.disks, id)
		}
	}
}

func (w *wants) inService(id string) int {
	if d := w.disks[id]; d.Block || d.Path != "" || d.Size == 0 {
		return 1
	}
	return 0
}

func (f *follower) followDisk(want, was dataplane.Disk, exists bool, w wants) error {
	source := w.sources[want.ID]
	switch {
	case exists && want.Size != was.Size && want.Path == was.Path:
		return f.plane.Expand(want)
	case exists || source == "":
		return f.plane.CreateDisk(want)
	case want.Size == 0:
		return f.plane.Snapshot(want.ID, w.disks[source])
	}
	return f.plane.Clone(want, source)
}

// find asks the plane what it has. What is wanted of that is taken into service again: the machine may
// have been started anew.
func (f *follower) find(w wants) error {
	found, err := f.plane.Found(w.target)
	if err != nil {
		return err
	}
	f.initiators, f.exports, f.leaving = map[string]bool{}, map[dataplane.Export]bool{}, map[dataplane.Export]bool{}
	for _, iqn := range found.Initiators {
		f.initiators[iqn] = true
	}
	for _, e := range found.Exports {
		f.exports[e] = false
	}
	disks := map[string]dataplane.Disk{}
	for _, id := range found.Disks {
		disks[id] = dataplane.Disk{ID: id}
	}
	for _, id := range w.order {
		want := w.disks[id]
		if _, exists := disks[id]; exists && want.Size > 0 {
			if err := f.plane.CreateDisk(want); err != nil {
				return err
			}
			disks[id] = want
		}
	}
	for e, readOnly := range w.exports {
		if _, exists := f.exports[e]; exists {
			if err := f.plane.Export(e, readOnly); err != nil {
				return err
			}
			f.exports[e] = readOnly
		}
	}
	f.disks = disks
	return nil
}

func sameFront(a, b dataplane.Front) bool {
	return slices.Equal(a.Portals, b.Portals) && a.User == b.User && a.Secret == b.Secret && a.Away == b.Away
}
