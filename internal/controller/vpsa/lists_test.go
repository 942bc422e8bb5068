package vpsa

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// small is the page of these tests.
const small = 100

func paging(t *testing.T, w *wire) array.Array {
	t.Helper()
	c := newClient(t, w)
	c.(*client).page = small
	return c
}

// TestLists visits more volumes than a page has, on arrays that page, that do not, and that do so badly.
func TestLists(t *testing.T) {
	strip := func(names ...string) func(*http.Request) {
		return func(r *http.Request) {
			query := r.URL.Query()
			for _, name := range names {
				query.Del(name)
			}
			r.URL.RawQuery = query.Encode()
		}
	}
	nothing := func(*http.Request) {}
	for _, tt := range []struct {
		name     string
		volumes  int
		change   func(*http.Request)
		requests int
	}{
		{"none", 0, nothing, 1},
		{"few", 7, nothing, 1},
		{"a page but one", small - 1, nothing, 1},
		{"a page", small, nothing, 2},
		{"two pages", 2*small - 1, nothing, 3},
		{"many", 10 * small, nothing, 11},
		{"many, whatever the limit", 10 * small, strip("limit"), 1},
		{"many, whatever the start", 3 * small, strip("start"), 3},
		{"many, whatever is asked for", 3 * small, strip("start", "limit"), 1},
		{"a page, whatever is asked for", small, strip("start", "limit"), 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newArray(t, fakevpsa.Options{})
			if tt.volumes > 0 {
				if err := a.Seed("v", tt.volumes, 1, true); err != nil {
					t.Fatal(err)
				}
			}
			w := &wire{array: a, do: func(_ int, r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
				tt.change(r)
				return pass()
			}}
			var got []string
			err := paging(t, w).Volumes(within(t), func(part []array.Volume) error {
				if len(part) == 0 || len(part) > small {
					t.Errorf("a page has %d volumes", len(part))
				}
				for _, v := range part {
					got = append(got, v.ID)
				}
				return nil
			})
			slices.Sort(got)
			if err != nil || len(slices.Compact(got)) != tt.volumes || len(got) != tt.volumes || w.count() != tt.requests {
				t.Errorf("%d volumes, %d of them different, in %d requests, %v; want %d in %d",
					len(got), len(slices.Compact(got)), w.count(), err, tt.volumes, tt.requests)
			}
		})
	}
}

// TestListChanges deletes volumes of the first page while the list is read. Those that stay are all seen.
func TestListChanges(t *testing.T) {
	a := newArray(t, fakevpsa.Options{})
	if err := a.Seed("v", 3*small, 1, true); err != nil {
		t.Fatal(err)
	}
	w := &wire{array: a, do: func(n int, _ *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		if n == 2 {
			for i := 1; i <= 5; i++ {
				if err := a.Remove(fmt.Sprintf("volume-%08x", i)); err != nil {
					t.Error(err)
				}
			}
		}
		return pass()
	}}
	seen := map[string]int{}
	err := paging(t, w).Volumes(within(t), func(part []array.Volume) error {
		for _, v := range part {
			seen[v.ID]++
		}
		return nil
	})
	for _, v := range a.Volumes() {
		if seen[v.ID] != 1 {
			t.Errorf("volume %s was seen %d times", v.ID, seen[v.ID])
		}
	}
	if err != nil || len(seen) != 3*small {
		t.Errorf("%d volumes, %v", len(seen), err)
	}
}

func TestVisitorEndsTheList(t *testing.T) {
	a := newArray(t, fakevpsa.Options{})
	if err := a.Seed("v", 2*small, 1, true); err != nil {
		t.Fatal(err)
	}
	w := &wire{array: a}
	enough := errors.New("enough")
	err := paging(t, w).Volumes(within(t), func([]array.Volume) error { return enough })
	if err != enough || w.count() != 1 { //nolint:errorlint // the visitor's own error
		t.Errorf("%v after %d requests", err, w.count())
	}
}

// TestArrayWithSmallPages: no list is shorter than the array says, whatever the largest page is.
func TestArrayWithSmallPages(t *testing.T) {
	const largest, volumes = 7, 30
	a := newArray(t, fakevpsa.Options{})
	if err := a.Seed("v", volumes, 1, true); err != nil {
		t.Fatal(err)
	}
	ctx, direct := within(t), newClient(t, &wire{array: a})
	c := newClient(t, &wire{array: a, do: func(_ int, r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		query := r.URL.Query()
		if limit, _ := strconv.Atoi(query.Get("limit")); r.Method == http.MethodGet && (limit == 0 || limit > largest) {
			query.Set("limit", strconv.Itoa(largest))
			r.URL.RawQuery = query.Encode()
		}
		return pass()
	}})
	of := a.Volumes()[0]
	for i := range volumes {
		s := must(direct.EnsureServer(ctx, array.NewServer{Name: fmt.Sprint("node", i), IQN: fmt.Sprint("iqn.2026-11.io.katbox:node", i)}))(t)
		must(direct.Attach(ctx, array.NewAttachment{ServerID: s.ID, VolumeID: of.ID}))(t)
		must(direct.CreateSnapshot(ctx, array.NewSnapshot{Name: fmt.Sprint("snapshot-", i), VolumeID: of.ID}))(t)
	}
	seen := map[string]bool{}
	must(struct{}{}, c.Volumes(ctx, func(page []array.Volume) error {
		for _, v := range page {
			seen[v.ID] = true
		}
		return nil
	}))(t)
	servers, attached := must(c.Servers(ctx))(t), must(c.Attachments(ctx, of.ID))(t)
	if len(seen) != volumes || len(servers) != volumes || len(attached) != volumes {
		t.Errorf("%d volumes, %d servers, %d attachments; want %d of each", len(seen), len(servers), len(attached), volumes)
	}
	last := fmt.Sprint("snapshot-", volumes-1)
	again := must(c.CreateSnapshot(ctx, array.NewSnapshot{Name: last, VolumeID: of.ID}))(t)
	if n := len(a.Snapshots()); n != volumes || again.Name != last {
		t.Errorf("%d snapshots after one was asked for again, %+v", n, again)
	}
}

// TestCountThatIsTooHighEndsTheList: the array may count what it never gives.
func TestCountThatIsTooHighEndsTheList(t *testing.T) {
	c := answering(t, 200, "application/json",
		`{"response":{"status":0,"count":"9","volumes":[{"name":"volume-00000001","display_name":"a"}]}}`)
	n := 0
	must(struct{}{}, c.Volumes(within(t), func(page []array.Volume) error { n += len(page); return nil }))(t)
	if n != 1 {
		t.Errorf("%d volumes", n)
	}
	if v := must(c.VolumeNamed(within(t), "a"))(t); v.ID != "volume-00000001" {
		t.Errorf("%+v", v)
	}
}
