package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/trust"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
)

// search is where all volumes of namespace ci are searched.
const search = list + "/-/log?grep="

// grep searches as a user, and returns what was found, sorted, and the end.
func (c *cluster) grep(who, path string) (found []string, end api.GrepEnd) {
	c.t.Helper()
	answer := c.do(who, http.MethodGet, path, nil, "")
	if answer.StatusCode != http.StatusOK {
		_, text := c.whole(answer)
		c.t.Fatalf("search %s of %s: %d %s", path, who, answer.StatusCode, text)
	}
	wantSafe(c.t, "search", answer)
	stream := api.OpenGrep[resource.RetainedVolume](answer)
	in := ""
	for {
		r, err := stream.Next()
		must(c.t, err)
		switch {
		case r.Volume != nil:
			in = r.Volume.Name
		case r.Found != nil:
			found = append(found, fmt.Sprintf("%s:%s:%d:%s", in, r.Found.File, r.Found.Line, r.Found.Text))
		case r.End != nil:
			slices.Sort(found)
			return found, *r.End
		}
	}
}

func (c *cluster) wantFound(what, who, path string, want ...string) (end api.GrepEnd) {
	c.t.Helper()
	found, end := c.grep(who, path)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		c.t.Errorf("%s: found %q, want %q", what, found, want)
	}
	return end
}

func TestGrep(t *testing.T) {
	c := newCluster(t)
	var lines []string
	names := map[string]string{}
	for i := range 3 {
		node := fmt.Sprint("n", i)
		n := c.add(node)
		for k := range 2 {
			name, path := n.put(10*i + k)
			write(t, filepath.Join(path, "log"), "fine\nCUDA error\n")
			lines, names[fmt.Sprint(i, k)] = append(lines, name+":log:2:CUDA error"), name
		}
		// Of the namespace before it was made again, and of another one.
		_, path := n.put(100+i, func(r *volume.Record) { r.Owner.NamespaceUID = "ci-1" })
		write(t, filepath.Join(path, "log"), "CUDA error of another\n")
		_, path = n.put(200+i, func(r *volume.Record) { r.Namespace = "other" })
		write(t, filepath.Join(path, "log"), "CUDA error of another\n")
	}
	c.missing = []fleet.Missing{{Node: "away", Reason: fleet.NotConnected}}
	end := c.wantFound("all", "alice", search+"CUDA", lines...)
	if end.Volumes != 6 || end.Lines != 6 || end.Nodes != 4 || len(end.Missing) != 1 || end.Missing[0].Node != "away" {
		t.Errorf("the end: %+v", end)
	}
	one := names["1 1"]
	c.wantFound("one", "alice", list+"/"+one+"/log?grep=CUDA", one+":log:2:CUDA error")
	c.wantFound("one by a field", "alice", search+"CUDA&fieldSelector=metadata.name%3D"+one, one+":log:2:CUDA error")
	c.wantFound("of a node", "alice", search+"CUDA&fieldSelector=spec.nodeName%3Dn1", lines[2:4]...)
	c.wantFound("of a Job", "alice", search+"CUDA&labelSelector="+url.QueryEscape("batch.kubernetes.io/job-name=none"))
	c.wantFound("since", "alice", search+"CUDA&since="+url.QueryEscape(time.Unix(3020, 0).UTC().Format(time.RFC3339)), lines[4:]...)
	c.wantFound("files", "alice", search+"CUDA&files=*.txt")
	if found, _ := c.grep("admin", base+"/retainedvolumes/-/log?grep=CUDA"); len(found) != 12 {
		t.Errorf("in all namespaces: %q", found)
	}
	review := `alice get "ci" "-" "log"`
	if !slices.Contains(c.reviews, review) {
		t.Errorf("the API server was not asked %q, only %q", review, c.reviews)
	}
}

