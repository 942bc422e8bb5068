package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// The bounds of what the seed decides and the workload says nothing about.
const (
	latestDeletion  = 50 * time.Millisecond
	latestCancel    = 5 * time.Millisecond
	longestOvertake = 5 * time.Millisecond
)

// Pod decides about the pod with the given index, from 0 on.
func (p Plan) Pod(index int) Pod {
	r := p.stream("pod", uint64(index))
	pod := Pod{
		Index:     index,
		UID:       newUID(r),
		Namespace: p.namespace("namespace", uint64(index)),
		Name:      fmt.Sprintf("soak-%d", index),
		Arrival:   p.arrival(index),
		Length:    p.length(index),
		Bad:       p.bad(index),
	}
	early, deletion := chance(r, p.workload.DeletedEarly), upTo(r, latestDeletion)
	pod.Failed = chance(p.stream("failed", uint64(index)), p.workload.Failed)
	pod.Owner = p.owner(pod)
	inline := int(between(r, int64(p.workload.Volumes.Min), int64(p.workload.Volumes.Max)))
	for i := range inline {
		name := fmt.Sprintf("data-%d", i)
		v := p.volume(p.stream("volume", uint64(index), uint64(i)), Volume{Name: name, ID: volumeID(name, pod.UID)})
		v.OnFailure = chance(p.stream("onFailure", uint64(index), uint64(i)), p.workload.Volumes.OnFailure)
		p.limit(&v, index, i)
		p.tighten(&v, index, i)
		p.decide(&v, index, i)
		pod.Volumes = append(pod.Volumes, v)
	}
	if t, ok := p.troubles[index]; ok {
		v := &pod.Volumes[t.of(inline)]
		v.Trouble, v.RemovedAfter, v.PinnedAfter, v.PinnedFor, v.ReleasedAfter = &t.fault, 0, 0, 0, 0
		v.AttachedAfter, v.AttachedFor = 0, 0
		early = false
	}
	if early {
		pod.DeletedEarly = deletion
	}
	pod.Again = p.again(pod)
	r = p.stream("persistent", uint64(index))
	if chance(r, p.workload.Volumes.Persistent) {
		handle := p.handle(between(r, 0, int64(p.workload.Volumes.Pool)-1))
		pod.Volumes = append(pod.Volumes, p.volume(r, Volume{Name: handle, ID: handle, Persistent: true}))
	}
	return pod
}

// namespaces are those that the pods are in.
var namespaces = []string{"soak-a", "soak-b", "soak-c"}

// Namespaces are all that the pods of a run are in.
func (p Plan) Namespaces() []string { return slices.Clone(namespaces) }

// namespace draws one of them.
func (p Plan) namespace(purpose string, numbers ...uint64) string {
	return namespaces[between(p.stream(purpose, numbers...), 0, int64(len(namespaces))-1)]
}

// again decides when a pod comes again: in the first quarter of the lifespan, so
// that its volumes are still there. None does that has an owner, that is deleted early, that a fault
// befalls, or of whose volumes a person removes, pins or releases one, or another pod attaches one.
func (p Plan) again(pod Pod) time.Duration {
	r := p.stream("again", uint64(pod.Index))
	again, after := chance(r, p.workload.Again), upTo(r, max(4, p.workload.Driver.Lifespan.D())/4)
	unfit := func(v Volume) bool {
		return v.Trouble != nil || v.RemovedAfter > 0 || v.PinnedAfter > 0 || v.ReleasedAfter > 0 || v.AttachedAfter > 0
	}
	if !again || p.workload.Drain || pod.DeletedEarly > 0 || pod.Owner != (Owner{}) || slices.ContainsFunc(pod.Volumes, unfit) {
		return 0
	}
	return after
}

// decide decides what a person does with a volume: in the first half of its lifespan,
// so that it does not expire before.
func (p Plan) decide(v *Volume, pod, volume int) {
	lifespan := max(2, p.workload.Driver.Lifespan.D())
	draw := func(purpose string, share float64) (bool, time.Duration) {
		r := p.stream(purpose, uint64(pod), uint64(volume))
		return chance(r, share), upTo(r, lifespan/2)
	}
	removed, removal := draw("removal", p.workload.Reading.Removed)
	pinned, pin := draw("pin", p.workload.Reading.Pinned)
	released, release := draw("release", p.workload.Reading.Released)
	attached, attachment := draw("attach", p.workload.Reading.Attached)
	switch {
	case removed:
		v.RemovedAfter = removal
	case pinned:
		v.PinnedAfter, v.PinnedFor = pin, lifespan
	case released:
		v.ReleasedAfter = release
	case attached:
		v.AttachedAfter = attachment/2 + 1
		v.AttachedFor = upTo(p.stream("attached", uint64(pod), uint64(volume)), lifespan/2)
	}
}

// handle is the volume handle of one of the pool's volumes.
func (p Plan) handle(n int64) string { return "pvc-" + newUID(p.stream("pool", uint64(n))) }

// volume decides about a volume that has its names already.
func (p Plan) volume(r *rand.Rand, v Volume) Volume {
	v.ReadOnly = chance(r, p.workload.Volumes.ReadOnly)
	v.Publish = p.call(r)
	v.Unpublish = p.call(r)
	reordered, overtaken := chance(r, p.workload.Calls.Reordered), between(r, -int64(longestOvertake), int64(longestOvertake))
	if reordered {
		v.Unpublish.Reordered, v.Unpublish.Overtaken = true, time.Duration(overtaken)
	}
	v.Content = p.content(r)
	return v
}

// call decides about a call. Each number is drawn whether it is needed or not.
func (p Plan) call(r *rand.Rand) Call {
	doubled, together := chance(r, p.workload.Calls.Doubled), chance(r, 0.5)
	cancelled, after := chance(r, p.workload.Calls.Cancelled), upTo(r, latestCancel)
	var c Call
	switch {
	case doubled && together:
		c.Repeat = TwiceTogether
	case doubled:
		c.Repeat = TwiceInTurn
	}
	if cancelled {
		c.CancelAfter = after
	}
	return c
}

func (p Plan) content(r *rand.Rand) Content {
	c := p.workload.Contents
	return Content{
		Marker:  fmt.Sprintf("%016x", r.Uint64()),
		Seed:    r.Uint64(),
		Files:   int(between(r, 0, int64(c.Files))),
		Bytes:   between(r, 0, int64(c.Bytes)),
		Deep:    chance(r, c.Deep),
		Names:   chance(r, c.Names),
		Sparse:  chance(r, c.Sparse),
		Links:   chance(r, c.Links),
		Modes:   chance(r, c.Modes),
		Special: chance(r, c.Special),
	}
}

// bad decides about the calls with bad input.
func (p Plan) bad(index int) []BadCall {
	r := p.stream("bad", uint64(index))
	whole, part := math.Modf(p.workload.Calls.Bad)
	if chance(r, part) {
		whole++
	}
	var calls []BadCall
	for range int(whole) {
		calls = append(calls, BadCall(r.Uint64()))
	}
	return calls
}
