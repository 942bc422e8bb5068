package server

import (
	"archive/tar"
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/gateway/archived"
	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/fakebucket"
)

const (
	clusterUID = "0a0a0a0a-0000-4000-8000-000000000000"
	evidence   = "what the job has printed\n"
)

// inBucket is a cluster with an archive.
type inBucket struct {
	*cluster
	store *fakebucket.Store
}

// OfUID is for the archive.
func (c *cluster) OfUID(uid string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, tenancy := range c.tenancies {
		if tenancy.UID == uid {
			return name, true
		}
	}
	return "", false
}

func (c *cluster) Synced() bool { return true }

func newArchive(t *testing.T) *inBucket {
	t.Helper()
	c := newCluster(t)
	c.tenancies["kube-system"] = volume.Tenancy{UID: clusterUID}
	store := fakebucket.New(t)
	b, err := bucket.New(bucket.Config{
		Endpoint: store.URL, Region: fakebucket.Region, Bucket: fakebucket.Name, Credentials: fakebucket.Credentials(t),
	})
	must(t, err)
	t.Cleanup(b.Close)
	a, err := archived.New(archived.Config{Bucket: b, Namespaces: c, Log: logr.Discard()})
	must(t, err)
	c.server.Fleet, err = fleet.New(fleet.Config{
		Nodes: c, Namespaces: c, Owners: ownersOf{c}, Key: make([]byte, fleet.KeySize), Namespace: "katbox", Archive: a, Log: logr.Discard(),
	})
	must(t, err)
	c.server.Archive = a
	return &inBucket{c, store}
}

// archived puts an archive of a volume into the bucket, which has one file.
func (i *inBucket) archived(r volume.Record, node string) (name string) {
	i.t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	must(i.t, w.WriteHeader(&tar.Header{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o755}))
	must(i.t, w.WriteHeader(&tar.Header{Name: "a/out.log", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(evidence))}))
	_, err := w.Write([]byte(evidence))
	must(i.t, err)
	must(i.t, w.Close())
	encoder, err := form.NewEncoder()
	must(i.t, err)
	must(i.t, encoder.Entry(form.Entry{Name: "a", Type: api.Directory, Mode: 0o755, Content: 512, End: 512}))
	must(i.t, encoder.Entry(form.Entry{
		Name: "a/out.log", Type: api.File, Mode: 0o644, Size: int64(len(evidence)), Header: 512, Content: 1024, End: 1536,
	}))
	compressor, err := form.NewCompressor()
	must(i.t, err)
	object := compressor.Compress(nil, text.Bytes())
	piece := form.Piece{Length: int64(len(object)), Sum: form.SumOf(object)}
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	v := api.Volume{
		ID: string(r.ID), Pod: r.PodName, PodUID: string(r.Pod), Namespace: r.Namespace, Node: node,
		PublishedAt: &r.Published, RetainedAt: &r.Unpublished,
		ExpiresAt: &until, Owner: &api.Owner{Verdict: "Confirmed", NamespaceUID: r.Owner.NamespaceUID},
	}
	index, err := encoder.Finish(form.Head{Volume: v, Root: form.Entry{Type: api.Directory}, Size: int64(text.Len())}, []form.Piece{piece})
	must(i.t, err)
	place := form.Place{Cluster: clusterUID, NamespaceUID: r.Owner.NamespaceUID, Place: r.Place()}
	i.store.Put(place.PieceKey(0, piece.Sum), object)
	key, err := form.IndexKey(clusterUID, v)
	must(i.t, err)
	i.store.Put(key, index)
	return resource.Name(v)
}

// uid makes the pod's UID one that a kubelet gives: others are not archived.
func uid(r *volume.Record) { r.Pod = "cccccccc-0000-4000-8000-000000000000" }

// recordOf is a volume as put makes it.
func recordOf(number int) volume.Record {
	return volume.Record{
		ID: volume.ID(fmt.Sprintf("csi-%064x", number)), Pod: "cccccccc-0000-4000-8000-000000000000", Namespace: "ci",
		PodName: fmt.Sprintf("job-%d-x7k2p", number), Published: time.Unix(2000, 0), Unpublished: time.Unix(int64(3000+number), 7),
		Owner: volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ci-2"},
	}
}

