package handlers

import (
	"context"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// hold changes what a person has decided about a volume.
func (f *fakeVolumes) hold(id volume.ID, h volume.Hold) (volume.Description, error) {
	v, err := f.get(id)
	if err != nil {
		return volume.Description{}, err
	}
	if v.Record.Phase != volume.Retained {
		return volume.Description{}, volume.ErrNotRetained
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	v.Record.Hold = h
	return v.Description, h.Check()
}

func (f *fakeVolumes) Pin(_ context.Context, id volume.ID, until time.Time, by, why string) (volume.Description, error) {
	v, err := f.get(id)
	if err != nil {
		return volume.Description{}, err
	}
	return f.hold(id, volume.Hold{Kind: volume.Pinned, For: until.Sub(v.Record.Unpublished), By: by, Why: why})
}

func (f *fakeVolumes) Unpin(_ context.Context, id volume.ID, _ string) (volume.Description, error) {
	return f.hold(id, volume.Hold{})
}

func (f *fakeVolumes) Release(_ context.Context, id volume.ID, by, why string) (volume.Description, error) {
	return f.hold(id, volume.Hold{Kind: volume.Released, For: time.Hour, By: by, Why: why})
}

func (f *fakeVolumes) Purge(_ context.Context, id volume.ID, by, why string) error {
	v, err := f.get(id)
	if err != nil {
		return err
	}
	if v.Record.Phase != volume.Retained {
		return volume.ErrNotRetained
	}
	v.lose(volume.ErrGone)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.purgedBy, f.purgedWhy = by, why
	delete(f.all, id)
	return nil
}

func (f *fakeVolumes) Gone(_ context.Context, s volume.GoneSelection) (volume.GonePage, error) {
	if f.onGone != nil {
		return f.onGone(s)
	}
	return volume.GonePage{}, nil
}
