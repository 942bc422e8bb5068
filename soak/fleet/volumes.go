package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// errNoFiles: a volume that does not exist has nothing to read.
var errNoFiles = errors.New("the node is made up, and its volumes have no files")

// volumes are the volumes of a node, the newest first. They do not change.
type volumes struct {
	// files has the directories that stand for what they contain.
	files   string
	records []volume.Record
	held    []volume.Holding
}

// makeUp makes the volumes of a node up, the same in each run but for the time. The first nodes have the newest, so that a list asks
// those that are silent for a while.
func makeUp(node int, p part) *volumes {
	random := rand.New(rand.NewPCG(uint64(node), 15)) //nolint:gosec // it protects nothing
	namespaces := slices.Sorted(maps.Keys(p.Namespaces))
	now := time.Now().Truncate(time.Second)
	v := &volumes{files: p.Files}
	held := map[string]*volume.Holding{}
	for i := range p.Volumes {
		namespace := namespaces[i%len(namespaces)]
		retained := now.Add(-10*time.Minute - time.Duration(random.Int64N(int64(11*time.Hour))))
		if i == 0 {
			retained = now.Add(-time.Duration(node) * time.Second)
		}
		job := fmt.Sprintf("nightly-%d", 29_000_000+random.IntN(1000))
		v.records = append(v.records, volume.Record{
			ID:  volume.ID(fmt.Sprintf("csi-%016x%016x%016x%016x", random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64())),
			Pod: volume.PodUID(fmt.Sprintf("%08x-0000-4000-8000-%012x", random.Uint32(), random.Uint64()>>16)), Phase: volume.Retained,
			Namespace: namespace, PodName: fmt.Sprintf("%s-%05x", job, random.Uint32()>>12), VolumeName: "scratch", ServiceAccount: "default",
			Owner: volume.Owner{
				Verdict: volume.Confirmed, NamespaceUID: p.Namespaces[namespace], Kind: "Job", Name: job,
				UID: "0c8ef6ee-aaaa-4c65-9bbd-0123456789ab", Job: job,
			},
			Published: retained.Add(-time.Minute), Unpublished: retained, Lifespan: 12 * time.Hour,
		})
		h := held[namespace]
		if h == nil {
			h = &volume.Holding{Namespace: namespace, NamespaceUID: p.Namespaces[namespace], Verdict: volume.Confirmed,
				Newest: retained, Oldest: retained}
			held[namespace] = h
		}
		h.Volumes++
		if retained.After(h.Newest) {
			h.Newest = retained
		}
		if retained.Before(h.Oldest) {
			h.Oldest = retained
		}
	}
	slices.SortFunc(v.records, func(a, b volume.Record) int { return b.Key().Compare(a.Key()) })
	for _, h := range held {
		v.held = append(v.held, *h)
	}
	return v
}

// List returns a page.
func (v *volumes) List(_ context.Context, s volume.Selection) (page volume.Page, err error) {
	for _, r := range v.records {
		if !s.Before.IsZero() && r.Key().Compare(s.Before) >= 0 || !s.Selects(r) {
			continue
		}
		if len(page.Volumes) == s.Limit {
			page.Next = page.Volumes[s.Limit-1].Record.Key()
			break
		}
		page.Volumes = append(page.Volumes, describe(r))
	}
	return page, nil
}

func describe(r volume.Record) volume.Description {
	return volume.Description{Record: r, Size: volume.Size{Bytes: 1 << 20, Inodes: 7}, Deadline: r.Unpublished.Add(r.Lifespan)}
}

// Holdings counts the volumes by namespace.
func (v *volumes) Holdings(context.Context) ([]volume.Holding, error) { return v.held, nil }

// Describe describes a volume.
func (v *volumes) Describe(_ context.Context, id volume.ID) (volume.Description, error) {
	for _, r := range v.records {
		if r.ID == id {
			return describe(r), nil
		}
	}
	return volume.Description{}, volume.ErrNotFound
}

// Awake returns nothing: all volumes are retained.
func (v *volumes) Awake(context.Context) ([]volume.Description, error) { return nil, nil }

// Own notes nothing: no owner is asked for.
func (v *volumes) Own(context.Context, volume.ID, volume.PodUID, volume.Owner) error {
	return volume.ErrNotFound
}

// Pin pins nothing.
func (v *volumes) Pin(context.Context, volume.ID, time.Time, string, string) (volume.Description, error) {
	return volume.Description{}, errNoFiles
}

// Unpin unpins nothing.
func (v *volumes) Unpin(context.Context, volume.ID, string) (volume.Description, error) {
	return volume.Description{}, errNoFiles
}

// Release releases nothing.
func (v *volumes) Release(context.Context, volume.ID, string, string) (volume.Description, error) {
	return volume.Description{}, errNoFiles
}

// Purge deletes nothing.
func (v *volumes) Purge(context.Context, volume.ID, string, string) error { return errNoFiles }

// Gone returns nothing: all volumes are there.
func (v *volumes) Gone(context.Context, volume.GoneSelection) (volume.GonePage, error) {
	return volume.GonePage{}, nil
}

// Usage measures nothing.
func (v *volumes) Usage(context.Context, volume.Record, func(context.Context) error) (volume.Size, error) {
	return volume.Size{}, errNoFiles
}
