package archived

import (
	"errors"
	"hash/maphash"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/uploads"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
)

// piece is a key of a piece of a volume.
func piece(uid string, seconds, number int) string {
	v := shown(uid, seconds)
	place := form.Place{Cluster: cluster, NamespaceUID: uid, Place: volume.Place{Pod: volume.PodUID(v.PodUID), ID: volume.ID(v.ID)}}
	return place.PieceKey(number, form.SumOf([]byte{byte(number)}))
}

// TestSweep: what has ended goes, in every namespace, and nothing else.
func TestSweep(t *testing.T) {
	s := newStage(t)
	now := time.Now()
	s.store.Written(func() time.Time { return now.Add(-uploads.Abandoned - time.Hour) })
	stays := func(key string) string { s.store.Put(key, []byte("x")); return key }
	ended := shown(alpha, 1)
	past := now.Add(-time.Hour).Truncate(time.Second)
	ended.ExpiresAt = &past
	goes := []string{
		s.put(ended).Archived, stays(piece(alpha, 1, 0)), stays(piece(alpha, 1, 1)), // its time is over
		stays(piece(alpha, 2, 0)), // it has no index
		stays(piece(beta, 3, 0)),
	}
	want := []string{
		s.put(shown(alpha, 4)).Archived, stays(piece(alpha, 4, 0)), stays(piece(alpha, 4, 7)),
		stays(piece(alpha, 5, 0)), stays(cluster + "/" + alpha + "/p/else"), stays(cluster + "/" + alpha + "/else"), stays(cluster + "/else"),
		stays("other/" + strings.TrimPrefix(piece(alpha, 6, 0), cluster+"/")), stays("something of another program"),
		stays(strings.Replace(piece(alpha, 6, 0), cluster, beta, 1)),
		// A key of a later version, perhaps, and its pieces.
		stays(form.IndexPrefix(cluster, alpha) + "f000000000000000-" + shown(alpha, 8).ID + "/later"), stays(piece(alpha, 8, 0)),
	}
	s.store.Written(time.Now)
	want = append(want, stays(piece(alpha, 5, 1)), stays(piece(alpha, 9, 0))) // the newest is young
	swept, err := s.Sweep(t.Context())
	if err != nil || swept != (Swept{Indexes: 1, Pieces: 4}) {
		t.Errorf("%+v, %v", swept, err)
	}
	slices.Sort(want)
	if got := s.store.Keys(""); !slices.Equal(got, want) {
		t.Errorf("left\n%s\nwant\n%s\nwere to go\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), strings.Join(goes, "\n"))
	}
	if swept, err := s.Sweep(t.Context()); err != nil || swept != (Swept{}) {
		t.Errorf("again: %+v, %v", swept, err)
	}
}

// TestSweepEndsAtEachRequest: a replica that ends at any request leaves nothing that is listed and cannot be read, and the next
// sweep finishes its work. A second replica does the same meanwhile.
func TestSweepEndsAtEachRequest(t *testing.T) {
	for ends := 1; ends < 50; ends++ {
		s := newStage(t)
		now := time.Now()
		s.store.Written(func() time.Time { return now.Add(-2 * uploads.Abandoned) })
		ended, kept := shown(alpha, 1), shown(alpha, 2)
		past := now.Add(-time.Hour).Truncate(time.Second)
		ended.ExpiresAt = &past
		index, stays := s.put(ended).Archived, s.put(kept).Archived
		for i := range 3 {
			s.store.Put(piece(alpha, 1, i), []byte("x"))
			s.store.Put(piece(alpha, 2, i), []byte("x"))
		}
		left := ends
		s.store.Fail(func(string, string) int {
			if left--; left < 0 {
				return http.StatusServiceUnavailable
			}
			return 0
		})
		_, err := s.Sweep(t.Context())
		if err == nil {
			if ends < 5 {
				t.Fatalf("it makes only %d requests", ends)
			}
			return
		}
		if !errors.Is(err, bucket.ErrAway) || strings.Contains(err.Error(), "Skewed") {
			t.Fatal(err)
		}
		if keys := s.store.Keys(cluster); slices.Contains(keys, index) && len(keys) != 8 {
			t.Errorf("ended at request %d: its index is there, and not all its pieces: %q", ends, keys)
		}
		s.store.Fail(nil)
		_, err = s.Sweep(t.Context())
		if keys := s.store.Keys(cluster); err != nil || len(keys) != 4 || !slices.Contains(keys, stays) {
			t.Errorf("ended at request %d, and done again: %q, %v", ends, keys, err)
		}
	}
}

// TestIndexDuringSweep: an index that comes while pieces are looked at keeps them.
func TestIndexDuringSweep(t *testing.T) {
	s := newStage(t)
	now := time.Now()
	s.store.Written(func() time.Time { return now.Add(-2 * uploads.Abandoned) })
	s.store.Put(piece(alpha, 1, 0), []byte("x"))
	v := shown(alpha, 1)
	lists := 0
	s.store.Fail(func(verb, _ string) int {
		if verb != "LIST" {
			return 0
		}
		if lists++; lists == 3 { // the namespaces, the indexes, the pieces
			s.store.Put(key(t, v), []byte("index"))
		}
		return 0
	})
	if swept, err := s.Sweep(t.Context()); err != nil || swept != (Swept{}) || len(s.store.Keys(cluster)) != 2 {
		t.Errorf("%+v, %v", swept, err)
	}
}

// TestCopyDuringSweep: of a volume that a node has begun to copy again nothing goes, not even the pieces that are old.
func TestCopyDuringSweep(t *testing.T) {
	s := newStage(t)
	now := time.Now()
	s.store.Written(func() time.Time { return now.Add(-2 * uploads.Abandoned) })
	s.store.Put(piece(alpha, 1, 0), []byte("x"))
	s.store.Put(piece(beta, 2, 0), []byte("x"))
	s.store.Written(time.Now)
	lists := 0
	s.store.Fail(func(verb, _ string) int {
		if verb != "LIST" {
			return 0
		}
		if lists++; lists == 4 { // the namespaces, and of one of them the indexes, the pieces, and the indexes again
			s.store.Put(piece(alpha, 1, 1), []byte("x"))
			s.store.Put(piece(beta, 2, 1), []byte("x"))
		}
		return 0
	})
	if swept, err := s.Sweep(t.Context()); err != nil || swept != (Swept{}) || len(s.store.Keys(cluster)) != 4 {
		t.Errorf("%+v, %v, left %q", swept, err, s.store.Keys(cluster))
	}
}

// TestMostDoomed: what a sweep keeps in memory has a bound, however many pieces there are in the bucket.
func TestMostDoomed(t *testing.T) {
	s := newStage(t)
	now := time.Now()
	s.store.Written(func() time.Time { return now.Add(-2 * uploads.Abandoned) })
	for i := range mostDoomed + 1500 {
		s.store.Put(piece(alpha, i, 0), nil)
	}
	sweep := &sweeping{archive: s.Archive, cluster: cluster, uid: alpha, seed: maphash.MakeSeed()}
	if err := sweep.pieces(t.Context()); err != nil || len(sweep.doomed) != mostDoomed {
		t.Errorf("%d volumes, %v", len(sweep.doomed), err)
	}
}
