package uploads

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/fakebucket"
)

const (
	cluster = "0a0a0a0a-0000-4000-8000-000000000000"
	alpha   = "aaaaaaaa-0000-4000-8000-000000000000"
	beta    = "bbbbbbbb-0000-4000-8000-000000000000"
	podUID  = "cccccccc-0000-4000-8000-000000000000"
)

// cluster of one pod, which is on node-1 in the namespace alpha.
type owners struct {
	// there: the pod exists, so the API server can be asked. known: the gateway remembers what it said. away: it does not answer.
	there, known, away bool
}

func (o *owners) owner() api.Owner {
	return api.Owner{Verdict: volume.Confirmed.String(), NamespaceUID: alpha, Kind: "Job", Name: "job", UID: "1", Job: "job", JobIndex: "0"}
}

func (o *owners) Verdict(uid, node string) (api.Owner, bool) {
	switch {
	case !o.known || uid != podUID:
		return api.Owner{}, false
	case node != "node-1":
		return api.Owner{Verdict: volume.Denied.String()}, true
	}
	return o.owner(), true
}

func (o *owners) Ask(_ context.Context, node string, asks []api.OwnerAsk) (answers []api.OwnerAnswer) {
	for _, a := range asks {
		answer := api.OwnerAnswer{ID: a.ID, PodUID: a.PodUID, Owner: api.Owner{Verdict: volume.Denied.String()}}
		if (o.there || o.known) && a.PodUID == podUID && a.Namespace == "alpha" && a.Pod == "job-0" && node == "node-1" {
			answer.Owner = o.owner()
		}
		if !o.away {
			answers = append(answers, answer)
		}
	}
	return answers
}

// indexes are those that are there.
type indexes struct {
	there    []api.Volume
	expected []string
	err      error
}

func (i *indexes) Indexes(_ context.Context, uid string, id volume.ID, at time.Time) (found []api.Volume, _ error) {
	for _, v := range i.there {
		if v.ID == string(id) && v.Owner.NamespaceUID == uid && (at.IsZero() || v.RetainedAt.Sub(at).Abs() < time.Hour) {
			found = append(found, v)
		}
	}
	return found, i.err
}

func (i *indexes) Forget(_ context.Context, forgotten api.Volume) error {
	i.there = slices.DeleteFunc(i.there, func(v api.Volume) bool { return v.Archived == forgotten.Archived })
	return nil
}

func (i *indexes) Expect(uid string) { i.expected = append(i.expected, uid) }

