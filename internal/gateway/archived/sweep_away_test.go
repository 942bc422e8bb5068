package archived

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/uploads"
)

// TestSweepGoesOn: where one namespace cannot be looked through, what has ended in the others goes.
func TestSweepGoesOn(t *testing.T) {
	for _, bad := range []string{alpha, beta} {
		s := newStage(t)
		now := time.Now()
		s.store.Written(func() time.Time { return now.Add(-2 * uploads.Abandoned) })
		s.store.Put(piece(alpha, 1, 0), []byte("x"))
		s.store.Put(piece(beta, 2, 0), []byte("x"))
		s.store.Fail(func(verb, key string) int {
			if verb == "DELETE" && strings.Contains(key, bad) {
				return http.StatusForbidden
			}
			return 0
		})
		swept, err := s.Sweep(t.Context())
		if err == nil || !strings.Contains(err.Error(), bad) || swept != (Swept{Pieces: 1}) || len(s.store.Keys(cluster+"/"+bad)) != 1 {
			t.Errorf("%+v, %v, left %q", swept, err, s.store.Keys(cluster))
		}
	}
}

// timed is a bucket that wants every request to end in time.
type timed struct {
	Bucket
	endless []string
}

func (b *timed) List(ctx context.Context, q bucket.Query) (bucket.Page, error) {
	b.see(ctx, "LIST "+q.Prefix)
	return b.Bucket.List(ctx, q)
}

func (b *timed) Delete(ctx context.Context, key string) error {
	b.see(ctx, "DELETE "+key)
	return b.Bucket.Delete(ctx, key)
}

func (b *timed) see(ctx context.Context, what string) {
	if _, ok := ctx.Deadline(); !ok {
		b.endless = append(b.endless, what)
	}
}

// TestSweepWaitsForNoAnswer: each of its requests has a time by which it ends.
func TestSweepWaitsForNoAnswer(t *testing.T) {
	s := newStage(t)
	now := time.Now()
	s.store.Written(func() time.Time { return now.Add(-2 * uploads.Abandoned) })
	ended := shown(alpha, 1)
	past := now.Add(-time.Hour).Truncate(time.Second)
	ended.ExpiresAt = &past
	s.put(ended)
	s.store.Put(piece(alpha, 1, 0), []byte("x"))
	b := &timed{Bucket: s.bucket}
	s.cfg.Bucket = b
	if swept, err := s.Sweep(t.Context()); err != nil || swept != (Swept{1, 1}) || len(b.endless) > 0 {
		t.Errorf("%+v, %v, without an end: %q", swept, err, b.endless)
	}
}

// away is a bucket that lists namespaces, and nothing else.
type away struct {
	Bucket
	namespaces, asked int
}

func (b *away) List(_ context.Context, q bucket.Query) (page bucket.Page, err error) {
	if q.Delimiter == "" {
		b.asked++
		return page, errors.New("away")
	}
	for i := range b.namespaces {
		page.Prefixes = append(page.Prefixes, q.Prefix+fmt.Sprintf("%08x-0000-4000-8000-000000000000/", i))
	}
	return page, nil
}

// TestSweepOfABucketThatIsAway ends soon, with a short error.
func TestSweepOfABucketThatIsAway(t *testing.T) {
	s := newStage(t)
	b := &away{Bucket: s.bucket, namespaces: 1000}
	s.cfg.Bucket = b
	if _, err := s.Sweep(t.Context()); err == nil || b.asked != mostFailed || strings.Count(err.Error(), "away") != mostFailed {
		t.Errorf("%d requests, %v", b.asked, err)
	}
}

// crowded is a bucket with many namespaces, which are empty but for those of the bucket behind it.
type crowded struct {
	Bucket
	namespaces int
}

func (b *crowded) List(ctx context.Context, q bucket.Query) (page bucket.Page, err error) {
	if q.Delimiter == "" {
		if strings.Contains(q.Prefix, alpha) {
			return b.Bucket.List(ctx, q)
		}
		return page, nil
	}
	for i := range b.namespaces {
		p := q.Prefix + fmt.Sprintf("%08x-0000-4000-8000-000000000000/", i)
		if p <= q.After {
			continue
		}
		if page.Prefixes = append(page.Prefixes, p); len(page.Prefixes) == bucket.MostKeys {
			page.More = true
			return page, nil
		}
	}
	page.Prefixes = append(page.Prefixes, q.Prefix+alpha+"/")
	return page, nil
}

// TestMoreNamespacesThanAreKnown: what has ended in them goes all the same, and those that are known are listed.
func TestMoreNamespacesThanAreKnown(t *testing.T) {
	s := newStage(t)
	now := time.Now()
	s.store.Written(func() time.Time { return now.Add(-2 * uploads.Abandoned) })
	s.store.Put(piece(alpha, 1, 0), []byte("x"))
	s.cfg.Bucket = &crowded{s.bucket, mostNamespaces + 1500}
	var logged []string
	s.cfg.Log = funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
	for range 2 {
		if err := s.look(t.Context()); err != nil || len(s.selected(fleet.Where{All: true})) != mostNamespaces || len(logged) != 1 {
			t.Errorf("%d namespaces, %v, logged %q", len(s.selected(fleet.Where{All: true})), err, logged)
		}
	}
	if swept, err := s.Sweep(t.Context()); err != nil || swept != (Swept{Pieces: 1}) {
		t.Errorf("%+v, %v", swept, err)
	}
}
