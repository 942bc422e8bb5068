package uploads

import (
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// TestCopiedAgain: an index that is there is that of the copy only if it is of what the node has now. One of an earlier copy goes, and
// never one of another node or pod.
func TestCopiedAgain(t *testing.T) {
	minutes := func(n int) func(*api.Volume, time.Time) {
		return func(v *api.Volume, now time.Time) {
			at := now.Add(time.Duration(-n) * time.Minute)
			v.RetainedAt = &at
		}
	}
	for name, tt := range map[string]struct {
		change      func(v *api.Volume, now time.Time)
		there, left bool
	}{
		"the same":                      {func(*api.Volume, time.Time) {}, true, true},
		"the clock was adjusted":        {minutes(3), true, true},
		"published again":               {minutes(30), false, false},
		"published again, long after":   {minutes(300), false, false},
		"other logs":                    {func(v *api.Volume, _ time.Time) { *v.Bytes++ }, false, false},
		"expired":                       {func(v *api.Volume, now time.Time) { v.ExpiresAt = &now }, false, false},
		"of another node":               {func(v *api.Volume, _ time.Time) { v.Node = "node-2" }, false, true},
		"of another pod":                {func(v *api.Volume, _ time.Time) { v.PodUID = beta }, false, true},
		"its size was not measured yet": {func(v *api.Volume, _ time.Time) { v.Bytes = nil }, true, true},
	} {
		s := newStage(t)
		content := []byte("piece")
		s.store.Written(func() time.Time { return s.now.Add(-2 * time.Minute) }) // before it was retained the last time
		s.send(s.one(s.Uploads, "node-1", s.piece(0, content)), content)
		ask := s.index(1, []byte("index"))
		published, until, size := s.now.Add(-5*time.Minute), s.now.Add(time.Hour), *ask.Index.Shown.Bytes
		ask.Index.Shown.PublishedAt = &published
		owner := s.owners.owner()
		v := api.Volume{
			ID: ask.ID, PodUID: podUID, Node: "node-1", Owner: &owner, RetainedAt: ask.Index.Shown.RetainedAt, ExpiresAt: &until, Bytes: &size,
			Archived: "key",
		}
		tt.change(&v, s.now)
		s.indexes.there = []api.Volume{v}
		answer := s.one(s.Uploads, "node-1", ask)
		if answer.There != tt.there || (answer.URL == "") != tt.there || (len(s.indexes.there) == 1) != tt.left {
			t.Errorf("%s: %+v, %d left", name, answer, len(s.indexes.there))
		}
	}
}

// TestClocks: a node whose clock is wrong is asked to try again, and not refused for good.
func TestClocks(t *testing.T) {
	s := newStage(t)
	for _, year := range []int{1970, 2200} {
		ask, at := s.index(1, []byte("x")), time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		ask.Index.Shown.RetainedAt = &at
		answer := s.one(s.Uploads, "node-1", ask)
		if answer.URL != "" || !answer.Retry || !strings.Contains(answer.Refused, "clock") || s.store.Asked("") != 0 {
			t.Errorf("%d: %+v, %d requests", year, answer, s.store.Asked(""))
		}
	}
}
