package handlers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestLongPages: a gateway reads all of a list whose entries are as long as they can be, though it reads
// no answer of more than 4 MiB.
func TestLongPages(t *testing.T) {
	const count = 650
	hold := volume.Hold{
		Kind: volume.Pinned, For: time.Hour, By: strings.Repeat("<", volume.MaxHoldBy), Why: strings.Repeat("<", volume.MaxHoldWhy),
	}
	record := func(i int) volume.Record {
		return volume.Record{
			ID: volume.ID(fmt.Sprintf("csi-%064x", i)), Pod: testPod, Phase: volume.Retained, Unpublished: time.Unix(int64(i), 7), Hold: hold,
		}
	}
	n := newNode(t)
	n.h.Gateway = true
	n.volumes.onList = func(_ context.Context, s volume.Selection) (page volume.Page, err error) {
		for i := count; i > 0 && len(page.Volumes) < s.Limit; i-- {
			if r := record(i); s.Before.IsZero() || r.Key().Compare(s.Before) < 0 {
				page.Volumes = append(page.Volumes, volume.Description{Record: r})
			}
		}
		return page, nil
	}
	n.volumes.onGone = func(s volume.GoneSelection) (page volume.GonePage, err error) {
		for i := uint64(count); i > 0 && len(page.Tombstones) < s.Limit; i-- {
			if s.Below == 0 || i < s.Below {
				page.Tombstones = append(page.Tombstones, volume.Tombstone{Number: i, Record: record(int(i)), By: hold.By, Why: hold.Why})
			}
		}
		return page, nil
	}
	client := n.client.OnBehalf("alice", "a").Bounded(4 << 20)
	var listed, gone []string
	for q, more := (api.Query{Limit: api.MostVolumes}), true; more; {
		page, err := client.List(t.Context(), q)
		must(t, err)
		for _, v := range page.Items {
			listed = append(listed, v.ID)
		}
		q.Continue, more = page.Continue, page.Continue != ""
	}
	for q, more := (api.GoneQuery{Query: api.Query{Limit: api.MostVolumes}}), true; more; {
		page, err := client.Gone(t.Context(), q)
		must(t, err)
		for _, v := range page.Items {
			gone = append(gone, v.ID)
		}
		q.Continue, more = page.Continue, page.Continue != 0
	}
	for name, got := range map[string][]string{"retained": listed, "gone": gone} {
		if len(got) != count {
			t.Errorf("%s: %d volumes, want %d", name, len(got), count)
		}
		for i, id := range got {
			if want := string(record(count - i).ID); id != want {
				t.Fatalf("%s: number %d is %s, want %s", name, i, id, want)
			}
		}
	}
}