// requests are all that read a volume.
func requests(name string) []string {
	return []string{
		list + "/" + name, list + "/" + name + "/files", list + "/" + name + "/files?path=a", list + "/" + name + "/log?path=a/out.log",
		list + "/" + name + "/log?path=a/out.log&tailLines=1", list + "/" + name + "/log?path=&archive=tar",
	}
}

// TestArchivedVolume is read as one of a node is, under the same name, though its node is gone.
func TestArchivedVolume(t *testing.T) {
	c := newArchive(t)
	name := c.archived(recordOf(1), "node-that-is-gone")
	all, names := c.list("alice", list)
	if !slices.Equal(names, []string{name}) || all.Items[0].Status.Phase != api.PhaseArchived ||
		all.Items[0].Spec.NodeName != "node-that-is-gone" {
		t.Errorf("%q, %+v", names, all.Items)
	}
	for selector, want := range map[string]int{"Archived": 1, "Retained": 0, "Published": 0} {
		if _, names := c.list("alice", list+"?fieldSelector=status.phase%3D"+selector); len(names) != want {
			t.Errorf("%s: %q", selector, names)
		}
	}
	for i, want := range []string{`"phase":"Archived"`, `"name":"a"`, `"name":"out.log"`, evidence, evidence, "a/out.log"} {
		path := requests(name)[i]
		if answer, text := c.get("alice", path); answer.StatusCode != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %.300s", path, answer.StatusCode, text)
		}
	}
	answer := c.do("alice", http.MethodGet, list+"/"+name+"/log?path=a/out.log", http.Header{"Range": {"bytes=5-7"}}, "")
	if _, text := c.whole(answer); answer.StatusCode != http.StatusPartialContent || text != evidence[5:8] {
		t.Errorf("a range: %d %q", answer.StatusCode, text)
	}
	c.wantStatus("a directory", c.do("alice", http.MethodGet, list+"/"+name+"/log?path=a", nil, ""), 400, "BadRequest")
	c.wantStatus("no file", c.do("alice", http.MethodGet, list+"/"+name+"/log?path=b", nil, ""), 404, "NotFound")
	patch := c.do("alice", http.MethodPatch, list+"/"+name, http.Header{"Content-Type": {"application/merge-patch+json"}},
		`{"spec":{"keepUntil":"2126-01-01T00:00:00Z","keepReason":"why"}}`)
	if s := c.wantStatus("a pin", patch, 409, "Conflict"); !strings.Contains(s.Message, "archive") {
		t.Errorf("%s", s.Message)
	}
	c.wantStatus("a release", c.do("alice", http.MethodDelete, list+"/"+name+"?gracePeriodSeconds=10", nil, ""), 409, "Conflict")
	c.store.Fail(func(string, string) int { return http.StatusServiceUnavailable })
	for _, path := range requests(name)[1:] {
		answer, text := c.get("alice", path)
		if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "try again") || answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s while the bucket is away: %d %s", path, answer.StatusCode, text)
		}
	}
	c.wantStatus("rm while the bucket is away", c.do("alice", http.MethodDelete, list+"/"+name, nil, ""), 503, "ServiceUnavailable")
	c.store.Fail(nil)
	if answer, text := c.whole(c.do("alice", http.MethodDelete, list+"/"+name, nil, "")); answer.StatusCode != http.StatusOK {
		t.Errorf("rm: %d %s", answer.StatusCode, text)
	}
	for _, path := range requests(name) {
		if answer, text := c.get("alice", path); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s after rm: %d %s", path, answer.StatusCode, text)
		}
	}
}

// TestArchiveAccess: those who may not read the volume of a node may not read its copy, and see no byte of it.
func TestArchiveAccess(t *testing.T) {
	c := newArchive(t)
	name := c.archived(recordOf(1), "n9")
	former := recordOf(2)
	former.Owner.NamespaceUID = "ci-1"
	old := c.archived(former, "n9")
	refused := func(what, who, path string, codes ...int) {
		t.Helper()
		if answer, text := c.get(who, path); !slices.Contains(codes, answer.StatusCode) || strings.Contains(text, evidence) {
			t.Errorf("%s: %s: %d %.200s", what, path, answer.StatusCode, text)
		}
	}
	for _, path := range requests(name) {
		refused("no right", "bob", path, http.StatusForbidden)
		refused("another namespace", "alice", strings.Replace(path, "/ci/", "/other/", 1), http.StatusForbidden)
		refused("another namespace, for all", "admin", strings.Replace(path, "/ci/", "/other/", 1), http.StatusNotFound)
	}
	for _, path := range requests(old) {
		refused("of a namespace that was deleted", "alice", path, http.StatusNotFound)
	}
	if _, names := c.list("alice", list); !slices.Equal(names, []string{name}) {
		t.Errorf("%q", names)
	}
	c.mu.Lock()
	c.tenancies["ci"] = volume.Tenancy{UID: "ci-3", Since: time.Now()}
	c.mu.Unlock()
	for _, path := range requests(name) {
		refused("a namespace that was made again", "alice", path, http.StatusNotFound)
	}
	if _, names := c.list("alice", list); len(names) != 0 {
		t.Errorf("made again: %q", names)
	}
	c.wantStatus("rm", c.do("alice", http.MethodDelete, list+"/"+name, nil, ""), 404, "NotFound")
	if len(c.store.Keys(clusterUID+"/ci-2/i/")) != 1 {
		t.Error("it is deleted")
	}
}

