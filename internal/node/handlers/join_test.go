package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
)

// inline are inline volumes with what the uplink asks for too.
type inline struct {
	*fakeVolumes
	holdings []volume.Holding
	paced    int
}

func (i *inline) Holdings(context.Context) ([]volume.Holding, error) { return i.holdings, nil }
func (i *inline) Pace(context.Context) error                         { i.paced++; return nil }
func (i *inline) Own(context.Context, volume.ID, volume.PodUID, volume.Owner) error {
	return nil
}

// fakeClaims are the volumes of claims. Their files are those of an inline volume.
type fakeClaims struct {
	all   []volume.Description
	err   error
	files func(context.Context) (*files.Reading, error)
}

func (f *fakeClaims) Retained(context.Context) ([]volume.Description, error) { return f.all, f.err }

func (f *fakeClaims) Read(ctx context.Context, id volume.ID) (*files.Reading, error) {
	if !slices.ContainsFunc(f.all, func(d volume.Description) bool { return d.Record.ID == id }) {
		return nil, fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
	}
	return f.files(ctx)
}

// claimAt describes the volume of a claim that was deleted then.
func claimAt(id, namespace string, seconds int64) volume.Description {
	return volume.Description{Claim: "data", Size: volume.Size{Bytes: 1 << 30}, Record: volume.Record{
		ID: volume.ID(id), Namespace: namespace, Phase: volume.Retained, Unpublished: time.Unix(seconds, 7),
		Owner: volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "uid-" + namespace, Kind: "PersistentVolumeClaim", Name: "data"},
	}}
}

// joined returns a node with inline volumes 1, 3 and 5 and with claims' volumes.
func joined(t *testing.T, claims *fakeClaims) (*node, *inline, Joined) {
	t.Helper()
	n := newNode(t)
	for _, number := range []int{1, 3, 5} {
		n.add(number)
	}
	i := &inline{fakeVolumes: n.volumes}
	j := Joined{Inline: i, Claims: func() Claims {
		if claims == nil {
			return nil
		}
		return claims
	}}
	n.h.Volumes = j
	return n, i, j
}

// TestJoinedPages: a list of both is in one order, whatever the limit is, and no volume is there twice or not at all.
func TestJoinedPages(t *testing.T) {
	claims := &fakeClaims{}
	for _, seconds := range []int64{2009, 2006, 2004, 2003, 2000} {
		claims.all = append(claims.all, claimAt(fmt.Sprintf("pvc-%d", seconds-2000), "etl", seconds))
	}
	claims.all = slices.Insert(claims.all, 2, claimAt("pvc-x", "other", 2005))
	n, _, _ := joined(t, claims)
	short := func(id string) string {
		if id[:3] == "pvc" {
			return id
		}
		return "csi-" + id[len(id)-1:]
	}
	want := []string{"pvc-9", "pvc-6", "csi-5", "pvc-4", "pvc-3", "csi-3", "csi-1", "pvc-0"}
	for limit := 1; limit <= len(want)+1; limit++ {
		var got []string
		q := api.Query{Namespace: "etl", Limit: limit}
		for {
			page, err := n.client.List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Items) > limit {
				t.Errorf("limit %d: a page has %d volumes", limit, len(page.Items))
			}
			for _, v := range page.Items {
				got = append(got, short(v.ID))
			}
			if q.Continue = page.Continue; q.Continue == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %v, want %v", limit, got, want)
		}
	}
	page, err := n.client.List(t.Context(), api.Query{Namespace: "etl", Pod: "data"})
	if err != nil {
		t.Fatal(err)
	}
	v := page.Items[slices.IndexFunc(page.Items, func(v api.Volume) bool { return v.ID == "pvc-9" })]
	if v.Claim != "data" || v.Pod != "" || v.PodUID != "" || *v.Bytes != 1<<30 || v.Inodes != nil || v.Owner.NamespaceUID != "uid-etl" {
		t.Errorf("%+v", v)
	}
}

