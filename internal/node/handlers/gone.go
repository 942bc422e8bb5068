package handlers

import (
	"context"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
)

// listGone answers with a page of the volumes that were deleted.
func (a *answer) listGone(ctx context.Context) error {
	selection, bad := parseGoneQuery(a.r.URL.Query())
	if bad != nil {
		return bad
	}
	return a.h.within(ctx, func(ctx context.Context) error {
		list := api.GoneList{Items: []api.GoneVolume{}}
		patience := a.patience()
		for len(list.Items) == 0 {
			page, err := a.h.Volumes.Gone(ctx, selection)
			if err != nil {
				return err
			}
			for _, t := range page.Tombstones {
				list.Items = append(list.Items, a.h.gone(t))
			}
			list.Continue = page.Next
			if selection.Below = page.Next; page.Next == 0 || time.Since(a.Began) >= patience {
				break
			}
		}
		return a.page(len(list.Items), func(entries int) any {
			if entries < len(list.Items) {
				list.Items, list.Continue = list.Items[:entries], list.Items[entries-1].Number
			}
			return list
		})
	})
}

// gone describes a tombstone in the words of the API.
func (h *handler) gone(t volume.Tombstone) api.GoneVolume {
	g := api.GoneVolume{
		Volume: h.volume(volume.Description{Record: t.Record, Size: t.Size}),
		Number: t.Number, Reason: t.Reason.String(), Early: t.Broken(), By: t.By, Why: t.Why,
		Promised: duration.Format(t.Record.Keep().Round(time.Second)), Kept: duration.Format(t.Kept.Round(time.Second)),
	}
	g.Phase = api.PhaseGone
	if gone := known(t.Gone); gone != nil {
		g.GoneAt = *gone
	}
	if g.Early {
		g.Factor, g.FreeBytes, g.FreeInodes = t.Factor, t.Free.Bytes, t.Free.Inodes
	}
	return g
}
