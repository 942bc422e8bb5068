package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/trust"
	"github.com/katbox/katbox/internal/model/volume"
)

// Discovery is what the API server decides by whether the group is there (T5).
func TestDiscoveryNeedsNothing(t *testing.T) {
	c := newCluster(t)
	c.noReviews = trust.ErrUnavailable
	for _, path := range []string{"/apis/katbox.io", base, "/openapi/v3", "/openapi/v3/apis/katbox.io/v1alpha1?hash=0"} {
		answer, text := c.get("system:kube-aggregator", path)
		if answer.StatusCode != http.StatusOK || !json.Valid([]byte(text)) || answer.Header.Get("Content-Type") != "application/json" {
			t.Errorf("GET %s: %d %s", path, answer.StatusCode, text)
		}
		wantSafe(t, path, answer)
		c.wantStatus("GET "+path+" without a certificate", c.do("", http.MethodGet, path, nil, ""), 401, "Unauthorized")
		c.wantStatus("POST "+path, c.do("a", http.MethodPost, path, nil, ""), 405, "MethodNotAllowed")
	}
	for _, accept := range []string{"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", ""} {
		c.wantStatus("GET /apis", c.do("a", http.MethodGet, "/apis", http.Header{"Accept": {accept}}, ""), 406, "NotAcceptable")
	}
	if len(c.reviews) > 0 {
		t.Errorf("discovery asked the API server: %v", c.reviews)
	}
	answer, text := c.get("system:kube-aggregator", base)
	if verbs := text[strings.Index(text, `"verbs"`):]; !strings.HasPrefix(verbs, `"verbs":["get","list"],`) || strings.Count(text,
		"verbs") != 1 {
		t.Errorf("discovery %d %s", answer.StatusCode, text)
	}
}

// TestVersionIsForUsers: an answer tells the gateway's version, but not to strangers.
func TestVersionIsForUsers(t *testing.T) {
	c := newCluster(t, func(s *Server) { s.Version = "v7" })
	if answer, _ := c.get("alice", base); answer.Header.Get("Katbox-Version") != "v7" {
		t.Errorf("headers %q", answer.Header)
	}
	for _, path := range []string{base, "/livez"} {
		if answer, _ := c.get("", path); answer.Header.Get("Katbox-Version") != "" {
			t.Errorf("%s tells a stranger %q", path, answer.Header)
		}
	}
}

func TestHealth(t *testing.T) {
	c := newCluster(t)
	for _, path := range []string{"/livez", "/healthz", "/readyz"} {
		if answer, text := c.get("", path); answer.StatusCode != http.StatusOK || text != "ok\n" {
			t.Errorf("GET %s: %d %s", path, answer.StatusCode, text)
		}
	}
	c.mu.Lock()
	c.notReady = errors.New("namespaces are not known yet")
	c.mu.Unlock()
	if answer, text := c.get("", "/readyz"); answer.StatusCode != http.StatusServiceUnavailable || text != "namespaces are not known yet\n" {
		t.Errorf("GET /readyz: %d %s", answer.StatusCode, text)
	}
	if answer, _ := c.get("", "/livez"); answer.StatusCode != http.StatusOK {
		t.Errorf("GET /livez of a gateway that is not ready: %d", answer.StatusCode)
	}
}

