package retained

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestLifeOfAVolume: it is in the index from its first publish to its tombstone, in the lists while it is retained, and
// goes only while it is at rest.
func TestLifeOfAVolume(t *testing.T) {
	const id = volume.ID(kubeletID)
	place := volume.Place{Pod: kubeletPod, ID: id}
	live := volume.Record{ID: id, Pod: kubeletPod, Namespace: "ci", Phase: volume.Published, Targets: []volume.Target{{Path: "/t"}}}
	kept := live.Retain(epoch, time.Hour)
	begun, ended := kept, kept
	begun.Phase = volume.Deleting
	ended.Outcome = volume.Failed
	x := &Index{Fair: true}
	size := volume.Size{Bytes: 512, Inodes: 2}
	first, second, third := new(int), new(int), new(int)
	for _, step := range []struct {
		name   string
		do     func()
		known  volume.Phase
		listed bool
		goes   bool
		size   volume.Size
	}{
		{name: "a first publish is asked for", do: func() { x.Publish(place, first) }},
		{name: "and another one", do: func() { x.Publish(place, second) }},
		{name: "the first one has ended", do: func() { x.Set(id, &live, first) }},
		{name: "the second one has ended", do: func() { x.Set(id, &live, second) }, known: volume.Published},
		{name: "retained", do: func() { x.Set(id, &kept, second) }, known: volume.Retained, listed: true},
		{name: "measured", do: func() { x.Measured(id, epoch, size) }, known: volume.Retained, listed: true, size: size},
		{name: "its outcome is known", do: func() { x.Set(id, &ended, second) }, known: volume.Retained, listed: true, size: size},
		{name: "asleep", do: func() { x.Rest(ended, time.Time{}, 0) }, known: volume.Retained, listed: true, goes: true, size: size},
		{name: "awake", do: func() { x.Wake(id) }, known: volume.Retained, listed: true, size: size},
		{name: "asleep again", do: func() { x.Rest(ended, time.Time{}, 0) }, known: volume.Retained, listed: true, goes: true, size: size},
		{name: "attached", do: func() { x.Keep(id, true) }, known: volume.Retained, listed: true, size: size},
		{name: "not attached", do: func() { x.Keep(id, false) }, known: volume.Retained, listed: true, goes: true, size: size},
		{name: "a publish is asked for", do: func() { x.Publish(place, third); x.Wake(id) }, known: volume.Retained, size: size},
		{name: "old news", do: func() { x.Set(id, &ended, second) }, known: volume.Retained, size: size},
		{name: "it was refused", do: func() { x.Set(id, &ended, third) }, known: volume.Retained, listed: true, size: size},
		{name: "to be deleted", do: func() { x.Order(id) }, known: volume.Retained, size: size},
		{name: "its deletion has begun", do: func() { x.Set(id, &begun, third) }, known: volume.Deleting},
		{name: "it could not be deleted", do: func() { x.Rest(begun, epoch.Add(time.Minute), 1) }, known: volume.Deleting},
		{name: "it is tried again", do: func() { x.Resume(epoch.Add(time.Minute)) }, known: volume.Deleting, goes: true},
		{name: "to be deleted again", do: func() { x.Order(id) }, known: volume.Deleting},
		{name: "its tombstone is written", do: func() { x.Set(id, nil, third) }},
		{name: "its actor has ended", do: func() { x.Forget(id) }},
	} {
		step.do()
		k, _ := x.Look(id)
		page, _ := x.Newest(volume.Selection{Limit: 9}, 9)
		_, goes := x.Over()
		if k.Phase != step.known || len(page) == 1 != step.listed || x.IsListed(id) != step.listed || x.Listed() != len(page) ||
			len(x.Holdings()) != len(page) || goes != step.goes || k.Size != step.size {
			t.Errorf("%s: %+v, listed %d, goes %t, holdings %v", step.name, k, len(page), goes, x.Holdings())
		}
		if step.name != "its actor has ended" && !x.Has(place) {
			t.Errorf("%s: it is not in the index", step.name)
		}
	}
	checkEmpty(t, x)
}