// TestGrepRights: a search takes what reading takes, and shows what lists show.
func TestGrepRights(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, path := n.put(1)
	write(t, filepath.Join(path, "log"), "CUDA error\n")
	c.wantStatus("bob", c.do("bob", http.MethodGet, search+"CUDA", nil, ""), 403, "Forbidden")
	c.wantStatus("without a user", c.do("", http.MethodGet, search+"CUDA", nil, ""), 401, "Unauthorized")
	c.wantStatus("all namespaces", c.do("alice", http.MethodGet, base+"/retainedvolumes/-/log?grep=CUDA", nil, ""), 403, "Forbidden")
	c.allowed = func(who string, what trust.Attributes) bool { return what.Name == name && what.Namespace == "ci" }
	c.wantFound("by resourceNames", "alice", list+"/"+name+"/log?grep=CUDA", name+":log:1:CUDA error")
	c.wantStatus("all by resourceNames", c.do("alice", http.MethodGet, search+"CUDA", nil, ""), 403, "Forbidden")
	c.allowed = func(string, trust.Attributes) bool { return true }
	// The namespace was made again: whatever the node says, the reader's list does not have it.
	c.allowed = func(who string, what trust.Attributes) bool { return what.Namespace == "ci" }
	c.mu.Lock()
	c.tenancies["ci"] = volume.Tenancy{UID: "ci-3", Since: time.Unix(9000, 0)}
	c.mu.Unlock()
	c.wantFound("made again", "alice", search+"CUDA")
	c.wantStatus("one of it", c.do("alice", http.MethodGet, list+"/"+name+"/log?grep=CUDA", nil, ""), 404, "NotFound")
	for path, code := range map[string]int{
		list + "/-/log": 400, list + "/-/files": 404, list + "/-": 404, search + "(": 400, search + "a&files=" + strings.Repeat("*a", 20): 400,
		search + "a&path=x": 400, search + "a&since=now": 400, search + "a&fieldSelector=status.phase%3DGone": 400, search + "a&tell=x": 400,
		search + "a&limit=5": 400, search + strings.Repeat("a", 1025): 400, base + "/retainedvolumes/" + name + "/log?grep=a": 404,
	} {
		if answer, text := c.get("alice", path); answer.StatusCode != code {
			t.Errorf("%.90s: %d %s, want %d", path, answer.StatusCode, text, code)
		}
	}
	if answer := c.do("alice", http.MethodHead, search+"a", nil, ""); answer.StatusCode != 405 {
		t.Errorf("HEAD: %d", answer.StatusCode)
	}
}

// says answers a search with records.
func (n *testNode) says(records ...string) {
	n.answers = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != api.GrepPath {
			return false
		}
		for _, record := range records {
			fmt.Fprintln(w, record)
		}
		return true
	}
}