// Whatever a path is, it is answered without a redirect, and only what looks like a request for
// volumes is one (T16).
func TestPaths(t *testing.T) {
	c := newCluster(t)
	for _, path := range []string{
		"/", "//", "/apis/", "/apis/katbox.io/", base + "/", "/apis/katbox.io//v1alpha1", "/apis/katbox.io/v1", base + "/pods", base +
			"/retainedvolumes/",
		base + "/retainedvolumes/a.8n0nx3kybwp5", base + "/namespaces", base + "/namespaces/ci", base + "/namespaces/ci/", base +
			"/namespaces//retainedvolumes",
		list + "/", list + "//log", list + "/a/b",
		list + "/a/log/", list + "/a/log/b", base + "/namespaces/ci//retainedvolumes",
		base + "/namespaces/../retainedvolumes", base + "/namespaces/%2e%2e/retainedvolumes", base + "/namespaces/C%00/retainedvolumes",
		list + "/" + strings.Repeat("a", 254),
		"/debug/pprof/", "/metrics", "/apis/katbox.io/v1alpha1/../v1alpha1", list + "/a/files/../log", "/openapi/v2",
	} {
		c.wantStatus("GET "+path, c.do("admin", http.MethodGet, path, nil, ""), 404, "NotFound")
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodHead, "PURGE", http.MethodOptions} {
		for _, path := range []string{base + "/retainedvolumes", list, list + "/a.8n0nx3kybwp5",
			list + "/a.8n0nx3kybwp5/files"} {
			if method == http.MethodPatch && strings.HasSuffix(path, ".8n0nx3kybwp5") {
				continue // a volume can be kept longer
			}
			if answer := c.do("admin", method, path, nil, ""); answer.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, answer.StatusCode)
			}
		}
	}
	for _, request := range [][2]string{
		{http.MethodDelete, base + "/retainedvolumes"}, {http.MethodDelete, list},
		{http.MethodDelete, list + "/a.8n0nx3kybwp5/log"},
		{http.MethodGet, list + "?watch=true"}, {http.MethodGet, base + "/retainedvolumes?watch=1&allowWatchBookmarks=true"},
		{http.MethodGet, base + "/watch/retainedvolumes"}, {http.MethodGet, base + "/watch/namespaces/ci/retainedvolumes/a"},
	} {
		c.wantStatus(request[0]+" "+request[1], c.do("admin", request[0], request[1], nil, ""), 405, "MethodNotAllowed")
	}
	if len(c.reviews) > 0 {
		t.Errorf("what nobody may do asked the API server: %v", c.reviews)
	}
}

func TestWhoMay(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, path := n.put(1)
	write(t, path+"/log", "hello")
	one := list + "/" + name
	all := map[string]string{
		"list": list, "list all": base + "/retainedvolumes", "get": one, "files": one + "/files", "log": one + "/log?path=log",
	}
	rights := func(rules ...string) func(string, trust.Attributes) bool {
		return func(_ string, a trust.Attributes) bool {
			return slices.Contains(rules, strings.TrimSpace(strings.Join([]string{a.Verb, a.Namespace, a.Subresource}, " ")))
		}
	}
	for _, tt := range []struct {
		name    string
		rights  func(string, trust.Attributes) bool
		allowed []string
	}{
		{"nobody", rights(), nil},
		{"viewer", rights("get ci", "list ci"), []string{"list", "get"}},
		{"editor", rights("get ci", "list ci", "get ci files", "get ci log"), []string{"list", "get", "files", "log"}},
		{"viewer of another", rights("get other", "list other"), nil},
		{"reader of everything", rights("get", "list", "get ci", "list ci"), []string{"list", "list all", "get"}},
		{"reader of one", func(_ string, a trust.Attributes) bool {
			return a.Name == name && a.Verb == "get" && a.Namespace == "ci"
		},
			[]string{"get", "files", "log"}},
	} {
		c.mu.Lock()
		c.allowed = tt.rights
		c.mu.Unlock()
		for what, path := range all {
			if answer := c.do("u", http.MethodGet, path, nil, ""); slices.Contains(tt.allowed, what) {
				if answer, text := c.whole(answer); answer.StatusCode != http.StatusOK {
					t.Errorf("%s of %s: %d %s", what, tt.name, answer.StatusCode, text)
				}
				wantSafe(t, what, answer)
			} else if s := c.wantStatus(what+" of "+tt.name, answer, 403, "Forbidden"); !strings.Contains(s.Message, `user "u" cannot `) {
				t.Errorf("%s of %s: %s", what, tt.name, s.Message)
			}
		}
		c.wantStatus("delete of "+tt.name, c.do("u", http.MethodDelete, one, nil, ""), 403, "Forbidden")
	}
	c.wantStatus("without a certificate", c.do("", http.MethodGet, one, nil, ""), 401, "Unauthorized")
	if s := c.wantStatus("while the CA is not known", c.do("later", http.MethodGet, one, nil, ""), 503,
		"ServiceUnavailable"); s.Details.RetryAfterSeconds != 10 {
		t.Errorf("while the CA is not known: %+v", s)
	}
	c.mu.Lock()
	c.noReviews = trust.ErrUnavailable
	c.mu.Unlock()
	c.wantStatus("without reviews", c.do("admin", http.MethodGet, one, nil, ""), 503, "ServiceUnavailable")
}