// TestJoinedHoldings: both are counted together.
func TestJoinedHoldings(t *testing.T) {
	claims := &fakeClaims{all: []volume.Description{claimAt("pvc-2", "etl", 3000), claimAt("pvc-1", "etl", 1000), claimAt("pvc-3", "ci", 500)}}
	_, i, j := joined(t, claims)
	inlineOnes := volume.Holding{
		Namespace: "etl", NamespaceUID: "uid-etl", Verdict: volume.Confirmed, Volumes: 3, Newest: time.Unix(2000, 0), Oldest: time.Unix(1500, 0),
	}
	i.holdings = []volume.Holding{inlineOnes}
	all, err := j.Holdings(t.Context())
	slices.SortFunc(all, func(a, b volume.Holding) int { return b.Volumes - a.Volumes })
	want := inlineOnes
	want.Volumes, want.Newest, want.Oldest = 5, time.Unix(3000, 7), time.Unix(1000, 7)
	if err != nil || len(all) != 2 || all[0] != want || all[1].Namespace != "ci" || all[1].Volumes != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if i.holdings[0] != inlineOnes {
		t.Error("what others share was changed")
	}
}

// TestJoinedWithoutClaims: while there are no pools, or they do not answer, the inline volumes are there.
func TestJoinedWithoutClaims(t *testing.T) {
	for _, claims := range []*fakeClaims{nil, {err: errors.New("no answer")}} {
		_, i, j := joined(t, claims)
		i.holdings = []volume.Holding{{Volumes: 3}}
		page, err := j.List(t.Context(), volume.Selection{Limit: 10})
		if err != nil || len(page.Volumes) != 3 {
			t.Errorf("%v, %v", page, err)
		}
		if all, err := j.Holdings(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("%v, %v", all, err)
		}
		if _, err := j.Describe(t.Context(), "pvc-1"); !errors.Is(err, volume.ErrNotFound) {
			t.Error(err)
		}
		if claims == nil {
			if _, err := j.Read(t.Context(), "pvc-1"); !errors.Is(err, volume.ErrNotFound) {
				t.Error(err)
			}
		}
		if err := j.Purge(t.Context(), "pvc-1", "", ""); !errors.Is(err, volume.ErrNotFound) {
			t.Error(err)
		}
	}
}

// TestVolumeOfAClaim: it is described and read as inline ones are. How long it is kept is not said here.
func TestVolumeOfAClaim(t *testing.T) {
	claims := &fakeClaims{all: []volume.Description{claimAt("pvc-1", "etl", 3000)}}
	n, i, j := joined(t, claims)
	files3 := fmt.Sprintf("csi-%064x", 3)
	claims.files = func(ctx context.Context) (*files.Reading, error) {
		r, err := n.volumes.Read(ctx, volume.ID(files3))
		if err == nil {
			r.Volume = claims.all[0]
		}
		return r, err
	}
	v, err := n.client.Volume(t.Context(), "pvc-1")
	if err != nil || v.Claim != "data" {
		t.Errorf("%+v, %v", v, err)
	}
	list, err := n.client.Files(t.Context(), "pvc-1", api.FilesQuery{})
	if err != nil {
		t.Errorf("%+v, %v", list, err)
	}
	reading, err := j.Read(t.Context(), "pvc-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := reading.Pace.Wait(t.Context()); err != nil || i.paced == 0 {
		t.Errorf("it does not give way to calls: %d, %v", i.paced, err)
	}
	reading.Close()
	wants := func(err error) {
		t.Helper()
		said := (*api.Error)(nil)
		if !errors.As(err, &said) || said.Code != 400 {
			t.Errorf("%v", err)
		}
	}
	wants(n.client.Purge(t.Context(), "pvc-1", "over"))
	_, err = n.client.Release(t.Context(), "pvc-1", "over")
	wants(err)
	_, err = n.client.Pin(t.Context(), "pvc-1", time.Now().Add(time.Hour), "look")
	wants(err)
	_, err = n.client.Unpin(t.Context(), "pvc-1")
	wants(err)
	if err := n.client.Purge(t.Context(), files3, "over"); err != nil {
		t.Error(err)
	}
	usage, err := n.client.Usage(t.Context())
	if err != nil || len(usage.Pods) != 1 {
		t.Errorf("what is on another disk counts: %+v, %v", usage, err)
	}
}
