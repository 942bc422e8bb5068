package archived

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
)

// all returns what a tenant lists, page after page.
func (s *stage) all(uid string, q api.Query) (ids []string) {
	s.Helper()
	part := &tenant{archive: s.Archive, uid: uid}
	for {
		page, err := part.List(s.Context(), fleet.Reader{}, q)
		must(s, err)
		for _, v := range page.Items {
			ids = append(ids, v.ID)
		}
		if q.Continue = page.Continue; q.Continue == "" || len(ids) > 100_000 {
			return ids
		}
	}
}

// TestPagesOfAList have all volumes once, the newest first, also those of one instant, whatever is selected.
func TestPagesOfAList(t *testing.T) {
	s := newStage(t)
	var volumes []api.Volume
	for i := range 60 {
		v := shown(alpha, i)
		at := epoch.Add(time.Duration(i/7) * time.Second)
		v.RetainedAt = &at
		volumes = append(volumes, s.put(v))
	}
	s.put(shown(beta, 1))
	slices.SortFunc(volumes, func(a, b api.Volume) int {
		if c := b.RetainedAt.Compare(*a.RetainedAt); c != 0 {
			return c
		}
		return strings.Compare(b.ID, a.ID)
	})
	for name, selects := range map[string]struct {
		q    api.Query
		want func(api.Volume) bool
	}{
		"all":  {api.Query{}, func(api.Volume) bool { return true }},
		"pods": {api.Query{PodPrefix: "job-1"}, func(v api.Volume) bool { return strings.HasPrefix(v.Pod, "job-1") }},
		"one":  {api.Query{Pod: "job-42"}, func(v api.Volume) bool { return v.Pod == "job-42" }},
		"job":  {api.Query{Job: "another"}, func(api.Volume) bool { return false }},
		"since": {api.Query{Since: epoch.Add(5 * time.Second)}, func(v api.Volume) bool {
			return !v.RetainedAt.Before(epoch.Add(5 * time.Second))
		}},
		"namespace": {api.Query{Namespace: "alpha", Tenancy: &volume.Tenancy{UID: alpha}}, func(api.Volume) bool { return true }},
		"again":     {api.Query{Namespace: "alpha", Tenancy: &volume.Tenancy{UID: beta}}, func(api.Volume) bool { return false }},
	} {
		var want []string
		for _, v := range volumes {
			if selects.want(v) {
				want = append(want, v.ID)
			}
		}
		for _, limit := range []int{1, 2, 3, 7, 100} {
			selects.q.Limit = limit
			if got := s.all(alpha, selects.q); !slices.Equal(got, want) {
				t.Errorf("%s, %d at once: %d volumes, want %d", name, limit, len(got), len(want))
			}
		}
	}
}

// putMany puts indexes of volumes that differ in their IDs, and in when they were retained: to make a key takes longer than to read it.
func (s *stage) putMany(many int) {
	s.Helper()
	like := shown(alpha, 0)
	_, rest, _ := strings.Cut(key(s, like), like.ID)
	for i := range many {
		v := shown(alpha, i)
		s.store.Put(form.IndexStart(cluster, alpha, *v.RetainedAt)+"-"+v.ID+rest, nil)
	}
}

// TestListCost: a list of 10,000 archived volumes costs a request for each thousand, and reads no object.
func TestListCost(t *testing.T) {
	s := newStage(t)
	const many = 10_000
	s.putMany(many)
	asked := s.store.Asked("")
	if got := s.all(alpha, api.Query{Limit: 1000}); len(got) != many {
		t.Errorf("%d volumes", len(got))
	}
	if lists := s.store.Asked("LIST"); s.store.Asked("")-asked != lists || lists > many/mostListed+1 {
		t.Errorf("%d requests, %d lists", s.store.Asked("")-asked, lists)
	}
	lists := s.store.Asked("LIST")
	page, err := (&tenant{archive: s.Archive, uid: alpha}).List(t.Context(), fleet.Reader{}, api.Query{Limit: 500})
	if err != nil || len(page.Items) != 500 || s.store.Asked("LIST")-lists != 1 {
		t.Errorf("a page of 500: %d volumes with %d lists, %v", len(page.Items), s.store.Asked("LIST")-lists, err)
	}
}