// TestRemoveWhileTheNodeIsAway: what is on a node that cannot be asked would come back, so its copy stays until the node is back or
// there is none any more.
func TestRemoveWhileTheNodeIsAway(t *testing.T) {
	c := newArchive(t)
	path := list + "/" + c.archived(recordOf(1), "n9")
	c.missing = []fleet.Missing{{Node: "n9", Reason: fleet.NotConnected}}
	s := c.wantStatus("rm", c.do("alice", http.MethodDelete, path, nil, ""), 503, "ServiceUnavailable")
	if !strings.Contains(s.Message, "nothing was deleted") || !strings.Contains(s.Message, "n9 is not connected") {
		t.Errorf("%s", s.Message)
	}
	if answer, text := c.get("alice", path); answer.StatusCode != http.StatusOK {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	c.mu.Lock()
	c.missing = nil
	c.mu.Unlock()
	if answer, text := c.whole(c.do("alice", http.MethodDelete, path, nil, "")); answer.StatusCode != http.StatusOK {
		t.Errorf("rm once the node is no more: %d %s", answer.StatusCode, text)
	}
}

// TestRemoveWithCopy: what is deleted on a node does not come back from the archive; and with a bucket that is away nothing is deleted.
func TestRemoveWithCopy(t *testing.T) {
	c := newArchive(t)
	n := c.add("n1")
	name, _ := n.put(5, uid)
	if copied := c.archived(recordOf(5), "n1"); copied != name {
		t.Fatalf("%s and %s", copied, name)
	}
	if all, names := c.list("alice", list); !slices.Equal(names, []string{name}) || all.Items[0].Status.Phase != "Retained" {
		t.Errorf("%q, %+v", names, all.Items)
	}
	c.store.Fail(func(string, string) int { return 1 })
	s := c.wantStatus("rm while the bucket is away", c.do("alice", http.MethodDelete, list+"/"+name, nil, ""), 503, "ServiceUnavailable")
	if !strings.Contains(s.Message, "nothing was deleted") || !strings.Contains(s.Message, "try again") {
		t.Errorf("%s", s.Message)
	}
	if answer, text := c.get("alice", list+"/"+name); answer.StatusCode != http.StatusOK {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	c.store.Fail(nil)
	// A dry run deletes nothing.
	answer, text := c.whole(c.do("alice", http.MethodDelete, list+"/"+name+"?dryRun=All", nil, ""))
	if answer.StatusCode != 200 || len(c.store.Keys("")) != 2 {
		t.Errorf("%d %s, %q", answer.StatusCode, text, c.store.Keys(""))
	}
	if answer, text := c.whole(c.do("alice", http.MethodDelete, list+"/"+name, nil, "")); answer.StatusCode != http.StatusOK {
		t.Errorf("rm: %d %s", answer.StatusCode, text)
	}
	if _, names := c.list("alice", list); len(names) != 0 || len(c.store.Keys(clusterUID+"/ci-2/i/")) != 0 {
		t.Errorf("%q, %q", names, c.store.Keys(""))
	}
	// One that expires on its node stays in the archive.
	name, _ = n.put(6, uid)
	c.archived(recordOf(6), "n1")
	n.volumes.mu.Lock()
	delete(n.volumes.all, recordOf(6).ID)
	n.volumes.mu.Unlock()
	if answer, text := c.get("alice", list+"/"+name+"/log?path=a/out.log"); answer.StatusCode != http.StatusOK || text != evidence {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
}
