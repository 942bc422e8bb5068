package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/gateway/trust"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
)

// asPatch is the header of a merge patch.
var asPatch = http.Header{"Content-Type": {"application/merge-patch+json"}}

// volumeAt gets a volume.
func (c *cluster) volumeAt(path string) resource.RetainedVolume {
	c.t.Helper()
	var v resource.RetainedVolume
	answer, text := c.get("admin", path)
	if answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %d %s", path, answer.StatusCode, text)
	}
	must(c.t, json.Unmarshal([]byte(text), &v))
	return v
}

// TestKeep: a patch pins a volume and takes that back; the node notes who did.
func TestKeep(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, _ := n.put(1)
	path := list + "/" + name
	send := func(body string) resource.RetainedVolume {
		t.Helper()
		var v resource.RetainedVolume
		answer, text := c.whole(c.do("alice", http.MethodPatch, path+"?fieldManager=kubectl-patch&fieldValidation=Strict", asPatch, body))
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", body, answer.StatusCode, text)
		}
		must(t, json.Unmarshal([]byte(text), &v))
		return v
	}
	until := metav1.NewTime(time.Unix(50_000, 0))
	want := resource.Hold{Kind: "Pinned", Until: until, By: "alice", Why: "post-mortem"}
	v := send(`{"spec":{"keepUntil":"` + until.UTC().Format(time.RFC3339) + `","keepReason":"post-mortem"}}`)
	if v.Name != name || v.Spec.KeepUntil == nil || !v.Spec.KeepUntil.Equal(&until) || v.Spec.KeepReason != "post-mortem" ||
		v.Status.Hold == nil || !v.Status.Hold.Until.Equal(&until) || v.Status.Hold.By != want.By || v.Status.Hold.Kind != want.Kind {
		t.Errorf("pinned: %+v, %+v, want %+v", v.Spec, v.Status.Hold, want)
	}
	if v = send(`{"spec":{"keepUntil":null}}`); v.Spec.KeepUntil != nil || v.Status.Hold != nil {
		t.Errorf("unpinned: %+v, %+v", v.Spec, v.Status.Hold)
	}
	send(`{"spec":{"keepUntil":"` + until.UTC().Format(time.RFC3339) + `","keepReason":"again"}}`)
	answer := c.do("alice", http.MethodPatch, path+"?dryRun=All", asPatch, `{"spec":{"keepUntil":null,"keepReason":null}}`)
	if v = c.volumeAt(path); answer.StatusCode != http.StatusOK || v.Spec.KeepReason != "again" {
		t.Errorf("a dry run: %d, and then %+v", answer.StatusCode, v.Spec)
	}
}

// TestBadPatches: a patch that is not exactly right changes nothing.
func TestBadPatches(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, _ := n.put(1)
	path := list + "/" + name
	for _, tt := range []struct {
		query, body string
		header      http.Header
		code        int
		reason      string
	}{
		{"", ``, asPatch, 400, "BadRequest"},
		{"", `null`, asPatch, 400, "BadRequest"},
		{"", `[{"op":"remove","path":"/spec"}]`, asPatch, 400, "BadRequest"},
		{"", `{} {}`, asPatch, 400, "BadRequest"},
		{"", `{}`, asPatch, 422, "Invalid"},
		{"", `{"spec":null}`, asPatch, 422, "Invalid"},
		{"", `{"spec":[]}`, asPatch, 422, "Invalid"},
		{"", `{"spec":{}}`, asPatch, 422, "Invalid"},
		{"", `{"spec":{"keepReason":"x"}}`, asPatch, 422, "Invalid"},
		{"", `{"spec":{"KeepUntil":null}}`, asPatch, 422, "Invalid"},
		{"", `{"spec":{"keepUntil":null,"podName":"x"}}`, asPatch, 422, "Invalid"},
		{"", `{"spec":{"keepUntil":null},"metadata":{"labels":{"a":"b"}}}`, asPatch, 422, "Invalid"},
		{"", `{"spec":{"keepUntil":null},"status":{"phase":"Gone"}}`, asPatch, 422, "Invalid"},
		{"", `{"spec":{"keepUntil":"tomorrow","keepReason":"x"}}`, asPatch, 422, "Invalid"},
		{"", `{"spec":{"keepUntil":1,"keepReason":"x"}}`, asPatch, 422, "Invalid"},
		{"", `{"spec":{"keepUntil":"2026-11-22T03:04:05Z"}}`, asPatch, 422, "Invalid"},
		{"", `{"spec":{"keepUntil":"2026-11-22T03:04:05Z","keepReason":7}}`, asPatch, 422, "Invalid"},
		{"", `{"spec":{"keepUntil":"2026-11-22T03:04:05Z","keepReason":" "}}`, asPatch, 422, "Invalid"},
		{"", `{"spec":{"keepUntil":null,"keepReason":"x"}}`, asPatch, 422, "Invalid"},
		{"", `{"spec":{"keepUntil":"2026-11-22T03:04:05Z","keepReason":"a\nb"}}`, asPatch, 400, "BadRequest"}, // by the node
		{"", `{"spec":"` + strings.Repeat("x", maxPatch) + `"}`, asPatch, 413, "RequestEntityTooLarge"},
		{"", `{"spec":{"keepUntil":null}}`, http.Header{"Content-Type": {"application/strategic-merge-patch+json"}}, 415, "UnsupportedMediaType"},
		{"", `{"spec":{"keepUntil":null}}`, nil, 415, "UnsupportedMediaType"},
		{"?dryRun=Some", `{"spec":{"keepUntil":null}}`, asPatch, 400, "BadRequest"},
		{"?x=1", `{"spec":{"keepUntil":null}}`, asPatch, 400, "BadRequest"},
	} {
		c.wantStatus("PATCH "+tt.query+" "+tt.body[:min(80, len(tt.body))],
			c.do("alice", http.MethodPatch, path+tt.query, tt.header, tt.body), tt.code, tt.reason)
	}
	if v := c.volumeAt(path); v.Status.Hold != nil {
		t.Errorf("a refused patch has changed the volume: %+v", v.Status.Hold)
	}
	body := `{"spec":{"keepUntil":null}}`
	c.wantStatus("no such volume", c.do("alice", http.MethodPatch, list+"/job-9-x7k2p.8n0nx3kybwp5", asPatch, body), 404, "NotFound")
}

