package handlers

import (
	"context"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestGone: what is asked for, and how it is told.
func TestGone(t *testing.T) {
	n := newNode(t)
	var asked volume.GoneSelection
	pages := 0
	tombstone := volume.Tombstone{
		Number: 7, Record: volume.Record{
			ID: "csi-1", Pod: testPod, Namespace: "etl", PodName: "job", Phase: volume.Deleting, Outcome: volume.Failed,
			Unpublished: time.Unix(2000, 0), Lifespan: 12 * time.Hour,
		},
		Size: volume.Size{Bytes: 10, Inodes: 2}, Gone: time.Unix(9000, 0), Kept: 7000*time.Second + 1, Reason: volume.ForBytes,
		Factor: 0.25, Free: volume.Size{Bytes: 3, Inodes: 4},
	}
	n.volumes.onGone = func(s volume.GoneSelection) (volume.GonePage, error) {
		asked = s
		if pages++; pages == 1 { // a page that holds nothing is not the end
			return volume.GonePage{Next: 9}, nil
		}
		return volume.GonePage{Tombstones: []volume.Tombstone{tombstone}, Next: 7}, nil
	}
	tenancy := &volume.Tenancy{UID: "u", Since: time.Unix(1, 0).UTC()}
	q := api.GoneQuery{
		Query: api.Query{Namespace: "etl", Tenancy: tenancy, Pod: "job", PodUID: "p", Job: "j", Limit: 3},
		ID:    "csi-1", Continue: 11,
	}
	list, err := n.client.Gone(t.Context(), q)
	must(t, err)
	if len(list.Items) != 1 || list.Continue != 7 || pages != 2 {
		t.Fatalf("%+v after %d pages", list, pages)
	}
	want := volume.GoneSelection{
		Selection: volume.Selection{Namespace: "etl", Tenancy: tenancy, PodName: "job", Pod: "p", Job: "j", Limit: 3}, ID: "csi-1", Below: 9,
	}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("asked for %+v, want %+v", asked, want)
	}
	g := list.Items[0]
	if g.ID != "csi-1" || g.Pod != "job" || g.Phase != "Gone" || g.Number != 7 || !g.GoneAt.Equal(tombstone.Gone) || g.Reason != "bytes" ||
		g.Promised != "12h" || g.Kept != "1h56m40s" || !g.Early || g.Factor != 0.25 || g.FreeBytes != 3 || g.FreeInodes != 4 || *g.Bytes != 10 ||
		g.Outcome != "Failed" || g.ExpiresAt != nil {
		t.Errorf("%+v", g)
	}
	tombstone.Reason, tombstone.By, tombstone.Why = volume.Purged, "alice", "a secret"
	if list, err = n.client.Gone(t.Context(), api.GoneQuery{}); err != nil || asked.Limit != 500 {
		t.Fatalf("%+v, %v", asked, err)
	}
	if g = list.Items[0]; g.Early || g.Factor != 0 || g.FreeBytes != 0 || g.By != "alice" || g.Why != "a secret" || g.Reason != "purged" {
		t.Errorf("%+v", g)
	}
	for _, query := range []string{"before=x", "before=-1", "limit=0", "since=2026-11-22T03:04:05Z", "x=1"} {
		answer, err := n.wire.RoundTrip(mustRequest(t, "http://katbox/v1/gone?"+query))
		must(t, err, answer.Body.Close())
		if answer.StatusCode != 400 {
			t.Errorf("%s: code %d", query, answer.StatusCode)
		}
	}
}

func mustRequest(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, url, nil)
	must(t, err)
	return r
}
