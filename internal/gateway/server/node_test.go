package server

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/scratch"
)

// nodeVolumes are the volumes of a node. Their files are real.
type nodeVolumes struct {
	dir *scratch.Dir

	mu   sync.Mutex
	all  map[volume.ID]volume.Description
	lost map[volume.ID]context.CancelCauseFunc
	gone []volume.Tombstone
}

// put makes a retained volume, and returns its name and its directory.
func (n *testNode) put(number int, adjust ...func(*volume.Record)) (name, path string) {
	n.c.t.Helper()
	r := volume.Record{
		ID: volume.ID(fmt.Sprintf("csi-%064x", number)), Pod: volume.PodUID(fmt.Sprintf("pod-%s-%d", n.name, number)), Namespace: "ci",
		PodName: fmt.Sprintf("job-%d-x7k2p", number), VolumeName: "scratch", Phase: volume.Retained,
		Published: time.Unix(2000, 0), Unpublished: time.Unix(int64(3000+number), 7),
		Owner: volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ci-2"},
	}
	for _, change := range adjust {
		change(&r)
	}
	n.volumes.mu.Lock()
	n.volumes.all[r.ID] = volume.Description{Record: r, Deadline: time.Unix(9000, 0)}
	n.volumes.mu.Unlock()
	path = n.volumes.dir.Path(r.Place())
	must(n.c.t, os.MkdirAll(path, 0o755))
	return resource.Name(api.Volume{Pod: r.PodName, Node: n.name, ID: string(r.ID)}), path
}

func (v *nodeVolumes) List(_ context.Context, s volume.Selection) (volume.Page, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var page volume.Page
	for _, d := range v.all {
		if s.Selects(d.Record) {
			page.Volumes = append(page.Volumes, d)
		}
	}
	slices.SortFunc(page.Volumes, func(a, b volume.Description) int { return b.Record.Key().Compare(a.Record.Key()) })
	if len(page.Volumes) > s.Limit {
		page.Volumes = page.Volumes[:s.Limit]
		page.Next = page.Volumes[s.Limit-1].Record.Key()
	}
	return page, nil
}

func (v *nodeVolumes) Describe(_ context.Context, id volume.ID) (volume.Description, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d, ok := v.all[id]
	if !ok {
		return d, fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
	}
	return d, nil
}

func (v *nodeVolumes) Awake(context.Context) ([]volume.Description, error) { return nil, nil }

func (v *nodeVolumes) Read(ctx context.Context, id volume.ID) (*files.Reading, error) {
	d, err := v.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	tree, err := v.dir.Tree(d.Record.Place())
	if err != nil {
		return nil, err
	}
	lost, lose := context.WithCancelCause(context.Background())
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lost[id] = lose
	return &files.Reading{Volume: d, Tree: tree, Lost: lost, Close: sync.OnceFunc(func() { tree.Close() })}, nil
}

// hold changes what a person has decided about a volume.
func (v *nodeVolumes) hold(id volume.ID, kind volume.HoldKind, until time.Time, by, why string) (volume.Description, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d, ok := v.all[id]
	if !ok {
		return d, fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
	}
	d.Record.Hold = volume.Hold{}
	if kind != volume.NoHold {
		d.Record.Hold = volume.Hold{Kind: kind, For: until.Sub(d.Record.Unpublished), By: by, Why: why}
	}
	v.all[id] = d
	return d, nil
}

func (v *nodeVolumes) Pin(_ context.Context, id volume.ID, until time.Time, by, why string) (volume.Description, error) {
	return v.hold(id, volume.Pinned, until, by, why)
}

func (v *nodeVolumes) Unpin(_ context.Context, id volume.ID, _ string) (volume.Description, error) {
	return v.hold(id, volume.NoHold, time.Time{}, "", "")
}

func (v *nodeVolumes) Release(_ context.Context, id volume.ID, by, why string) (volume.Description, error) {
	return v.hold(id, volume.Released, time.Unix(8000, 0), by, why)
}

func (v *nodeVolumes) Purge(_ context.Context, id volume.ID, by, why string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	d, ok := v.all[id]
	if !ok {
		return fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
	}
	delete(v.all, id)
	v.gone = append(v.gone, volume.Tombstone{
		Number: uint64(len(v.gone) + 1), Record: d.Record, Gone: time.Unix(8500, 0), Kept: time.Hour, Reason: volume.Purged, By: by, Why: why,
	})
	return nil
}

func (v *nodeVolumes) Gone(_ context.Context, s volume.GoneSelection) (volume.GonePage, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var page volume.GonePage
	for _, t := range slices.Backward(v.gone) {
		if (s.Below == 0 || t.Number < s.Below) && s.Selects(t.Record) {
			page.Tombstones = append(page.Tombstones, t)
		}
	}
	if len(page.Tombstones) > s.Limit {
		page.Tombstones = page.Tombstones[:s.Limit]
		page.Next = page.Tombstones[s.Limit-1].Number
	}
	return page, nil
}

func (v *nodeVolumes) Usage(context.Context, volume.Record, func(context.Context) error) (volume.Size, error) {
	return volume.Size{}, nil
}

// lose ends the reading of a volume.
func (v *nodeVolumes) lose(number int, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lost[volume.ID(fmt.Sprintf("csi-%064x", number))](why)
}
