package handlers

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/model/api"

	"github.com/katbox/katbox/internal/model/volume"
)

// mostPods is how many pods, and how many namespaces, the usage shows. It counts up to twice as many at a time, so a million
// retained volumes take no more memory.
const mostPods = 1000

// usage answers with what occupies the disk.
func (a *answer) usage(ctx context.Context) error {
	occupied, err := a.h.count(ctx)
	if err != nil {
		return err
	}
	return a.JSON(http.StatusOK, occupied)
}

// count counts what occupies the disk, unless another one does. It is over before the answer is sent: who
// has that may ask again.
func (h *handler) count(ctx context.Context) (api.Usage, error) {
	release, ok := h.measurements.take()
	if !ok {
		return api.Usage{}, tooMany("the node is being measured, or a report made; try again in a moment")
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, measureLimit)
	defer cancel()
	space, err := h.Space()
	if err != nil {
		return api.Usage{}, err
	}
	u := newUsage()
	if err := h.countLive(ctx, u); err != nil {
		return api.Usage{}, err
	}
	if err := h.countRetained(ctx, u); err != nil {
		return api.Usage{}, err
	}
	return u.result(h.Node, space), nil
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
			size, err = h.measure(measuring, d.Record)
			known = err == nil
		}
		u.add(d.Record, api.PodUsage{Live: 1, LiveBytes: size.Bytes, Inodes: size.Inodes, Unmeasured: unmeasured(known)})
	}
	return nil
}

func (h *handler) measure(ctx context.Context, r volume.Record) (volume.Size, error) {
	defer h.LowPriority()()
	return h.Volumes.Usage(ctx, r, h.Pace.Wait)
}

// countRetained adds the retained volumes. None is measured for this.
func (h *handler) countRetained(ctx context.Context, u *usage) error {
	for selection := (volume.Selection{Limit: api.MostVolumes}); ; {
		if err := h.Pace.Wait(ctx); err != nil {
			return err
		}
		page, err := h.Volumes.List(ctx, selection)
		if err != nil {
			return err
		}
		for _, d := range page.Volumes {
			if d.Record.Pod == "" {
				continue // a claim's volume is on another disk
			}
			u.add(d.Record, api.PodUsage{Retained: 1, RetainedBytes: d.Size.Bytes, Inodes: d.Size.Inodes,
				Unmeasured: unmeasured(d.Size != volume.Size{})})
		}
		u.shrink()
		if page.Next.IsZero() {
			return nil
		}
		selection.Before = page.Next
	}
}

func unmeasured(known bool) int {
	if known {
		return 0
	}
	return 1
}

// usage are the sums for each pod, by its UID, and for each namespace.
type usage struct{ pods, namespaces sums }

func newUsage() *usage {
	return &usage{pods: sums{of: map[string]*api.PodUsage{}}, namespaces: sums{of: map[string]*api.PodUsage{}}}
}

// add adds a volume.
func (u *usage) add(r volume.Record, q api.PodUsage) {
	pod := u.pods.get(string(r.Pod))
	pod.PodUID, pod.Namespace, pod.Pod = string(r.Pod), cmp.Or(r.Namespace, pod.Namespace), cmp.Or(r.PodName, pod.Pod)
	addUsage(pod, q)
	namespace := u.namespaces.get(r.Namespace)
	namespace.Namespace = r.Namespace
	addUsage(namespace, q)
}

// shrink adds the smallest sums to the others, once there are twice as many as are shown. A pod that
// is met again later begins anew; its volumes are retained at about the same time, so that is rare.
func (u *usage) shrink() {
	u.pods.shrink()
	u.namespaces.shrink()
}

func (u *usage) result(node string, space volume.Space) api.Usage {
	result := api.Usage{
		Node: node, TotalBytes: space.Total.Bytes, FreeBytes: space.Free.Bytes,
		TotalInodes: space.Total.Inodes, FreeInodes: space.Free.Inodes, Pods: u.pods.cut(), Namespaces: u.namespaces.cut(),
	}
	if u.pods.left > 0 {
		result.Others, result.OtherPods = &u.pods.others, u.pods.left
	}
	if u.namespaces.left > 0 {
		result.Namespaces = append(result.Namespaces, u.namespaces.others)
	}
	return result
}

// sums are the largest sums, and the sum of those that were left out.
type sums struct {
	of     map[string]*api.PodUsage
	others api.PodUsage
	left   int
}

// get returns the sum with a key.
func (s *sums) get(key string) *api.PodUsage {
	sum, ok := s.of[key]
	if !ok {
		sum = &api.PodUsage{}
		s.of[key] = sum
	}
	return sum
}

func (s *sums) shrink() {
	if len(s.of) > 2*mostPods {
		s.cut()
	}
}

// cut leaves the largest sums, which it returns sorted.
func (s *sums) cut() []api.PodUsage {
	keys := slices.SortedFunc(maps.Keys(s.of), func(a, b string) int {
		p, q := s.of[a], s.of[b]
		return cmp.Or(cmp.Compare(q.LiveBytes+q.RetainedBytes, p.LiveBytes+p.RetainedBytes),
			cmp.Compare(q.Inodes, p.Inodes), strings.Compare(a, b))
	})
	largest := []api.PodUsage{}
	for i, key := range keys {
		if i < mostPods {
			largest = append(largest, *s.of[key])
			continue
		}
		addUsage(&s.others, *s.of[key])
		s.left++
		delete(s.of, key)
	}
	return largest
}

// addUsage adds what other volumes take.
func addUsage(p *api.PodUsage, q api.PodUsage) {
	p.Live += q.Live
	p.LiveBytes += q.LiveBytes
	p.Retained += q.Retained
	p.RetainedBytes += q.RetainedBytes
	p.Inodes += q.Inodes
	p.Unmeasured += q.Unmeasured
}
