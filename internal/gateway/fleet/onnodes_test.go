package fleet

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// TestCopiesAreSearchedOnce: what a node has is searched there, whatever its clock did since it was copied, and also where a pod has used
// it again and the copy is an older one.
func TestCopiesAreSearchedOnce(t *testing.T) {
	for what, at := range map[string]struct{ node, copied int }{
		"as it was copied": {3, 3}, "a clock put forward": {5, 3}, "a clock put back": {1, 3}, "retained again": {100_000, 3},
	} {
		nodes := &fakeNodes{nodes: []*fakeNode{node("n1", record("a", at.node), record("b", 2))}}
		f, _ := withArchive(t, nodes, archivedOn("n1", record("a", at.copied), record("c", 0)), nil)
		f.cfg.Nodes = onSearchedNodes{nodes}
		r := SearchRequest{Request: Request{Reader: tenant, Namespace: "ci"}}
		if found, end := searched(t, f, r); found != "a b" || end.Archived != 1 || end.ArchivedMore {
			t.Errorf("%s: found %q, %d are in the archive alone", what, found, end.Archived)
		}
		r.Archived = true
		if found, _ := searched(t, f, r); found != "a b c+" {
			t.Errorf("%s, with the archive: found %q", what, found)
		}
	}
}

// TestNodesAreAskedOnce which volumes they have, however many pages of the archive are compared with them.
func TestNodesAreAskedOnce(t *testing.T) {
	const volumes = 3 * archivePage
	n := node("n1")
	a := archivedOn("n1", record("v", 0))
	for i := range volumes {
		r := record(fmt.Sprint("v", i), 60*i)
		n.add(r)
		a.parts["ci-2"].add(r)
		a.parts["ci-2"].on[string(r.ID)] = "n1"
	}
	var told atomic.Int64
	n.after = func(_ api.Query, list *api.VolumeList) { told.Add(int64(len(list.Items))) }
	f, _ := withArchive(t, &fakeNodes{nodes: []*fakeNode{n}}, a, nil)
	s, err := f.Search(t.Context(), SearchRequest{Request: Request{Reader: tenant, Namespace: "ci"}})
	if err != nil {
		t.Fatal(err)
	}
	_, parts := s.split()
	s.countArchive(t.Context(), parts)
	if s.left != 1 || s.leftMore || told.Load() > volumes+10 {
		t.Errorf("%d are in the archive alone, and the node was asked for %d volumes of %d", s.left, told.Load(), volumes)
	}
}

// TestNamespacesTakeTurns: the budget of a search of the archive is not used up by the first namespace.
func TestNamespacesTakeTurns(t *testing.T) {
	for range 10 { // in any order
		a := archivedOn("n1", record("small", 0))
		for i := range 2 * archivePage {
			r := record(fmt.Sprint("big", i), 1+i)
			r.Owner.NamespaceUID = "ci-1"
			if a.parts["ci-1"] == nil {
				a.parts["ci-1"] = archivedOn("n1", r).parts["ci-1"]
				a.parts["ci-1"].archive = a
				continue
			}
			a.parts["ci-1"].add(r)
			a.parts["ci-1"].on[string(r.ID)] = "n1"
		}
		f, _ := withArchive(t, &fakeNodes{}, a, nil)
		r := SearchRequest{Request: Request{Reader: everyone}, Archived: true, Grep: api.Grep{MaxBytes: archivePage}}
		found, end := searched(t, f, r)
		if !strings.Contains(found, "small+") || end.ArchiveStopped != api.StopBytes || end.Stopped[api.StopBytes] != 1 {
			t.Fatalf("found %.200q, %+v", found, end)
		}
	}
}

// TestArchiveIsSearchedByNow: what is searched in the archive is counted before its end.
func TestArchiveIsSearchedByNow(t *testing.T) {
	f, _ := withArchive(t, &fakeNodes{}, archivedOn("n1", record("a", 1), record("b", 2)), nil)
	s, err := f.Search(t.Context(), SearchRequest{Request: Request{Reader: tenant, Namespace: "ci"}, Archived: true})
	if err != nil {
		t.Fatal(err)
	}
	volumes := int64(0)
	end, err := s.Run(t.Context(), func(Entry, []api.GrepFound) error {
		if volumes++; s.Sums().Volumes != volumes {
			t.Errorf("%+v after %d volumes", s.Sums(), volumes)
		}
		return nil
	})
	if err != nil || end.Volumes != 2 || s.Sums().Volumes != 2 {
		t.Errorf("%+v, %v", end, err)
	}
}

// TestArchiveCannotBeCounted: who has not asked for the archive misses nothing while it is away, and does not wait for it.
func TestArchiveCannotBeCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := &fakeNodes{nodes: []*fakeNode{node("n1", record("a", 1))}}
		a := archivedOn("n1", record("b", 0))
		f, _ := withArchive(t, nodes, a, nil)
		f.cfg.Nodes = onSearchedNodes{nodes}
		r := SearchRequest{Request: Request{Reader: tenant, Namespace: "ci"}}
		a.parts["ci-2"].before = silentNode
		began := time.Now()
		if found, end := searched(t, f, r); found != "a" || !end.ArchivedMore || end.Archived != 0 || len(end.Missing) > 0 {
			t.Errorf("found %q, %+v", found, end)
		}
		if took := time.Since(began); took > countGrace {
			t.Errorf("it took %s", took)
		}
		a.parts["ci-2"].before, a.away = nil, errBroken // Missing says so
		if found, end := searched(t, f, r); found != "a" || !end.ArchivedMore || len(end.Missing) > 0 {
			t.Errorf("found %q, %+v", found, end)
		}
	})
}