// instants is a bucket with many volumes of one instant, and one that is older. It makes up their keys.
type instants struct {
	Bucket
	prefix, rest, last string
	many, asked        int
}

func (b *instants) List(_ context.Context, q bucket.Query) (page bucket.Page, err error) {
	b.asked++
	add := func(key string) {
		switch {
		case key <= q.After:
		case len(page.Objects) == bucket.MostKeys:
			page.More = true
		default:
			page.Objects = append(page.Objects, bucket.Object{Key: key})
		}
	}
	for i := range b.many {
		add(fmt.Sprintf("%s-csi-%064x%s", b.prefix, i, b.rest))
	}
	add(b.last)
	return page, nil
}

// TestManyOfOneInstant: how many keys of one instant there are in the bucket, which anyone who can write there may choose, is not how many
// of them are kept in memory, and the volumes behind them are listed.
func TestManyOfOneInstant(t *testing.T) {
	s := newStage(t)
	like, older := shown(alpha, 1), shown(alpha, 0)
	_, rest, _ := strings.Cut(key(t, like), like.ID)
	b := &instants{
		Bucket: s.bucket, prefix: form.IndexStart(cluster, alpha, *like.RetainedAt), rest: rest, last: key(t, older), many: 2 * mostOfInstant,
	}
	s.cfg.Bucket = b
	most, found := 0, false
	err := (&tenant{archive: s.Archive, uid: alpha}).each(t.Context(), volume.Key{}, time.Time{}, 0, func(instant []api.Volume, _ bool) bool {
		most, found = max(most, len(instant)), instant[0].ID == older.ID
		return true
	})
	if err != nil || most != mostOfInstant || !found || b.asked > mostPages+2 {
		t.Errorf("%d of one instant with %d requests; the older one was found: %t; %v", most, b.asked, found, err)
	}
}

// TestShortPages: where a list asks each of many namespaces for a few volumes, it does not get a thousand keys of each.
func TestShortPages(t *testing.T) {
	s := newStage(t)
	s.putMany(50)
	part := &tenant{archive: s.Archive, uid: alpha}
	s.found = newRecent(mostRecent) // it remembers all that was read
	page, err := part.List(t.Context(), fleet.Reader{}, api.Query{Limit: 2})
	if err != nil || len(page.Items) != 2 || page.Continue == "" || len(s.found.young) > 4 {
		t.Errorf("%d volumes, %d were read, %v", len(page.Items), len(s.found.young), err)
	}
}

// BenchmarkList10000 lists 10,000 archived volumes of a namespace, in pages of 1,000 as the fleet asks for.
func BenchmarkList10000(b *testing.B) {
	s := newStage(b)
	s.putMany(10_000)
	for b.Loop() {
		if got := s.all(alpha, api.Query{Limit: 1000}); len(got) != 10_000 {
			b.Fatal(len(got))
		}
	}
}