// Who may list one volume alone asks for it by a field selector, as kubectl does (T19).
func TestReviewOfAListOfOne(t *testing.T) {
	c := newCluster(t)
	name, _ := c.add("n1").put(1)
	c.allowed = func(_ string, a trust.Attributes) bool { return a.Name == name && a.Namespace == "ci" }
	if _, names := c.list("u", list+"?fieldSelector=metadata.name%3D"+name); !slices.Equal(names, []string{name}) {
		t.Errorf("a list of one: %v", names)
	}
	c.wantStatus("a list of others", c.do("u", http.MethodGet, list+"?fieldSelector=metadata.name!%3D"+name, nil, ""), 403, "Forbidden")
	c.wantStatus("a list of all", c.do("u", http.MethodGet, list, nil, ""), 403, "Forbidden")
}

// A namespace that was deleted and made again does not get the volumes of the first (T20, T21, T22).
func TestVolumesOfEarlierNamespaces(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	mine, _ := n.put(1)
	old, path := n.put(2, func(r *volume.Record) { r.Owner.NamespaceUID = "ci-1" })
	write(t, path+"/log", "secret")
	early, _ := n.put(3, func(r *volume.Record) { r.Owner, r.Published = volume.Owner{}, time.Unix(1400, 0) })
	late, _ := n.put(4, func(r *volume.Record) { r.Owner, r.Published = volume.Owner{}, time.Unix(1600, 0) })
	denied, _ := n.put(5, func(r *volume.Record) { r.Owner = volume.Owner{Verdict: volume.Denied} })
	orphan, _ := n.put(6, func(r *volume.Record) { r.Owner, r.Namespace, r.PodName = volume.Owner{}, "", "" })
	lie, _ := n.put(7)
	c.owners["pod-n1-7"] = apiOwner("ci-1")
	if _, names := c.list("alice", list); !slices.Equal(names, []string{late, mine}) {
		t.Errorf("the namespace's volumes: %v", names)
	}
	all, names := c.list("admin", list)
	if want := []string{lie, denied, late, early, old, mine}; !slices.Equal(names, want) {
		t.Errorf("volumes for a reader of all namespaces: %v, want %v", names, want)
	}
	for _, v := range all.Items {
		if foreign := v.Name != late && v.Name != mine; foreign != (v.Labels["katbox.io/foreign"] == "true") {
			t.Errorf("labels of %s: %v", v.Name, v.Labels)
		}
	}
	for _, name := range []string{old, early, denied, lie} {
		for _, what := range []string{"", "/files", "/log?path=log"} {
			if s := c.wantStatus(what+" of "+name, c.do("alice", http.MethodGet, list+"/"+name+what, nil, ""), 404,
				"NotFound"); s.Details.Name != name ||
				strings.Contains(s.Message, "ci-1") {
				t.Errorf("%s of %s: %+v", what, name, s)
			}
		}
		c.wantStatus("delete "+name, c.do("alice", http.MethodDelete, list+"/"+name, nil, ""), 404, "NotFound")
	}
	if answer, text := c.get("admin", list+"/"+old+"/log?path=log"); answer.StatusCode != 200 || text != "secret" {
		t.Errorf("a volume of an earlier namespace for a reader of all: %d %s", answer.StatusCode, text)
	}
	if _, names := c.list("admin", base+"/namespaces/katbox/retainedvolumes"); !slices.Equal(names, []string{orphan}) {
		t.Errorf("volumes of no namespace: %v", names)
	}
	if answer, text := c.get("admin", base+"/namespaces/katbox/retainedvolumes/"+orphan); answer.StatusCode != 200 {
		t.Errorf("a volume of no namespace: %d %s", answer.StatusCode, text)
	}
	c.wantStatus("it in another", c.do("admin", http.MethodGet, list+"/"+orphan, nil, ""), 404, "NotFound")
	// A right to read all does not come from a right to read these.
	c.mu.Lock()
	c.allowed = func(who string, a trust.Attributes) bool { return a.Namespace != "" }
	c.mu.Unlock()
	c.wantStatus("orphan for readers of the gateway's namespace", c.do("bob", http.MethodGet,
		base+"/namespaces/katbox/retainedvolumes/"+orphan, nil, ""), 404, "NotFound")
}

