package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/katbox/katbox/internal/lib/grep"
	"github.com/katbox/katbox/internal/model/api"
)

// searchedNode is a node in whose volumes one line is found.
type searchedNode struct{ *fakeNode }

func (n searchedNode) Grep(ctx context.Context, by Reader, q api.GrepQuery) (*api.GrepStream[api.Volume], error) {
	if n.before != nil {
		return nil, errBroken
	}
	list, err := n.List(ctx, by, q.Query)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for i := range list.Items {
		for _, r := range []api.GrepRecord[api.Volume]{{Volume: &list.Items[i]}, {Found: &api.GrepFound{File: "log", Line: 1}}} {
			line, err := api.Encode(r)
			if err != nil {
				return nil, err
			}
			text.Write(line)
		}
	}
	fmt.Fprintf(&text, `{"end":{"volumes":%d}}`+"\n", len(list.Items))
	return api.OpenGrep[api.Volume](&http.Response{Body: io.NopCloser(&text)}), nil
}

// archiveSearch finds one line in each volume.
type archiveSearch struct {
	archive *fakeArchive
	tick    func() error
	sums    api.GrepSums
	most    int64
}

func (a *fakeArchive) Search(_ Reader, g api.Grep, tick func() error) (VolumeSearch, error) {
	return &archiveSearch{archive: a, tick: tick, most: g.MaxBytes}, nil
}

func (s *archiveSearch) Sums() api.GrepSums { return s.sums }

func (s *archiveSearch) Volume(ctx context.Context, v api.Volume, found func(api.GrepFound) error) error {
	if s.most > 0 && s.sums.Volumes == s.most {
		return &grep.UsedUpError{Budget: api.StopBytes}
	}
	if v.Archived != "key of "+v.ID {
		return errors.New("it is not in the archive")
	}
	s.sums.Volumes++
	return errors.Join(s.tick(), found(api.GrepFound{File: "log", Line: 1}), s.tick(), ctx.Err())
}

// onSearchedNodes makes all nodes ones that search.
type onSearchedNodes struct{ *fakeNodes }

func (n onSearchedNodes) Look(ctx context.Context, namespace string) Look {
	look := n.fakeNodes.Look(ctx, namespace)
	for i := range look.Held {
		look.Held[i].Node = searchedNode{look.Held[i].Node.(*fakeNode)}
	}
	return look
}

// searched returns the IDs of the volumes in which something was found, those of archived ones with a plus.
func searched(t *testing.T, f *Fleet, r SearchRequest) (found string, end api.GrepEnd) {
	t.Helper()
	s, err := f.Search(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []Entry
	end, err = s.Run(t.Context(), func(e Entry, lines []api.GrepFound) error {
		mu.Lock()
		defer mu.Unlock()
		if len(lines) != 1 {
			t.Errorf("%d lines in %s", len(lines), e.Volume.ID)
		}
		all = append(all, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.Fields(phases(all))
	slices.Sort(ids)
	return strings.Join(ids, " "), end
}

// TestSearchWithArchive: what a node has is searched there, and in the archive what no node has, if that is asked for. Else it is said
// how much that is.
func TestSearchWithArchive(t *testing.T) {
	n1, n2 := node("n1", record("a", 1), record("b", 2), record("x", 9)), node("n2", record("d", 4))
	nodes := &fakeNodes{nodes: []*fakeNode{n1, n2}}
	foreign := record("f", 6)
	foreign.Owner.NamespaceUID = "ci-1"
	a := archivedOn("n1", record("a", 1), record("b", 2), record("c", 3), record("e", 5), foreign)
	f, _ := withArchive(t, nodes, a, nil)
	f.cfg.Nodes = onSearchedNodes{nodes}
	request := SearchRequest{Request: Request{Reader: tenant, Namespace: "ci"}}
	archived := request
	archived.Archived = true
	for what, test := range map[string]struct {
		request SearchRequest
		found   string
		left    int64
	}{
		"without": {request, "a b d x", 2},
		"with":    {archived, "a b c+ d e+ x", 0},
		"since": {SearchRequest{
			Request:  Request{Reader: tenant, Namespace: "ci", Query: api.Query{Since: *describe(record("d", 4), "").RetainedAt}},
			Archived: true,
		}, "d e+ x", 0},
		"of all namespaces":     {SearchRequest{Request: Request{Reader: everyone}, Archived: true}, "a b c+ d e+ f+ x", 0},
		"of all, and not there": {SearchRequest{Request: Request{Reader: everyone}}, "a b d x", 3},
		"some": {SearchRequest{Request: Request{Reader: tenant, Namespace: "ci", Keep: func(e Entry) bool { return e.Volume.ID >= "d" }},
			Archived: true}, "d e+ x", 0},
	} {
		found, end := searched(t, f, test.request)
		if found != test.found || end.Archived != test.left || end.ArchivedMore || len(end.Missing) > 0 {
			t.Errorf("%s: found %q, %+v, want %q and %d left", what, found, end, test.found, test.left)
		}
	}
	archived.Grep.MaxBytes = 1
	if found, end := searched(t, f, archived); found != "a b d e+ x" || end.Stopped[api.StopBytes] != 1 || len(end.Missing) > 0 {
		t.Errorf("a budget: found %q, %+v", found, end)
	}
	archived.Grep.MaxBytes = 0
	a.away = errBroken
	if found, end := searched(t, f, archived); found != "a b d x" || len(end.Missing) != 1 || end.Missing[0].Node != Archived {
		t.Errorf("the archive is away: found %q, %+v", found, end)
	}
	a.away = nil
	// The copies of what is on a node that is not connected are searched.
	nodes.nodes, nodes.missing = []*fakeNode{n2}, []Missing{{Node: "n1", Reason: NotConnected}}
	if found, end := searched(t, f, archived); found != "a+ b+ c+ d e+" || len(end.Missing) != 1 {
		t.Errorf("a node is away: found %q, %+v", found, end)
	}
	nodes.nodes = nil
	if found, _ := searched(t, f, archived); found != "a+ b+ c+ e+" {
		t.Errorf("no node is there: found %q", found)
	}
	if _, err := f.Search(t.Context(), request); err == nil {
		t.Error("no node is there, and the archive is not searched: no error")
	}
}

// TestSearchOfOneInArchive: to name it is to ask for it.
func TestSearchOfOneInArchive(t *testing.T) {
	f, _ := withArchive(t, &fakeNodes{}, archivedOn("n1", record("a", 1), record("b", 2)), nil)
	v := describe(record("a", 1), "n1")
	v.Phase, v.Archived = api.PhaseArchived, "key of a"
	one := &Found{Entry: Entry{Volume: v}, Node: inArchive{}}
	found, end := searched(t, f, SearchRequest{Request: Request{Reader: tenant, Namespace: "ci"}, One: one})
	if found != "a+" || end.Volumes != 1 || len(end.Missing) > 0 {
		t.Errorf("found %q, %+v", found, end)
	}
}

// TestArchivedAreCountedUpTo a bound.
func TestArchivedAreCountedUpTo(t *testing.T) {
	a := archivedOn("n1", record("a", 0))
	for i := range mostCounted + 10 {
		a.parts["ci-2"].add(record(fmt.Sprint("a", i), i))
		a.parts["ci-2"].on[fmt.Sprint("a", i)] = "n1"
	}
	f, _ := withArchive(t, &fakeNodes{}, a, nil)
	_, end := searched(t, f, SearchRequest{Request: Request{Reader: tenant, Namespace: "ci"}})
	if end.Archived != mostCounted || !end.ArchivedMore {
		t.Errorf("%+v", end)
	}
}