// TestFind: a volume is found by its name, once by looking through the keys, and then by asking whether it is still there.
func TestFind(t *testing.T) {
	s := newStage(t)
	for i := range 30 {
		s.put(shown(alpha, i))
	}
	v := s.put(shown(alpha, 1000))
	name := resource.Name(v)
	for _, lists := range []int{1, 0} {
		before := s.store.Asked("LIST")
		got, err := s.Find(t.Context(), fleet.Where{UID: alpha}, name)
		if err != nil || got.ID != v.ID || got.Archived != v.Archived || s.store.Asked("LIST")-before != lists {
			t.Errorf("%+v, %v with %d lists", got, err, s.store.Asked("LIST")-before)
		}
	}
	for what, w := range map[string]fleet.Where{"another namespace": {UID: beta}, "none": {}} {
		if _, err := s.Find(t.Context(), w, name); !errors.Is(err, fleet.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.Find(t.Context(), fleet.Where{UID: alpha}, "job-1000.aaaabbbbbbbb"); !errors.Is(err, fleet.ErrNotFound) {
		t.Errorf("another name: %v", err)
	}
	s.store.Remove(v.Archived)
	if _, err := s.Find(t.Context(), fleet.Where{UID: alpha}, name); !errors.Is(err, fleet.ErrNotFound) {
		t.Errorf("deleted elsewhere: %v", err)
	}
	s.store.Fail(func(string, string) int { return http.StatusForbidden })
	if _, err := s.Find(t.Context(), fleet.Where{UID: alpha}, name); !errors.Is(err, bucket.ErrAway) || errors.Is(err, fleet.ErrNotFound) {
		t.Errorf("away: %v", err)
	}
}

// TestNamespaces: a deleted namespace is looked through for those who may see all, and never for another one.
func TestNamespaces(t *testing.T) {
	s := newStage(t)
	const gone = "dddddddd-0000-4000-8000-000000000000"
	s.put(shown(alpha, 1))
	s.put(shown(beta, 2))
	s.put(shown(gone, 3))
	if m, missing := s.Missing(); !missing || m.Node != fleet.Archived || m.Reason != fleet.NotListed {
		t.Errorf("%+v, %t before the first look", m, missing)
	}
	must(t, s.look(t.Context()))
	if _, missing := s.Missing(); missing {
		t.Error("missing after the first look")
	}
	uids := func(w fleet.Where) string {
		var uids []string
		for _, part := range s.With(w) {
			uids = append(uids, part.(*tenant).uid)
		}
		slices.Sort(uids)
		return strings.Join(uids, " ")
	}
	for _, tt := range []struct {
		w    fleet.Where
		want string
	}{
		{fleet.Where{UID: alpha}, alpha}, {fleet.Where{UID: alpha, Name: "alpha"}, alpha + " " + gone},
		{fleet.Where{Name: "gone"}, gone}, {fleet.Where{All: true}, alpha + " " + beta + " " + gone}, {fleet.Where{}, ""},
	} {
		if got := uids(tt.w); got != tt.want {
			t.Errorf("%+v: %q", tt.w, got)
		}
	}
	const later = "eeeeeeee-0000-4000-8000-000000000000"
	s.Expect(later)
	if got := uids(fleet.Where{All: true}); !strings.Contains(got, later) {
		t.Errorf("after an index was signed: %q", got)
	}
	// A namespace that exists is called what the API server calls it, whatever a key says.
	v := shown(beta, 4)
	v.Namespace = "alpha"
	if got, err := s.volumeOf(bucket.Object{Key: key(t, v)}); err != nil || got.Namespace != "beta" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestHostileKeys are left out of lists: they cannot be true, or are those of another cluster.
func TestHostileKeys(t *testing.T) {
	s := newStage(t)
	v := s.put(shown(alpha, 1))
	prefix := form.IndexPrefix(cluster, alpha)
	rest := strings.TrimPrefix(v.Archived, prefix)
	for _, k := range []string{
		prefix, prefix + "x", prefix + "ffffffffffffffff-csi-1/x", prefix + rest[:len(rest)-3], prefix + rest + "AAAA",
		prefix + strings.ToUpper(rest), prefix + strings.Replace(rest, "/", "//", 1), prefix + "../" + rest, prefix + "0" + rest[1:] + "=",
	} {
		s.store.Put(k, []byte("x"))
	}
	if got := s.all(alpha, api.Query{}); len(got) != 1 || got[0] != v.ID {
		t.Errorf("%q", got)
	}
	other := strings.Replace(v.Archived, cluster, beta, 1)
	if _, err := s.volumeOf(bucket.Object{Key: other}); !errors.Is(err, form.ErrForm) {
		t.Errorf("of another cluster: %v", err)
	}
	if err := s.Forget(t.Context(), api.Volume{Archived: other}); err == nil {
		t.Error("a key of another cluster is deleted")
	}
	moved := v
	moved.Archived = other
	if _, err := s.Client(moved).Files(t.Context(), v.ID, api.FilesQuery{}); err == nil {
		t.Error("a key of another cluster is read")
	}
}

// TestHostileIndexes: what an index may not be is an error, in bounded memory.
func TestHostileIndexes(t *testing.T) {
	s := newStage(t)
	dir := t.TempDir()
	write(t, dir, "a", "text")
	v := s.archive(dir, shown(alpha, 1))
	good := s.store.Get(v.Archived)
	compressor, err := form.NewCompressor()
	must(t, err)
	bomb := []byte{}
	for range 100 {
		bomb = compressor.Compress(bomb, make([]byte, form.PieceSize)) // 800 MiB of zeros in some KiB
	}
	lines := strings.Repeat(`{"p":{"l":1,"h":"`+strings.Repeat("0", 64)+`"}}`+"\n", 100)
	for name, content := range map[string][]byte{
		"empty": {}, "garbage": random(1000), "cut": good[:len(good)-5], "more": append(append([]byte{}, good...), good...), "a bomb": bomb,
		"no head": compressor.Compress(nil, []byte(lines)),
	} {
		s.indexes = newObjects(mostIndexBytes, indexShare)
		s.store.Put(v.Archived, content)
		_, files := s.Client(v).Files(t.Context(), v.ID, api.FilesQuery{})
		_, tar := readTar(t, s.Client(v), v, api.BytesQuery{})
		if code(files) != http.StatusInternalServerError || tar == nil {
			t.Errorf("%s: %v, %v", name, files, tar)
		}
	}
}

// TestForgetWhatANodeHas: the copy is found though the node's clock was adjusted since, and no other is deleted.
func TestForgetWhatANodeHas(t *testing.T) {
	s := newStage(t)
	v, other := s.put(shown(alpha, 100)), s.put(shown(alpha, 101))
	onNode := v
	onNode.Archived, onNode.Phase = "", "Retained"
	at := v.RetainedAt.Add(-time.Minute)
	onNode.RetainedAt = &at
	if got, err := s.Indexes(t.Context(), alpha, volume.ID(v.ID), at); err != nil || len(got) != 1 || got[0].Archived != v.Archived {
		t.Errorf("%+v, %v", got, err)
	}
	s.store.Fail(func(string, string) int { return 1 })
	if err := s.Forget(t.Context(), onNode); !errors.Is(err, fleet.ErrArchive) {
		t.Errorf("away: %v", err)
	}
	s.store.Fail(nil)
	must(t, s.Forget(t.Context(), onNode))
	must(t, s.Forget(t.Context(), onNode))
	if keys := s.store.Keys(""); !slices.Equal(keys, []string{other.Archived}) {
		t.Errorf("%q", keys)
	}
	denied := api.Volume{ID: other.ID, RetainedAt: other.RetainedAt, Owner: &api.Owner{Verdict: "Denied"}}
	if err := s.Forget(t.Context(), denied); err != nil || len(s.store.Keys("")) != 1 {
		t.Errorf("not confirmed: %v", err)
	}
	if got, err := s.Indexes(t.Context(), alpha, volume.ID(v.ID), at); err != nil || len(got) != 0 {
		t.Errorf("afterwards: %+v, %v", got, err)
	}
}

// TestAwayIsRemembered: lists do not wait for a bucket that has just not answered.
func TestAwayIsRemembered(t *testing.T) {
	s := newStage(t)
	now := time.Now()
	s.now = func() time.Time { return now }
	s.store.Fail(func(string, string) int { return http.StatusServiceUnavailable })
	list := func() error {
		_, err := (&tenant{archive: s.Archive, uid: alpha}).List(t.Context(), fleet.Reader{}, api.Query{})
		return err
	}
	for range 3 {
		if err := list(); !errors.Is(err, bucket.ErrAway) {
			t.Error(err)
		}
	}
	if n := s.store.Asked("LIST"); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	s.store.Fail(nil)
	now = now.Add(skipFor)
	if err := list(); err != nil {
		t.Error(err)
	}
	must(t, list())
	s.put(shown(alpha, 1))
	if got := fmt.Sprint(len(s.all(alpha, api.Query{}))); got != "1" {
		t.Error(got)
	}
}
