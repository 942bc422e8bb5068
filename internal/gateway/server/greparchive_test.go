package server

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/katbox/katbox/internal/gateway/archived"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/trust"
	"github.com/katbox/katbox/internal/model/api"
)

// TestGrepArchived: what the archive has of nodes that are gone is searched where that is asked for, and said else.
func TestGrepArchived(t *testing.T) {
	c := newArchive(t)
	n := c.add("n1")
	both, path := n.put(5, uid)
	c.archived(recordOf(5), "n1")
	write(t, filepath.Join(path, "log"), "what the job has printed\n")
	here, line := both+":log:1:what the job has printed", ":a/out.log:1:what the job has printed"
	gone := c.archived(recordOf(6), "gone")
	former := recordOf(7)
	former.Owner.NamespaceUID = "ci-1"
	c.archived(former, "gone")
	defer c.start()()
	if end := c.wantFound("not asked for", "alice", search+"printed", here); end.Archived != 1 || end.ArchivedMore || len(end.Missing) > 0 {
		t.Errorf("the end: %+v", end)
	}
	if end := c.wantFound("asked for", "alice", search+"printed&archived=true", here, gone+line); end.Archived != 0 || end.Volumes != 2 {
		t.Errorf("the end: %+v", end)
	}
	c.wantFound("by name", "alice", list+"/"+gone+"/log?grep=printed", gone+line)
	c.wantFound("files", "alice", search+"printed&archived=true&files=*.txt")
	if found, _ := c.grep("admin", base+"/retainedvolumes/-/log?grep=printed&archived=true"); len(found) != 3 {
		t.Errorf("in all namespaces, and of those that are deleted: %q", found)
	}
	c.wantStatus("no right", c.do("bob", http.MethodGet, search+"printed&archived=true", nil, ""), 403, "Forbidden")
	for _, bad := range []string{"&archived=1", "&archived=true&archived=true"} {
		c.wantStatus(bad, c.do("alice", http.MethodGet, search+"printed"+bad, nil, ""), 400, "BadRequest")
	}
	c.allowed = func(who string, what trust.Attributes) bool { return what.Name == gone && what.Namespace == "ci" }
	c.wantFound("by resourceNames", "alice", list+"/"+gone+"/log?grep=printed", gone+line)
	c.wantStatus("all by resourceNames", c.do("alice", http.MethodGet, search+"printed&archived=true", nil, ""), 403, "Forbidden")
	c.allowed = func(string, trust.Attributes) bool { return true }
	c.store.Fail(func(string, string) int { return http.StatusServiceUnavailable })
	if _, end := c.grep("alice", search+"printed&archived=true"); len(end.Missing) != 1 || end.Missing[0].Node != fleet.Archived {
		t.Errorf("the bucket is away: %+v", end)
	}
}

// start lets the archive look up what the bucket has, until stop is called.
func (i *inBucket) start() (stop func()) {
	a := i.server.Archive.(*archived.Archive)
	ctx, cancel := context.WithCancel(i.t.Context())
	a.Start(ctx)
	eventually(i.t, "the archive is known", func() bool { _, is := a.Missing(); return !is })
	return func() { cancel(); a.Wait() }
}

// TestGrepArchivedEnds when its reader leaves, while the bucket does not answer.
func TestGrepArchivedEnds(t *testing.T) {
	c := newArchive(t)
	c.archived(recordOf(6), "gone")
	var asked atomic.Int32
	left := make(chan struct{})
	c.store.Fail(func(verb, _ string) int {
		if verb == http.MethodGet && asked.Add(1) > 1 { // the first one lists
			<-left
		}
		return 0
	})
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.http.URL+search+"a&archived=true", nil)
	must(t, err)
	request.Header.Set("X-Remote-User", "alice")
	answer, err := c.http.Client().Do(request)
	must(t, err)
	defer answer.Body.Close()
	defer close(left)
	eventually(t, "the archive is read", func() bool { return asked.Load() > 1 })
	leave()
	eventually(t, "the slot is free", func() bool { all, _ := c.server.searches.Taken("alice"); return all == 0 })
}

// TestGrepArchivedOfOne: a search of one volume says nothing of others in the archive.
func TestGrepArchivedOfOne(t *testing.T) {
	c := newArchive(t)
	name, path := c.add("n1").put(5, uid)
	write(t, filepath.Join(path, "log"), "CUDA\n")
	c.archived(recordOf(6), "gone")
	end := c.wantFound("one", "alice", list+"/"+name+"/log?grep=CUDA", name+":log:1:CUDA")
	if end.Archived != 0 || !slices.Equal(end.Missing, []api.GrepMissing(nil)) {
		t.Errorf("%+v", end)
	}
}
