package local

import (
	"maps"
	"slices"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	localmessages "github.com/katbox/katbox/messages/local"
)

// index is what the keeper knows of the volumes and snapshots of a pool: little of each. It does no I/O.
type index struct {
	entries map[string]entry
	// promised is the sum of all sizes.
	promised int64
	// snapshots counts those of each volume; copies what is being made of each volume or snapshot.
	snapshots, copies map[string]int
	counts            local.Counts
	// sorted are the names in their order; nil where that is not known.
	sorted []string
	// kept are the volumes that are kept without a claim, the one that was retained last first; nil where that is not
	// known. It is not changed, but made anew.
	kept []volume.Description
}

// entry is what the index has of a record.
type entry struct {
	size       int64
	state      local.State
	of, source string
	// kept describes a volume that is kept without a claim; nil for any other.
	kept *volume.Description
}

func newIndex() *index {
	return &index{entries: map[string]entry{}, snapshots: map[string]int{}, copies: map[string]int{}}
}

// indexOf returns the index of what there is on a disk.
func indexOf(records []local.Record) *index {
	x := newIndex()
	for _, r := range records {
		x.settle(r)
	}
	return x
}

func entryOf(r local.Record) entry {
	e := entry{size: r.Size, state: r.State, of: r.Of, kept: keptOf(r)}
	if r.State == local.Making {
		e.source = r.Source.Volume + r.Source.Snapshot + r.Of // one of them
	}
	return e
}

// isRetained reports whether a volume is kept without a claim.
func isRetained(r local.Record) bool { return pools.ParseComment(r.Comment).Retained != nil }

// settle notes a record.
func (x *index) settle(r local.Record) {
	x.forget(r.Name)
	x.entries[r.Name] = entryOf(r)
	x.count(x.entries[r.Name], 1)
	x.sorted, x.kept = nil, nil
}

// forget drops a volume or a snapshot.
func (x *index) forget(name string) {
	if e, ok := x.entries[name]; ok {
		x.count(e, -1)
		delete(x.entries, name)
		x.sorted, x.kept = nil, nil
	}
}

// count adds an entry to the sums, or takes it away.
func (x *index) count(e entry, by int) {
	x.promised += int64(by) * e.size
	add(x.snapshots, e.of, by)
	add(x.copies, e.source, by)
	switch {
	case e.of != "":
		x.counts.Snapshots += by
	case e.state != local.Ready:
		x.counts.Unfinished += by
	case e.kept != nil:
		x.counts.Retained += by
	default:
		x.counts.Ready += by
	}
}

func add(counts map[string]int, name string, by int) {
	if name == "" {
		return
	}
	if counts[name] += by; counts[name] == 0 {
		delete(counts, name)
	}
}

// reserve promises room to a record that is new, or that grows, out of a total.
func (x *index) reserve(r local.Record, total int64) error {
	before, known := x.entries[r.Name]
	if known && before.size >= r.Size {
		return nil
	}
	if more := r.Size - before.size; more > total-x.promised {
		return problemf(volume.ErrNoSpace, "%s needs %d bytes, and the pool of %d bytes has promised %d: delete volumes or snapshots there, "+
			"or enlarge its disk", r.Name, more, total, x.promised)
	}
	if known {
		x.count(before, -1)
		before.size = r.Size
		x.entries[r.Name] = before
		x.count(before, 1)
		return nil
	}
	for _, source := range []struct {
		name, kind string
		snapshot   bool
	}{{r.Of, "volume", false}, {r.Source.Volume, "volume", false}, {r.Source.Snapshot, "snapshot", true}} {
		if source.name == "" {
			continue
		}
		switch from, ok := x.entries[source.name]; {
		case !ok, (from.of != "") != source.snapshot, from.state == local.Deleting:
			return problemf(volume.ErrNotFound, "%s cannot be made: the pool has no %s %s", r.Name, source.kind, source.name)
		case from.state != local.Ready:
			return problemf(volume.ErrBusy, "%s cannot be made yet: the %s %s is being made", r.Name, source.kind, source.name)
		case from.size > r.Size:
			return problemf(pools.ErrOutOfRange, "%s cannot be made with %d bytes: the %s %s has %d", r.Name, r.Size, source.kind, source.name,
				from.size)
		}
	}
	x.settle(r)
	return nil
}

// claim marks what is to be deleted, so that nothing is made of it from now on.
func (x *index) claim(name string) error {
	if n := x.snapshots[name]; n > 0 {
		return problemf(pools.ErrInUse, "volume %s has %d snapshots: delete those first", name, n)
	}
	if x.copies[name] > 0 {
		return problemf(pools.ErrInUse, "%s is being copied: wait until that has ended", name)
	}
	if e, ok := x.entries[name]; ok {
		x.count(e, -1)
		e.state = local.Deleting
		x.entries[name] = e
		x.count(e, 1)
		x.kept = nil
	}
	return nil
}

// retained returns the volumes that are kept without a claim, the one that was retained last first.
func (x *index) retained() []volume.Description {
	if x.kept != nil {
		return x.kept
	}
	x.kept = []volume.Description{}
	for name := range x.entries {
		if d, err := x.readable(name); err == nil {
			x.kept = append(x.kept, d)
		}
	}
	slices.SortFunc(x.kept, newestFirst)
	return x.kept
}

func newestFirst(a, b volume.Description) int { return b.Record.Key().Compare(a.Record.Key()) }

// readable returns a volume that is kept without a claim, or why that of this name cannot be read.
func (x *index) readable(name string) (volume.Description, error) {
	switch e, ok := x.entries[name]; {
	case !ok, e.of != "":
		return volume.Description{}, problemf(volume.ErrNotFound, "no pool of this node has a volume %s", name)
	case e.state == local.Deleting:
		return volume.Description{}, problemf(volume.ErrGone, "volume %s is being deleted", name)
	case e.kept == nil, e.state != local.Ready:
		return volume.Description{}, problemf(volume.ErrNotRetained, "volume %s has a claim", name)
	default:
		return *e.kept, nil
	}
}

// only returns a volume or a snapshot, if there is one of this name.
func (x *index) only(name string) []localmessages.LocalName {
	if _, ok := x.entries[name]; !ok {
		return nil
	}
	return []localmessages.LocalName{{Name: name, HasSnapshots: x.snapshots[name] > 0}}
}

// list returns at most limit (0: all) volumes, or snapshots, whose names come after a name.
func (x *index) list(after string, snapshots bool, limit int) (names []localmessages.LocalName) {
	if x.sorted == nil {
		x.sorted = slices.Sorted(maps.Keys(x.entries))
	}
	from, found := slices.BinarySearch(x.sorted, after)
	if found {
		from++
	}
	for _, name := range x.sorted[from:] {
		if limit > 0 && len(names) == limit {
			break
		}
		if (x.entries[name].of != "") == snapshots {
			names = append(names, localmessages.LocalName{Name: name, HasSnapshots: x.snapshots[name] > 0})
		}
	}
	return names
}

// unfinished returns what is being made or deleted.
func (x *index) unfinished() (volumes, snapshots []string) {
	for name, e := range x.entries {
		switch {
		case e.state == local.Ready:
		case e.of != "":
			snapshots = append(snapshots, name)
		default:
			volumes = append(volumes, name)
		}
	}
	return volumes, snapshots
}
