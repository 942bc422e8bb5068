package retained

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
)

// model is a plain list that says in the simplest way what a queue is to say.
type model struct {
	minLifespan time.Duration
	fair        bool
	maxRetained func(namespace string) volume.Size
	volumes     map[volume.ID]Known
}

// sorted returns the volumes that a condition holds for, the least first.
func (m *model) sorted(is func(Known) bool, by func(a Known) time.Time) []Known {
	var found []Known
	for _, a := range m.volumes {
		if is(a) {
			found = append(found, a)
		}
	}
	slices.SortFunc(found, func(a, b Known) int {
		return cmp.Or(by(a).Compare(by(b)), a.Unpublished.Compare(b.Unpublished), cmp.Compare(a.ID, b.ID))
	})
	return found
}

func unpublished(a Known) time.Time { return a.Unpublished }

func (m *model) over() (volume.ID, time.Time, bool) {
	until := func(a Known) time.Time {
		if a.Phase == volume.Deleting {
			return a.Unpublished
		}
		return a.Until()
	}
	all := m.sorted(func(Known) bool { return true }, until)
	if len(all) == 0 {
		return "", time.Time{}, false
	}
	return all[0].ID, until(all[0]), true
}

func (a Known) isA(kind volume.HoldKind) bool {
	return a.Phase == volume.Retained && a.Hold.Kind == kind
}

// early returns the volume that goes, and when the first one is due.
func (m *model) early(now time.Time, factor float64, scarcer volume.Reason) (volume.ID, time.Time, bool) {
	due := func(a Known) time.Time { return a.Unpublished.Add(lifespan.Due(a.Record, m.minLifespan, factor)) }
	// Of the released ones the first counts, all of which are due at factor 0.
	first := m.sorted(func(a Known) bool { return a.isA(volume.Released) && factor == 0 }, func(a Known) time.Time { return a.Until() })
	all := m.sorted(func(a Known) bool { return a.isA(volume.NoHold) || len(first) > 0 && a.ID == first[0].ID }, due)
	if len(all) == 0 {
		return "", time.Time{}, false
	}
	if at := due(all[0]); at.After(now) {
		return "", at, true
	}
	return m.first(func(a Known) bool { return !a.Unpublished.Add(m.minLifespan).After(now) }, due, scarcer), due(all[0]), true
}

// first returns the first in order of those that may go.
func (m *model) first(may func(Known) bool, due func(Known) time.Time, scarcer volume.Reason) volume.ID {
	until := func(a Known) time.Time { return a.Until() }
	if all := m.sorted(func(a Known) bool { return a.isA(volume.Released) }, until); len(all) > 0 {
		return all[0].ID
	}
	free := func(a Known) bool { return a.isA(volume.NoHold) && may(a) }
	if namespace, ok := m.heaviest(free, scarcer); ok && m.fair {
		all := m.sorted(func(a Known) bool { return free(a) && a.Namespace == namespace }, unpublished)
		return m.byOutcome(all)
	}
	return m.byOutcome(m.sorted(free, due))
}

func (m *model) byOutcome(all []Known) volume.ID {
	for _, first := range [][]volume.Outcome{{volume.Succeeded}, {volume.Stopped}, {volume.Failed, volume.OutcomeUnknown}} {
		for _, archived := range []bool{true, false} {
			for _, a := range all {
				if slices.Contains(first, a.Outcome) && a.Archived() == archived {
					return a.ID
				}
			}
		}
	}
	return ""
}

// retained returns what each namespace retains.
func (m *model) retained() map[string]volume.Size {
	sums := map[string]volume.Size{}
	for _, a := range m.volumes {
		if a.Phase == volume.Retained {
			sums[a.Namespace] = sums[a.Namespace].Add(a.Size)
		}
	}
	return sums
}

// heaviest returns the namespace that retains most of those that have a volume which may go, if it
// is more than the average.
func (m *model) heaviest(may func(Known) bool, scarcer volume.Reason) (string, bool) {
	sums, total := m.retained(), int64(0)
	amount := func(s volume.Size) int64 {
		if scarcer == volume.ForInodes {
			return s.Inodes
		}
		return s.Bytes
	}
	var heaviest string
	var most int64
	for _, namespace := range slices.Sorted(maps.Keys(sums)) {
		total += amount(sums[namespace])
		if is := amount(sums[namespace]); is > most &&
			len(m.sorted(func(a Known) bool { return a.Namespace == namespace && may(a) }, unpublished)) > 0 {
			heaviest, most = namespace, is
		}
	}
	return heaviest, most*int64(len(sums)) > total
}