// plain is what a plain list keeps of a volume.
type plain struct {
	record                     volume.Record
	wanted, going, awake, kept bool
	publish                    int
	until                      time.Time
}

// TestIndexAgainstPlainList does anything with few volumes, and compares what is listed and what may go with a plain list.
func TestIndexAgainstPlainList(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		x, list := &Index{Fair: true}, map[volume.ID]plain{}
		for step := range 3000 {
			id := []volume.ID{kubeletID, "v", "w", volume.ID(fmt.Sprint("n", rng.IntN(9)))}[rng.IntN(4)]
			is, known := list[id]
			record := anyVolume(rng, id, []string{"a", "b"}).Record
			if rng.IntN(3) == 0 {
				record.Phase, record.Unpublished = volume.Published, time.Time{}
			}
			switch rng.IntN(9) {
			case 0:
				is.wanted, is.publish = true, step
				is.record.ID, is.record.Pod = id, "pod"
				x.Publish(record.Place(), step)
			case 1:
				after := []int{is.publish, 0}[rng.IntN(2)]
				x.Set(id, &record, after)
				if !is.wanted || after == is.publish {
					is.record, is.wanted, is.awake, is.going = record, false, true, is.going && !record.Phase.Live()
				}
			case 2:
				if record.Phase.Live() {
					continue
				}
				then := []time.Time{{}, epoch.Add(time.Duration(rng.IntN(9)) * time.Hour)}[rng.IntN(2)]
				tries := 0
				if !then.IsZero() {
					tries = 1
				}
				x.Rest(record, then, tries)
				is = plain{record: record, kept: is.kept, until: then}
			case 3:
				x.Wake(id)
				if !known {
					continue
				}
				is.awake, is.until = true, time.Time{}
			case 4:
				is.kept = rng.IntN(2) == 0
				x.Keep(id, is.kept)
				if !known {
					continue
				}
			case 5:
				if known {
					x.Order(id)
					is.going, is.awake = true, true
				}
			case 6:
				x.Forget(id)
				delete(list, id)
				continue
			case 7:
				x.Set(id, nil, is.publish)
				if known {
					is.record, is.wanted, is.awake = volume.Record{ID: id, Pod: is.record.Pod}, false, true
				}
			case 8:
				now := epoch.Add(time.Duration(rng.IntN(9)) * time.Hour)
				x.Resume(now)
				for id, is := range list {
					if !is.until.After(now) && is.atRest() {
						is.until = time.Time{}
						list[id] = is
					}
				}
				is = list[id]
			}
			if is.record.ID == "" {
				continue
			}
			list[id] = is
			comparePlain(t, x, list)
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
		for id := range list {
			x.Forget(id)
		}
		checkEmpty(t, x)
	}
}

func (p *plain) atRest() bool {
	return p.record.Phase != volume.Unknown && !p.record.Phase.Live() && !p.wanted && !p.going && !p.awake && !p.kept
}

func comparePlain(t *testing.T, x *Index, list map[volume.ID]plain) {
	t.Helper()
	var listed, may []volume.ID
	waiting := 0
	for id, is := range list {
		if is.record.Phase == volume.Retained && !is.wanted && !is.going {
			listed = append(listed, id)
		}
		switch {
		case !is.atRest():
		case is.until.IsZero():
			may = append(may, id)
		default:
			waiting++
		}
	}
	page, _ := x.Newest(volume.Selection{Limit: 100}, 100)
	got := map[volume.ID]bool{}
	for _, k := range page {
		got[k.ID] = true
	}
	var heaps []volume.ID
	for _, h := range x.classes {
		for _, e := range h.entries {
			heaps = append(heaps, e.volumeID())
		}
	}
	slices.Sort(listed)
	slices.Sort(may)
	slices.Sort(heaps)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, listed) || len(page) != len(listed) {
		t.Errorf("listed %v, want %v", names, listed)
	}
	if !slices.Equal(heaps, may) || x.Waiting() != waiting || x.Len() != len(list) {
		t.Errorf("%v may go, want %v; %d wait, want %d; %d known, want %d", heaps, may, x.Waiting(), waiting, x.Len(), len(list))
	}
}