// TestGrepOfHostileNodes: a node can speak of no volume that its list could not have, and say nothing that cannot be true. What
// the others have found is there.
func TestGrepOfHostileNodes(t *testing.T) {
	c := newCluster(t)
	good := c.add("good")
	name, path := good.put(1)
	write(t, filepath.Join(path, "log"), "CUDA error\n")
	bad := c.add("bad")
	volumeOf := func(change func(*api.Volume)) string {
		at, published := time.Unix(4000, 0).UTC(), time.Unix(2000, 0).UTC()
		v := api.Volume{ID: "csi-1", Namespace: "ci", Pod: "job-x7k2p", PodUID: "uid-1", Volume: "scratch", Node: "bad", Phase: "Retained",
			PublishedAt: &published, RetainedAt: &at, Owner: &api.Owner{Verdict: "Confirmed", NamespaceUID: "ci-2"}}
		change(&v)
		text, err := json.Marshal(map[string]any{"volume": v})
		must(t, err)
		return string(text)
	}
	fine := volumeOf(func(*api.Volume) {})
	const found, end = `{"found":{"file":"log","line":1,"text":"CUDA"}}`, `{"end":{"volumes":1,"files":-5,"stopped":{"made up":3}}}`
	for what, test := range map[string]struct {
		says []string
		// shown: what it says is believed. missing: it is said that its volumes were not searched.
		shown, missing bool
	}{
		"nothing wrong":          {[]string{fine, found, end}, true, false},
		"no end":                 {[]string{fine, found}, true, true},
		"no volume":              {[]string{found, end}, false, true},
		"of another node":        {[]string{volumeOf(func(v *api.Volume) { v.Node = "good" }), found, end}, false, true},
		"of another namespace":   {[]string{volumeOf(func(v *api.Volume) { v.Namespace = "other" }), found, end}, false, true},
		"of an earlier one":      {[]string{volumeOf(func(v *api.Volume) { v.Owner.NamespaceUID = "ci-1" }), found, end}, false, false},
		"denied":                 {[]string{volumeOf(func(v *api.Volume) { *v.Owner = api.Owner{Verdict: "Denied"} }), found, end}, false, false},
		"twice":                  {[]string{fine, found, fine, found, end}, true, true},
		"nothing found in it":    {[]string{fine, fine, found, end}, false, true},
		"progress without end":   {slices.Repeat([]string{`{"progress":{}}`}, 10_001), false, true},
		"a path upwards":         {[]string{fine, `{"found":{"file":"../log","line":1}}`, end}, false, true},
		"a path that is no ref":  {[]string{fine, `{"found":{"file":"a b","line":1}}`, end}, false, true},
		"the top":                {[]string{fine, `{"found":{"file":"","line":1}}`, end}, false, true},
		"a line with an end":     {[]string{fine, `{"found":{"file":"log","line":1,"text":"a\nb"}}`, end}, false, true},
		"a long line":            {[]string{fine, `{"found":{"file":"log","text":"` + strings.Repeat("a", 3<<10) + `"}}`, end}, false, true},
		"a long record":          {[]string{fine, `{"found":{"file":"log","text":"` + strings.Repeat("a", 1<<20) + `"}}`, end}, false, true},
		"a time of no year":      {[]string{fine, `{"found":{"file":"log","time":"0000-01-01T00:00:00Z"}}`, end}, false, true},
		"context that is no one": {[]string{fine, `{"found":{"file":"log","line":1,"context":true}}`, end}, false, true},
		"no JSON":                {[]string{"<html>"}, false, true},
	} {
		bad.says(test.says...)
		all, last := c.grep("alice", search+"CUDA")
		if shown := len(all) == 2; shown != test.shown || !slices.Contains(all, name+":log:1:CUDA error") {
			t.Errorf("%s: found %q", what, all)
		}
		missing := len(last.Missing) == 1 && last.Missing[0].Node == "bad"
		if missing != test.missing || last.Files < 0 || len(last.Stopped) > 0 {
			t.Errorf("%s: the end is %+v", what, last)
		}
	}
}

// TestGrepWithoutNodes that can: it is said which they are, and why.
func TestGrepWithoutNodes(t *testing.T) {
	c := newCluster(t)
	for name, code := range map[string]int{"old": 404, "busy": 429, "broken": 500} {
		c.add(name).answers = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == api.GrepPath {
				w.Header().Set(api.HeaderLevel, map[string]string{"old": api.LevelHolds}[name])
				api.WriteError(w, &api.Error{Status: api.Status{Kind: "Status", Code: code, Message: "no", Reason: map[int]api.Reason{
					404: api.NotFound, 429: api.TooManyRequests, 500: api.InternalError}[code]}})
			}
			return r.URL.Path == api.GrepPath
		}
	}
	_, end := c.grep("alice", search+"a")
	want := []api.GrepMissing{{Node: "broken", Reason: fleet.Failed}, {Node: "busy", Reason: fleet.Busy}, {Node: "old", Reason: fleet.TooOld}}
	if !slices.Equal(end.Missing, want) {
		t.Errorf("missing %+v, want %+v", end.Missing, want)
	}
}

// TestGrepEndsOnAllNodes when its reader leaves, and when the gateway stops. The slots are free then.
func TestGrepEndsOnAllNodes(t *testing.T) {
	for _, stops := range []bool{false, true} {
		c := newCluster(t)
		var running atomic.Int32
		for i := range 3 {
			c.add(fmt.Sprint("n", i)).answers = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == api.GrepPath {
					w.WriteHeader(http.StatusOK)
					_ = http.NewResponseController(w).Flush()
					running.Add(1)
					defer running.Add(-1)
					<-r.Context().Done()
				}
				return r.URL.Path == api.GrepPath
			}
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.http.URL+search+"a", nil)
		must(t, err)
		request.Header.Set("X-Remote-User", "alice")
		answer, err := c.http.Client().Do(request)
		must(t, err)
		defer answer.Body.Close()
		eventually(t, "all nodes search", func() bool { return running.Load() == 3 })
		if stops {
			c.server.Stop()
		} else {
			leave()
		}
		eventually(t, "no node searches", func() bool { return running.Load() == 0 })
		eventually(t, "the slot is free", func() bool { all, _ := c.server.searches.Taken("alice"); return all == 0 })
	}
}