func TestForms(t *testing.T) {
	c := newCluster(t)
	name, _ := c.add("n1").put(1)
	const table, meta = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
		"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	for _, tt := range []struct{ path, accept, kind string }{
		{list, "", "RetainedVolumeList"}, {list, "application/json", "RetainedVolumeList"}, {list, table, "Table"}, {list, meta,
			"PartialObjectMetadataList"},
		{list + "/" + name, "*/*", "RetainedVolume"}, {list + "/" + name, table, "Table"}, {list + "/" + name, meta, "PartialObjectMetadata"},
		{list + "?includeObject=Object", table, "Table"},
	} {
		_, text := c.whole(c.do("alice", http.MethodGet, tt.path, http.Header{"Accept": {tt.accept}}, ""))
		var got metav1.TypeMeta
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Kind != tt.kind || !strings.Contains(text, `"name":"`+name+`"`) {
			t.Errorf("GET %s as %q: %s, %v", tt.path, tt.accept, text, err)
		}
	}
	for _, path := range []string{list, list + "/" + name} {
		c.wantStatus(path+" as YAML", c.do("alice", http.MethodGet, path, http.Header{"Accept": {"application/yaml"}}, ""), 406,
			"NotAcceptable")
	}
}

func TestPagesAndSelectors(t *testing.T) {
	c := newCluster(t)
	var want []string
	for number, n := range []*testNode{c.add("n1"), c.add("n2"), c.add("n3")} {
		name, _ := n.put(number, func(r *volume.Record) { r.Owner.Job = "nightly" })
		want = append(want, name)
	}
	slices.Reverse(want)
	var names []string
	for next, pages := "", 0; ; pages++ {
		page, some := c.list("alice", list+"?limit=1&continue="+url.QueryEscape(next))
		names = append(names, some...)
		if next = page.Continue; next == "" {
			break
		}
		if pages > 10 {
			t.Fatal("the list does not end")
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("pages: %v, want %v", names, want)
	}
	// A place in a list is of no use in another (T24).
	page, _ := c.list("alice", list+"?limit=1")
	other := "?limit=1&continue=" + url.QueryEscape(page.Continue)
	for what, answer := range map[string]*http.Response{
		"changed": c.do("alice", http.MethodGet,
			list+"?limit=1&continue="+url.QueryEscape(page.Continue[:len(page.Continue)-4]+"AAAA"), nil, ""),
		"nonsense":                  c.do("alice", http.MethodGet, list+"?continue=x", nil, ""),
		"of another user":           c.do("admin", http.MethodGet, list+other, nil, ""),
		"of another namespace":      c.do("admin", http.MethodGet, base+"/retainedvolumes"+other, nil, ""),
		"of a list with a selector": c.do("alice", http.MethodGet, list+other+"&fieldSelector=spec.podName%3Dx", nil, ""),
	} {
		if s := c.wantStatus("continue "+what, answer, 400, "BadRequest"); s.Details == nil || len(s.Details.Causes) != 1 ||
			s.Details.Causes[0].Type != "BadContinue" {
			t.Errorf("continue %s: %+v", what, s)
		}
	}
	for query, want := range map[string]int{
		"labelSelector=batch.kubernetes.io/job-name%3Dnightly": 3, "labelSelector=batch.kubernetes.io/job-name%3Dother": 0,
		"fieldSelector=spec.nodeName%3Dn2": 1, "fieldSelector=spec.podName%3Djob-1-x7k2p": 1, "labelSelector=app": 0, "limit=5001": 3,
		"limit=0": 3,
		"resourceVersion=0&resourceVersionMatch=NotOlderThan&timeoutSeconds=5&timeout=5s&pretty=true&watch=false&sendInitialEvents=false": 3,
	} {
		if _, names := c.list("alice", list+"?"+query); len(names) != want {
			t.Errorf("%s: %v, want %d", query, names, want)
		}
	}
	for _, query := range []string{
		"labelSelector=a%3Db%3Dc", "fieldSelector=spec.volumeID%3Dx", "limit=-1", "limit=x", "limit=1&limit=2", "limit=99999999999",
		"a=%zz", "a;b=1", "includeObject=All",
		"continue=a&continue=b", "labelSelector=a&labelSelector=b",
	} {
		c.wantStatus(query, c.do("alice", http.MethodGet, list+"?"+query, nil, ""), 400, "BadRequest")
	}
	answer, _ := c.get("alice", list+"?labelSelector=app%3Dweb")
	if w := answer.Header.Get("Warning"); !strings.HasPrefix(w, `299 - "katbox: retained volumes do not have the label \"app\"`) {
		t.Errorf("a list by a label that there is not: Warning %q", w)
	}
	c.wantStatus("a list with a body", c.do("alice", http.MethodGet, list, nil, "{}"), 400, "BadRequest")
}

func TestMissingNodes(t *testing.T) {
	c := newCluster(t)
	name, _ := c.add("n1").put(1)
	gone := fleet.Missing{Node: "n2", Since: time.Unix(5000, 0), Reason: fleet.NotConnected}
	c.missing = []fleet.Missing{gone}
	answer, text := c.get("alice", list)
	if w := answer.Header.Get("Warning"); !strings.HasPrefix(w, `299 - "katbox: 1 of 2 nodes`) || !strings.Contains(w, "n2") {
		t.Errorf("Warning %q", w)
	}
	want := `"fleet":{"nodes":2,"asked":1,"answered":1,` +
		`"missing":[{"node":"n2","since":"1970-01-01T01:23:20Z","reason":"NotConnected"}],"missingMore":0}`
	if !strings.Contains(text, want) {
		t.Errorf("list %s, want %s", text, want)
	}
	there, _ := c.add("n3").put(2) // whose node goes
	c.mu.Lock()
	delete(c.nodes, "n3")
	c.missing = append(c.missing, fleet.Missing{Node: "n3", Since: time.Unix(5000, 0), Reason: fleet.NotConnected})
	c.mu.Unlock()
	for _, what := range []string{"", "/files", "/log?path=x"} {
		answer := c.do("alice", http.MethodGet, list+"/"+there+what, nil, "")
		s := c.wantStatus(what+" on a node that is away", answer, 503, "ServiceUnavailable")
		if !strings.Contains(s.Message, "1970-01-01T01:23:20Z") || answer.Header.Get("Retry-After") != "10" {
			t.Errorf("%s on a node that is away: %+v, Retry-After %q", what, s, answer.Header.Get("Retry-After"))
		}
	}
	c.node("n1").gone = true
	for _, what := range []string{"/files", "/log?path=x"} {
		c.wantStatus(what+" on a node that goes", c.do("alice", http.MethodGet, list+"/"+name+what, nil, ""), 503, "ServiceUnavailable")
	}
	for _, name := range []string{"x", "job-1-x7k2p.0000" + name[len(name)-8:], "job-1-x7k2p." + name[len(name)-12:len(name)-8] +
		"00000000", "job-2-x7k2p." + name[len(name)-12:]} {
		c.wantStatus("get "+name, c.do("alice", http.MethodGet, list+"/"+name, nil, ""), 404, "NotFound")
	}
}

// A request that is longer than what nodes take is wrong, and no node is blamed for it.
func TestLongQuery(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	n.answers = func(_ http.ResponseWriter, r *http.Request) bool {
		t.Errorf("the node is asked: %.100s", r.URL)
		return false
	}
	c.wantStatus("a long selector", c.do("alice", http.MethodGet, list+"?fieldSelector=spec.podName%3D"+strings.Repeat("x", 40<<10), nil, ""),
		400, "BadRequest")
}
