package fakevpsa

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// How long the recycle bin keeps a volume.
const inBin = 7 * 24 * time.Hour

// state is the array without its connections.
type state struct {
	settings  Settings
	pools     table[*Pool]
	volumes   table[*Volume]
	bin       table[*Volume]
	servers   table[*Server]
	snapshots table[*Snapshot]
	pending   []*pending
	// next numbers the objects of each kind; requests those that came.
	next     map[string]uint32
	requests int64
}

// newID returns an ID that was never used.
func (s *state) newID(kind string) string {
	s.next[kind]++
	return fmt.Sprintf("%s-%08x", kind, s.next[kind])
}

func (s *state) array() string { return fmt.Sprintf("vsa-%08x", s.settings.Serial) }

func (s *state) target() string {
	return fmt.Sprintf("iqn.2011-04.com.zadara:%s:%032x:1", s.array(), s.settings.Serial)
}

// portal is the address of the file systems.
func (s *state) portal() string { return s.settings.Portals[max(s.settings.Active, 0)] }

// status returns the word for a volume after so many requests.
func (v *Volume) status(requests int64) string {
	switch {
	case v.Status != "" && (v.Until == 0 || requests <= v.Until):
		return v.Status
	case len(v.Attachments) > 0:
		return "In-use"
	}
	return "Available"
}

func (s *Snapshot) status(requests int64) string {
	if s.Status != "" && (s.Until == 0 || requests <= s.Until) {
		return s.Status
	}
	return "normal"
}

// born returns the status of a new object, and up to which request it has that.
func (s *state) born() (status string, until int64) {
	if s.settings.NewStatus == "" {
		return "", 0
	}
	if s.settings.NewStatusFor > 0 {
		until = s.requests + s.settings.NewStatusFor
	}
	return s.settings.NewStatus, until
}

// addVolume puts a volume into the table and counts it; so do the methods below.
func (s *state) addVolume(v *Volume) {
	s.volumes.put(v)
	s.count(v.Pool, v.Size, v.Allocated)
}

// changeVolume puts a changed copy in the place of a volume.
func (s *state) changeVolume(v *Volume, now time.Time, change func(*Volume)) {
	changed := *v
	changed.Attachments = slices.Clone(v.Attachments)
	changed.Options = maps.Clone(v.Options)
	changed.Modified = now.Unix()
	change(&changed)
	s.volumes.put(&changed)
	s.count(v.Pool, changed.Size-v.Size, changed.Allocated-v.Allocated)
}

// dropVolume removes a volume for good.
func (s *state) dropVolume(v *Volume) {
	s.volumes.remove(v.ID)
	s.bin.remove(v.ID)
	s.count(v.Pool, -v.Size, -v.Allocated)
}

func (s *state) count(pool string, provisioned, allocated int64) {
	if p := s.pools.get(pool); p != nil {
		changed := *p
		changed.provisioned += provisioned
		changed.allocated += allocated
		s.pools.put(&changed)
	}
}

func (s *state) changePool(p *Pool, change func(*Pool)) {
	changed := *p
	changed.Protection = maps.Clone(p.Protection)
	change(&changed)
	s.pools.put(&changed)
}

func (s *state) addSnapshot(sn *Snapshot) {
	s.snapshots.put(sn)
	s.countSnapshot(sn, 1)
}

func (s *state) dropSnapshot(sn *Snapshot) {
	s.snapshots.remove(sn.ID)
	s.countSnapshot(sn, -1)
}

func (s *state) countSnapshot(sn *Snapshot, by int) {
	if v := s.volumes.get(sn.Volume); v != nil {
		changed := *v
		changed.Snapshots += by
		s.volumes.put(&changed)
	}
}

// group returns the volume of a consistency group; or nil.
func (s *state) group(id string) *Volume {
	for _, v := range s.volumes.items {
		if v.Group == id {
			return v
		}
	}
	return nil
}

// purge empties the recycle bin of what was in it long enough.
func (s *state) purge(now time.Time) {
	for _, v := range s.bin.all() {
		if now.Sub(time.Unix(v.Deleted, 0)) >= inBin {
			s.dropVolume(v)
		}
	}
}