// TestGrepOfManyNodes: a bounded number of them is asked at the same time, and all are.
func TestGrepOfManyNodes(t *testing.T) {
	c := newCluster(t)
	const nodes = 300
	var running, most atomic.Int32
	at := time.Unix(4000, 0).UTC()
	for i := range nodes {
		name := fmt.Sprint("n", i)
		text, err := json.Marshal(map[string]any{"volume": api.Volume{ID: "csi-1", Namespace: "ci", Pod: "job-x7k2p", PodUID: "uid-1",
			Node: name, Phase: "Retained", PublishedAt: &at, RetainedAt: &at, Owner: &api.Owner{Verdict: "Confirmed", NamespaceUID: "ci-2"}}})
		must(t, err)
		c.add(name).answers = func(w http.ResponseWriter, _ *http.Request) bool {
			now := running.Add(1)
			defer running.Add(-1)
			for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			}
			fmt.Fprintf(w, "%s\n%s\n%s\n", text, `{"found":{"file":"log","line":1,"text":"CUDA"}}`, `{"end":{"volumes":1}}`)
			return true
		}
	}
	began := time.Now()
	found, end := c.grep("alice", search+"CUDA")
	if len(found) != nodes || end.Volumes != nodes || len(end.Missing) > 0 || most.Load() > 128 {
		t.Errorf("found %d lines, at most %d nodes at once; the end is %+v", len(found), most.Load(), end)
	}
	t.Logf("%d nodes in %s", nodes, time.Since(began))
}

// TestGrepSlots: one reader has no more than his share.
func TestGrepSlots(t *testing.T) {
	c := newCluster(t)
	c.add("n1").answers = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == api.GrepPath {
			<-r.Context().Done()
		}
		return r.URL.Path == api.GrepPath
	}
	for range maxSearchesForReader {
		if answer := c.do("alice", http.MethodGet, search+"a", nil, ""); answer.StatusCode != 200 {
			t.Fatalf("%d", answer.StatusCode)
		}
	}
	c.wantStatus("one more", c.do("alice", http.MethodGet, search+"a", nil, ""), 429, "TooManyRequests")
	if answer := c.do("admin", http.MethodGet, search+"a", nil, ""); answer.StatusCode != 200 {
		t.Errorf("another reader: %d", answer.StatusCode)
	}
}

// TestSearchIsDescribed: OpenAPI has all parameters of a search and no others, and says what streams.
func TestSearchIsDescribed(t *testing.T) {
	var document struct {
		Paths map[string]struct {
			Get struct {
				Parameters []struct{ Name, In, Description string }
				Responses  map[string]struct{ Content map[string]any }
			}
		}
	}
	if err := json.Unmarshal(resource.Documents()[resource.SchemaPath], &document); err != nil {
		t.Fatal(err)
	}
	base := resource.VersionPath
	for path, alone := range map[string]bool{
		base + "/retainedvolumes/-/log": true, base + "/namespaces/{namespace}/retainedvolumes/{name}/log": false,
	} {
		left := slices.Clone(grepParameters)
		get := document.Paths[path].Get
		for _, p := range get.Parameters {
			i := slices.Index(left, p.Name)
			if i >= 0 {
				left = slices.Delete(left, i, i+1)
			}
			if p.In != "path" && (p.Description == "" || alone && i < 0) {
				t.Errorf("%s: %+v", path, p)
			}
		}
		if _, ok := get.Responses["200"].Content["application/x-ndjson"]; len(left) > 0 || !ok {
			t.Errorf("%s: %q are not described; it streams JSON: %t", path, left, ok)
		}
	}
}