type stage struct {
	*testing.T
	*Uploads
	store   *fakebucket.Store
	owners  *owners
	indexes *indexes
	now     time.Time
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{
		T: t, store: fakebucket.New(t), owners: &owners{there: true}, indexes: &indexes{}, now: time.Now(),
	}
	b, err := bucket.New(bucket.Config{
		Endpoint: s.store.URL, Region: fakebucket.Region, Bucket: fakebucket.Name, Credentials: fakebucket.Credentials(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	s.Uploads = s.replica(b, []byte("the key of all replicas"))
	return s
}

// replica is a gateway with a key.
func (s *stage) replica(b Bucket, key []byte) *Uploads {
	u, err := New(Config{
		Bucket: b, Cluster: func() (string, error) { return cluster, nil }, Owners: s.owners, Indexes: s.indexes, Key: key,
		Lifespan: 30 * 24 * time.Hour, Log: logr.Discard(),
	})
	if err != nil {
		s.Fatal(err)
	}
	u.now = func() time.Time { return s.now }
	return u
}

// ask is what the node asks for a volume of the pod, without what it asks for.
func (s *stage) ask() api.UploadAsk {
	return api.UploadAsk{
		ID: string(volume.KubeletID(podUID, "scratch")), Namespace: "alpha", Pod: "job-0", PodUID: podUID, Owner: s.owners.owner(),
	}
}

// piece asks for a piece with some content.
func (s *stage) piece(number int, content []byte) api.UploadAsk {
	a := s.ask()
	a.Piece = &api.UploadPiece{Number: number, Length: int64(len(content)), SHA256: archived.SumOf(content).String()}
	return a
}

func (s *stage) index(pieces int, content []byte) api.UploadAsk {
	a, retained, bytes := s.ask(), s.now.Add(-time.Minute), int64(42)
	a.Index = &api.UploadIndex{Length: int64(len(content)), SHA256: archived.SumOf(content).String(), Pieces: pieces, Shown: api.Volume{
		ID: a.ID, Namespace: "lies", Pod: "lies", PodUID: "lies", Volume: "scratch", Node: "lies", Phase: "lies", RetainedAt: &retained,
		Bytes: &bytes, Outcome: "Failed", Owner: &api.Owner{Verdict: volume.Confirmed.String(), NamespaceUID: beta},
	}}
	return a
}

// one signs one ask of a node.
func (s *stage) one(u *Uploads, node string, a api.UploadAsk) api.UploadAnswer {
	s.Helper()
	answers := u.Sign(s.Context(), node, []api.UploadAsk{a})
	if len(answers) != 1 || answers[0].ID != a.ID || answers[0].Number != a.Number() {
		s.Fatalf("%+v", answers)
	}
	return answers[0]
}

// send sends an object, as a node does.
func (s *stage) send(answer api.UploadAnswer, content []byte) int {
	s.Helper()
	if answer.URL == "" {
		s.Fatalf("no URL: %+v", answer)
	}
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPut, answer.URL, bytes.NewReader(content))
	if err != nil {
		s.Fatal(err)
	}
	for name, value := range answer.Header {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// TestArchive: pieces, then an index; each object under the key that the gateway chooses, and no other bytes than were announced.
func TestArchive(t *testing.T) {
	s := newStage(t)
	pieces := [][]byte{[]byte("piece 0"), []byte("piece 1")}
	for number, content := range pieces {
		answer := s.one(s.Uploads, "node-1", s.piece(number, content))
		if left := time.Until(answer.Expires); answer.There || answer.Refused != "" || left > signedFor || left < signedFor-time.Minute {
			t.Errorf("%+v", answer)
		}
		if code := s.send(answer, []byte("Piece "+string(content[6]))); code == http.StatusOK {
			t.Error("other bytes are taken")
		}
		early := s.one(s.Uploads, "node-1", s.index(2, []byte("index")))
		if early.URL != "" || !early.Retry || !strings.Contains(early.Refused, "not in the bucket") {
			t.Errorf("an index before piece %d: %+v", number, early)
		}
		for range 2 {
			if code := s.send(answer, content); code != http.StatusOK {
				t.Errorf("%d", code)
			}
		}
		if answer := s.one(s.Uploads, "node-1", s.piece(number, content)); !answer.There || answer.URL != "" {
			t.Errorf("again: %+v", answer)
		}
	}
	answer := s.one(s.Uploads, "node-1", s.index(2, []byte("index")))
	if code := s.send(answer, []byte("index")); code != http.StatusOK {
		t.Fatal(code)
	}
	keys := s.store.Keys("")
	slices.Sort(keys)
	if len(keys) != 3 || !strings.HasPrefix(keys[0], archived.IndexPrefix(cluster, alpha)) ||
		!strings.HasPrefix(keys[1], archived.PiecesPrefix(cluster, alpha)) {
		t.Fatalf("%q", keys)
	}
	_, v, err := archived.ParseIndexKey(keys[0])
	want := s.owners.owner()
	if err != nil || *v.Owner != want || v.Namespace != "alpha" || v.Pod != "job-0" || v.PodUID != podUID || v.Node != "node-1" ||
		v.Volume != "scratch" || v.Outcome != "Failed" || *v.Bytes != 42 || !v.ExpiresAt.Equal(answer.Until) {
		t.Errorf("%+v, %v", v, err)
	}
	if left := answer.Until.Sub(s.now); left > 30*24*time.Hour || left < 30*24*time.Hour-time.Minute {
		t.Errorf("until %v", answer.Until)
	}
	if !slices.Equal(s.indexes.expected, []string{alpha}) {
		t.Errorf("%q", s.indexes.expected)
	}
	s.indexes.there = append(s.indexes.there, v)
	again := s.one(s.Uploads, "node-1", s.index(2, []byte("another index")))
	if !again.There || again.URL != "" || !again.Until.Equal(answer.Until) {
		t.Errorf("a second index: %+v", again)
	}
}

// TestOwners: a node gets URLs for the volumes of its own pods alone, by what this gateway knows or a gateway has sealed.
func TestOwners(t *testing.T) {
	s := newStage(t)
	content := []byte("piece")
	seal := func() string {
		t.Helper()
		answers := Sealing{s.Uploads}.Ask(t.Context(), "node-1", []api.OwnerAsk{
			{ID: "unknown", Namespace: "alpha", Pod: "none", PodUID: "none"}, {ID: s.ask().ID, Namespace: "alpha", Pod: "job-0", PodUID: podUID},
		})
		if len(answers) != 2 || answers[0].Seal != "" || answers[1].Seal == "" || len(answers[1].Seal) > api.MostSeal {
			t.Fatalf("%+v", answers)
		}
		return answers[1].Seal
	}()
	sealed := func(change func(*api.UploadAsk)) api.UploadAsk {
		a := s.piece(0, content)
		a.Seal = seal
		if change != nil {
			change(&a)
		}
		return a
	}
	other := s.replica(s.cfg.Bucket, []byte("the key of another cluster"))
	again := s.replica(s.cfg.Bucket, []byte("the key of all replicas"))
	podOf := func(uid string) func(*api.UploadAsk) { return func(a *api.UploadAsk) { a.PodUID = uid } }
	namespace := func(name string) func(*api.UploadAsk) { return func(a *api.UploadAsk) { a.Namespace = name } }
	idOf := func(id string) func(*api.UploadAsk) { return func(a *api.UploadAsk) { a.ID = id } }
	owner := func(change func(*api.Owner)) func(*api.UploadAsk) { return func(a *api.UploadAsk) { change(&a.Owner) } }
	moved := func(o *api.Owner) { o.Job, o.JobIndex = "job0", "" }
	denied := func(o *api.Owner) { *o = api.Owner{Verdict: "Denied"} }
	for name, tt := range map[string]struct {
		owners owners
		u      *Uploads
		node   string
		ask    api.UploadAsk
		signed bool
	}{
		"the pod is there":                   {owners{there: true}, s.Uploads, "node-1", s.piece(0, content), true},
		"the pod is known":                   {owners{known: true}, s.Uploads, "node-1", s.piece(0, content), true},
		"the pod is gone, sealed":            {owners{}, again, "node-1", sealed(nil), true},
		"sealed, and the API server is away": {owners{away: true}, again, "node-1", sealed(nil), true},
		"the pod is gone, not sealed":        {owners{}, again, "node-1", s.piece(0, content), false},
		"another node":                       {owners{there: true}, s.Uploads, "node-2", s.piece(0, content), false},
		"another node, known":                {owners{known: true}, s.Uploads, "node-2", s.piece(0, content), false},
		"another node with the seal":         {owners{}, s.Uploads, "node-2", sealed(nil), false},
		"another node with the seal, known":  {owners{known: true}, s.Uploads, "node-2", sealed(nil), false},
		"the seal of another cluster":        {owners{}, other, "node-1", sealed(nil), false},
		"another pod's seal":                 {owners{}, s.Uploads, "node-1", sealed(podOf(beta)), false},
		"another namespace":                  {owners{}, s.Uploads, "node-1", sealed(namespace("beta")), false},
		"another namespace of a known pod":   {owners{known: true}, s.Uploads, "node-1", sealed(namespace("beta")), false},
		"another namespace's UID":            {owners{}, s.Uploads, "node-1", sealed(owner(func(o *api.Owner) { o.NamespaceUID = beta })), false},
		"another owner":                      {owners{}, s.Uploads, "node-1", sealed(owner(func(o *api.Owner) { o.Job = "x" })), false},
		"texts that are moved":               {owners{}, s.Uploads, "node-1", sealed(owner(moved)), false},
		"not confirmed":                      {owners{}, s.Uploads, "node-1", sealed(owner(denied)), false},
		"a path for an ID":                   {owners{}, s.Uploads, "node-1", sealed(idOf("../../" + beta)), false},
		"a path for an ID, of a known pod":   {owners{there: true}, s.Uploads, "node-1", sealed(idOf("csi-../i/x")), false},
	} {
		*s.owners = tt.owners
		tt.u.cfg.Owners = s.owners
		answer := s.one(tt.u, tt.node, tt.ask)
		if (answer.URL != "") != tt.signed || (answer.Refused == "") != tt.signed || answer.Retry {
			t.Errorf("%s: %+v", name, answer)
		}
		if tt.signed && !strings.Contains(answer.URL, cluster+"/"+alpha+"/p/"+podUID+"/") {
			t.Errorf("%s: %s", name, answer.URL)
		}
	}
	*s.owners = owners{away: true}
	if answer := s.one(s.Uploads, "node-1", s.piece(0, content)); answer.URL != "" || !answer.Retry {
		t.Errorf("not known yet: %+v", answer)
	}
}

// TestBounds: what cannot be is refused for good, and reaches no bucket.
func TestBounds(t *testing.T) {
	s := newStage(t)
	piece := func(change func(*api.UploadPiece)) api.UploadAsk {
		a := s.piece(0, []byte("x"))
		change(a.Piece)
		return a
	}
	index := func(change func(*api.UploadIndex)) api.UploadAsk {
		a := s.index(1, []byte("x"))
		change(a.Index)
		return a
	}
	both := s.index(1, []byte("x"))
	both.Piece = &api.UploadPiece{}
	for name, a := range map[string]api.UploadAsk{
		"neither": s.ask(), "both": both,
		"negative":     piece(func(p *api.UploadPiece) { p.Number = -1 }),
		"too many":     piece(func(p *api.UploadPiece) { p.Number = archived.MaxPieces }),
		"empty":        piece(func(p *api.UploadPiece) { p.Length = 0 }),
		"long":         piece(func(p *api.UploadPiece) { p.Length = archived.MaxPiece + 1 }),
		"no sum":       piece(func(p *api.UploadPiece) { p.SHA256 = "" }),
		"a path":       piece(func(p *api.UploadPiece) { p.SHA256 = strings.Repeat("../", 21) + "x" }),
		"upper case":   piece(func(p *api.UploadPiece) { p.SHA256 = strings.ToUpper(hex.EncodeToString(make([]byte, 31)) + "aa") }),
		"no pieces":    index(func(i *api.UploadIndex) { i.Pieces = 0 }),
		"many pieces":  index(func(i *api.UploadIndex) { i.Pieces = archived.MaxPieces + 1 }),
		"a long index": index(func(i *api.UploadIndex) { i.Length = archived.MaxIndex + 1 }),
		"no time":      index(func(i *api.UploadIndex) { i.Shown.RetainedAt = nil }),
	} {
		if answer := s.one(s.Uploads, "node-1", a); answer.URL != "" || answer.Refused == "" || answer.Retry || s.store.Asked("") != 0 {
			t.Errorf("%s: %+v, %d requests", name, answer, s.store.Asked(""))
		}
	}
}

// TestBucketAway: nothing is refused for good.
func TestBucketAway(t *testing.T) {
	s := newStage(t)
	for _, code := range []int{1, 403, 500, 503} {
		s.store.Fail(func(string, string) int { return code })
		for _, a := range []api.UploadAsk{s.piece(0, []byte("x")), s.index(1, []byte("x"))} {
			if answer := s.one(s.Uploads, "node-1", a); answer.URL != "" || !answer.Retry || answer.Refused == "" {
				t.Errorf("%d: %+v", code, answer)
			}
		}
	}
	s.store.Fail(nil)
	s.indexes.err = bucket.ErrAway
	if answer := s.one(s.Uploads, "node-1", s.index(1, []byte("x"))); !answer.Retry {
		t.Errorf("%+v", answer)
	}
	s.cfg.Cluster = func() (string, error) { return "", errors.New("not known") }
	if answer := s.one(s.Uploads, "node-1", s.piece(0, []byte("x"))); !answer.Retry {
		t.Errorf("without a cluster: %+v", answer)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range atOnce {
		s.slots <- struct{}{}
	}
	if answers := s.Sign(ended, "node-1", []api.UploadAsk{s.piece(0, []byte("x"))}); len(answers) != 0 {
		t.Errorf("%+v", answers)
	}
}

// TestOldPieces: what may be deleted before the index is there is uploaded again.
func TestOldPieces(t *testing.T) {
	s := newStage(t)
	content := []byte("piece")
	s.store.Written(func() time.Time { return time.Now().Add(-fresh - time.Minute) })
	s.send(s.one(s.Uploads, "node-1", s.piece(0, content)), content)
	if answer := s.one(s.Uploads, "node-1", s.piece(0, content)); answer.There || answer.URL == "" {
		t.Errorf("an old piece: %+v", answer)
	}
	if answer := s.one(s.Uploads, "node-1", s.index(1, content)); answer.URL == "" {
		t.Errorf("its index: %+v", answer)
	}
	s.now = s.now.Add(oldest - fresh)
	if answer := s.one(s.Uploads, "node-1", s.index(1, content)); answer.URL != "" || !strings.Contains(answer.Refused, "upload them again") {
		t.Errorf("pieces that are older still: %+v", answer)
	}
	// Pieces of a copy that was begun with other bytes do no harm, and a gap is seen.
	s.store.Written(time.Now)
	s.now = time.Now()
	for _, number := range []int{0, 2} {
		for _, content := range [][]byte{content, []byte("other")} {
			s.send(s.one(s.Uploads, "node-1", s.piece(number, content)), content)
		}
	}
	if answer := s.one(s.Uploads, "node-1", s.index(3, content)); !strings.Contains(answer.Refused, "piece 1 of 3") {
		t.Errorf("a gap: %+v", answer)
	}
}
