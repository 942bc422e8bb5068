package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/volume"
)

// mostPods is how many pods the usage shows. It counts up to twice as many at a time, so a million
// retained volumes take no more memory.
const mostPods = 1000

// usage answers with what occupies the disk.
func (a *answer) usage(ctx context.Context) error {
	release, ok := a.h.measurements.take()
	if !ok {
		return tooMany("the node is being measured, or a report made; try again in a moment")
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, measureLimit)
	defer cancel()
	space, err := a.h.Space()
	if err != nil {
		return err
	}
	u := &usage{pods: map[volume.PodUID]*PodUsage{}}
	if err := a.h.countLive(ctx, u); err != nil {
		return err
	}
	if err := a.h.countRetained(ctx, u); err != nil {
		return err
	}
	return a.json(http.StatusOK, u.result(a.h.Node, space))
}

// countLive adds the volumes that are published or changing. It measures them as long as there is
// time; the rest is unmeasured.
func (h *handler) countLive(ctx context.Context, u *usage) error {
	awake, err := h.Volumes.Awake(ctx)
	if err != nil {
		return err
	}
	// Half of the time is for the volumes that are retained.
	deadline, _ := ctx.Deadline()
	measuring, cancel := context.WithDeadline(ctx, deadline.Add(-measureLimit/2))
	defer cancel()
	for _, d := range awake {
		if !d.Record.Phase.Live() {
			continue
		}
		size, known := volume.Size{}, false
		if measuring.Err() == nil {
			size, err = h.measure(measuring, d.Record.Place())
			known = err == nil
		}
		pod := u.pod(d.Record)
		pod.Live++
		pod.LiveBytes += size.Bytes
		pod.Inodes += size.Inodes
		if !known {
			pod.Unmeasured++
		}
	}
	return nil
}

func (h *handler) measure(ctx context.Context, place volume.Place) (volume.Size, error) {
	defer h.LowPriority()()
	return h.Volumes.Usage(ctx, place, h.Pace.Wait)
}

// countRetained adds the retained volumes. None is measured for this.
func (h *handler) countRetained(ctx context.Context, u *usage) error {
	for selection := (volume.Selection{Limit: mostVolumes}); ; {
		if err := h.Pace.Wait(ctx); err != nil {
			return err
		}
		page, err := h.Volumes.List(ctx, selection)
		if err != nil {
			return err
		}
		for _, d := range page.Volumes {
			pod := u.pod(d.Record)
			pod.Retained++
			pod.RetainedBytes += d.Size.Bytes
			pod.Inodes += d.Size.Inodes
			if d.Size == (volume.Size{}) {
				pod.Unmeasured++
			}
		}
		u.shrink()
		if page.Next.IsZero() {
			return nil
		}
		selection.Before = page.Next
	}
}

// usage is the sum for each pod.
type usage struct {
	pods map[volume.PodUID]*PodUsage
	// others is the sum of the pods that were left out.
	others PodUsage
	left   int
}

// pod returns the sum of a volume's pod.
func (u *usage) pod(r volume.Record) *PodUsage {
	pod, ok := u.pods[r.Pod]
	if !ok {
		pod = &PodUsage{PodUID: string(r.Pod)}
		u.pods[r.Pod] = pod
	}
	pod.Namespace, pod.Pod = cmp.Or(r.Namespace, pod.Namespace), cmp.Or(r.PodName, pod.Pod)
	return pod
}

// shrink adds the smallest pods to the others, once there are twice as many as are shown. A pod that
// is met again later begins anew; its volumes are retained at about the same time, so that is rare.
func (u *usage) shrink() {
	if len(u.pods) > 2*mostPods {
		u.cut()
	}
}

// cut leaves the largest pods, which it returns sorted.
func (u *usage) cut() []*PodUsage {
	sorted := make([]*PodUsage, 0, len(u.pods))
	for _, pod := range u.pods {
		sorted = append(sorted, pod)
	}
	slices.SortFunc(sorted, func(p, q *PodUsage) int {
		return cmp.Or(cmp.Compare(q.LiveBytes+q.RetainedBytes, p.LiveBytes+p.RetainedBytes),
			cmp.Compare(q.Inodes, p.Inodes), strings.Compare(p.PodUID, q.PodUID))
	})
	if len(sorted) <= mostPods {
		return sorted
	}
	for _, pod := range sorted[mostPods:] {
		u.others.add(pod)
		u.left++
		delete(u.pods, volume.PodUID(pod.PodUID))
	}
	return sorted[:mostPods]
}

func (p *PodUsage) add(q *PodUsage) {
	p.Live += q.Live
	p.LiveBytes += q.LiveBytes
	p.Retained += q.Retained
	p.RetainedBytes += q.RetainedBytes
	p.Inodes += q.Inodes
	p.Unmeasured += q.Unmeasured
}

func (u *usage) result(node string, space volume.Space) Usage {
	result := Usage{
		Node: node, TotalBytes: space.Total.Bytes, FreeBytes: space.Free.Bytes,
		TotalInodes: space.Total.Inodes, FreeInodes: space.Free.Inodes, Pods: []PodUsage{},
	}
	for _, pod := range u.cut() {
		result.Pods = append(result.Pods, *pod)
	}
	if u.left > 0 {
		result.Others, result.OtherPods = &u.others, u.left
	}
	return result
}