// TestWhoMayKeep: the right to patch is one of its own.
func TestWhoMayKeep(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, _ := n.put(1)
	foreign, _ := n.put(2, func(r *volume.Record) { r.Owner.NamespaceUID = "ci-1" })
	c.allowed = func(who string, a trust.Attributes) bool {
		return who == "keeper" && a.Verb == "patch" && a.Namespace == "ci" || who == "editor" && a.Verb != "patch" && a.Namespace == "ci"
	}
	body := `{"spec":{"keepUntil":null}}`
	c.wantStatus("an editor", c.do("editor", http.MethodPatch, list+"/"+name, asPatch, body), 403, "Forbidden")
	if answer := c.do("keeper", http.MethodPatch, list+"/"+name, asPatch, body); answer.StatusCode != http.StatusOK {
		t.Errorf("a keeper: %d", answer.StatusCode)
	}
	// A volume of an earlier namespace of that name is another tenant's.
	c.wantStatus("another tenant's", c.do("keeper", http.MethodPatch, list+"/"+foreign, asPatch, body), 404, "NotFound")
}

// TestReleaseAndPurge: a grace period that is not 0 releases.
func TestReleaseAndPurge(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	asJSON := http.Header{"Content-Type": {"application/json"}}
	for i, tt := range []struct {
		query, body string
		code        int
		released    bool
	}{
		{"", `{"gracePeriodSeconds":30}`, 200, true},
		{"?gracePeriodSeconds=1&reason=done", "", 200, true},
		{"?gracePeriodSeconds=1", `{"gracePeriodSeconds":0}`, 200, false},
		{"", `{"gracePeriodSeconds":0}`, 200, false},
		{"?reason=done", "", 200, false},
		{"", `{"gracePeriodSeconds":-1}`, 400, false},
		{"?gracePeriodSeconds=-1", "", 400, false},
		{"?gracePeriodSeconds=x", "", 400, false},
		{"?gracePeriodSeconds=1&gracePeriodSeconds=0", "", 400, false},
		{"?reason=a&reason=b", "", 400, false},
		{"?gracePeriodSeconds=1&reason=a%0Ab", "", 400, false},
		{"?gracePeriodSeconds=1&dryRun=All", "", 200, false},
	} {
		name, _ := n.put(200 + i)
		path := list + "/" + name
		answer, text := c.whole(c.do("alice", http.MethodDelete, path+tt.query, asJSON, tt.body))
		if answer.StatusCode != tt.code {
			t.Errorf("%s %s: %d %s", tt.query, tt.body, answer.StatusCode, text)
		}
		after, _ := c.get("alice", path)
		dry := strings.Contains(tt.query, "dryRun")
		if there := after.StatusCode == http.StatusOK; there != (tt.released || tt.code != 200 || dry) {
			t.Errorf("%s %s: then %d", tt.query, tt.body, after.StatusCode)
		} else if there {
			if h := c.volumeAt(path).Status.Hold; (h != nil) != tt.released || h != nil && (h.Kind != "Released" || h.By != "alice") {
				t.Errorf("%s %s: hold %+v", tt.query, tt.body, h)
			}
		}
	}
}

// TestOlderNode: a node that knows no holds is named as such.
func TestOlderNode(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, _ := n.put(1)
	n.answers = func(w http.ResponseWriter, r *http.Request) bool {
		old := r.Method != http.MethodGet || r.URL.Path == api.GonePath
		if old {
			w.Header().Del(api.HeaderLevel)
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(api.Status{Kind: "Status", Status: "Failure", Message: "the request has a body, and none is expected"})
		}
		return old
	}
	for what, answer := range map[string]*http.Response{
		"patch":   c.do("alice", http.MethodPatch, list+"/"+name, asPatch, `{"spec":{"keepUntil":null}}`),
		"release": c.do("alice", http.MethodDelete, list+"/"+name+"?gracePeriodSeconds=1", nil, ""),
		"gone":    c.do("alice", http.MethodGet, list+"?fieldSelector=status.phase%3DGone", nil, ""),
	} {
		s := c.wantStatus(what, answer, 405, "MethodNotAllowed")
		if !strings.Contains(s.Message, "older version") || !strings.Contains(s.Message, "n1") {
			t.Errorf("%s: %s", what, s.Message)
		}
	}
}