func (m *model) guaranteed(scarcer volume.Reason) (volume.ID, bool) {
	if id := m.first(func(Known) bool { return true }, unpublished, scarcer); id != "" {
		return id, true
	}
	all := m.sorted(func(a Known) bool { return a.isA(volume.Pinned) }, func(a Known) time.Time { return a.Until() })
	if len(all) == 0 {
		return "", false
	}
	return all[0].ID, true
}

// surplus returns the first in order of each namespace that retains too much.
func (m *model) surplus(now time.Time) []volume.ID {
	var first []volume.ID
	for namespace, is := range m.retained() {
		limit := m.maxRetained(namespace)
		exceeds := limit.Bytes > 0 && is.Bytes > limit.Bytes || limit.Inodes > 0 && is.Inodes > limit.Inodes
		if namespace == "" || !exceeds {
			continue
		}
		of := func(kind volume.HoldKind) []Known {
			return m.sorted(func(a Known) bool {
				return a.isA(kind) && a.Namespace == namespace && (kind == volume.Released || !a.Unpublished.Add(m.minLifespan).After(now))
			}, unpublished)
		}
		if all := of(volume.Released); len(all) > 0 {
			first = append(first, all[0].ID)
		} else if id := m.byOutcome(of(volume.NoHold)); id != "" {
			first = append(first, id)
		}
	}
	return first
}

// repeated returns the first in order of each owner of which enough other pods' volumes stay.
func (m *model) repeated(now time.Time, kept map[volume.ID]bool, may map[string]volume.PerOwner) (first []volume.ID) {
	type key struct {
		namespace, kind string
		outcome         volume.Outcome
	}
	by := map[key][]Known{}
	for _, a := range m.sorted(func(a Known) bool { return a.Phase == volume.Retained && a.Owner.Kind != "Custom" }, unpublished) {
		k := key{a.Namespace, a.Owner.Kind, a.Outcome}
		by[k] = append(by[k], a)
	}
	for k, all := range by {
		limit := may[k.namespace]
		if limit == (volume.PerOwner{}) {
			continue
		}
		var pods, back []volume.PodUID // in the order of their first volumes, and from behind in that of their last ones
		for i := range all {
			if pod := all[i].Pod; !slices.Contains(pods, pod) {
				pods = append(pods, pod)
			}
			if pod := all[len(all)-1-i].Pod; !slices.Contains(back, pod) {
				back = append(back, pod)
			}
		}
		last := back[:min(limit.Last, len(back))]
		others := slices.DeleteFunc(pods, func(pod volume.PodUID) bool { return slices.Contains(last, pod) })
		stay := slices.Concat(last, others[:min(limit.First, len(others))])
		for _, a := range all {
			if !slices.Contains(stay, a.Pod) && !kept[a.ID] && !a.isA(volume.Pinned) && !a.Unpublished.Add(m.minLifespan).After(now) {
				first = append(first, a.ID)
				break
			}
		}
	}
	return first
}

// anyVolume returns a retained volume. Few have the same size, or were unpublished at the same time.
func anyVolume(rng *rand.Rand, id volume.ID, namespaces []string) Known {
	r := retained(string(id), time.Duration(rng.Int64N(int64(10*time.Hour))), time.Duration(rng.IntN(20))*time.Hour)
	r.Namespace = namespaces[rng.IntN(len(namespaces))]
	r.Outcome = anyOutcome(rng)
	if rng.IntN(2) == 0 {
		r = r.InArchive(epoch.Add(time.Duration(rng.IntN(3)) * time.Hour))
	}
	switch rng.IntN(10) {
	case 0, 1:
		r.Hold = volume.Hold{Kind: volume.Pinned, For: time.Duration(rng.Int64N(int64(20 * time.Hour)))}
	case 2:
		r.Hold = volume.Hold{Kind: volume.Released, For: time.Duration(rng.Int64N(int64(20 * time.Hour)))}
	case 3:
		r.Phase = volume.Deleting
	}
	size := volume.Size{Bytes: rng.Int64N(1<<20) * sector, Inodes: rng.Int64N(1 << 20)}
	if rng.IntN(4) == 0 || r.Phase == volume.Deleting {
		size = volume.Size{}
	}
	return Known{Record: r, Size: size}
}

// both adds a volume to a queue and to its model.
func (m *model) both(q *Index, a Known) {
	q.Put(a.Record)
	if a.Size != (volume.Size{}) {
		q.Measured(a.ID, a.Unpublished, a.Size)
	}
	m.volumes[a.ID] = a
}

func newModel(q *Index) *model {
	return &model{minLifespan: q.MinLifespan, fair: q.Fair, maxRetained: q.MaxRetained, volumes: map[volume.ID]Known{}}
}
