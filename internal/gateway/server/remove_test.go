package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

func apiOwner(namespaceUID string) api.Owner {
	return api.Owner{Verdict: volume.Confirmed.String(), NamespaceUID: namespaceUID}
}

func TestRemove(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	asJSON := http.Header{"Content-Type": {"application/json"}}
	for i, tt := range []struct {
		name, query, body string
		header            http.Header
		code              int
		reason            string
		gone              bool
	}{
		{"plain", "", "", nil, 200, "", true},
		{"of kubectl", "?timeout=5s", `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"propagationPolicy":"Background"}`,
			asJSON, 200, "", true},
		{"of a client with a charset", "", `{}`, http.Header{"Content-Type": {"application/json; charset=utf-8"}}, 200, "", true},
		{"dry run", "", `{"dryRun":["All"]}`, asJSON, 200, "", false},
		{"dry run in the query", "?dryRun=All", "", nil, 200, "", false},
		{"dry run in the query, none in the body", "?dryRun=All", `{"dryRun":[]}`, asJSON, 200, "", false},
		{"dry run of something", "?dryRun=Some", "", nil, 400, "BadRequest", false},
		{"dry run of something else", "", `{"dryRun":["All","Some"]}`, asJSON, 400, "BadRequest", false},
		{"UID", "", `{"preconditions":{"uid":"UID"}}`, asJSON, 200, "", true},
		{"another UID", "", `{"preconditions":{"uid":"x"}}`, asJSON, 409, "Conflict", false},
		{"a version", "", `{"preconditions":{"resourceVersion":"1"}}`, asJSON, 409, "Conflict", false},
		{"protobuf", "", "k8s\x00", http.Header{"Content-Type": {"application/vnd.kubernetes.protobuf"}}, 415, "UnsupportedMediaType", false},
		{"no type", "", "{}", nil, 415, "UnsupportedMediaType", false},
		{"not JSON", "", "dryRun", asJSON, 400, "BadRequest", false},
		{"another kind", "", `{"kind":"Status"}`, asJSON, 400, "BadRequest", false},
		{"too long", "", `{"kind":"` + strings.Repeat("x", maxOptions) + `"}`, asJSON, 413, "RequestEntityTooLarge", false},
		{"malformed query", "?a=%zz", "", nil, 400, "BadRequest", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name, _ := n.put(100 + i)
			_, text := c.get("alice", list+"/"+name)
			var v metav1.PartialObjectMetadata
			must(t, json.Unmarshal([]byte(text), &v))
			answer := c.do("alice", http.MethodDelete, list+"/"+name+tt.query, tt.header, strings.ReplaceAll(tt.body, "UID", string(v.UID)))
			if tt.code == 200 {
				_, text := c.whole(answer)
				var s metav1.Status
				if err := json.Unmarshal([]byte(text), &s); err != nil || answer.StatusCode != 200 || s.Status != "Success" || s.Details == nil ||
					s.Details.Name != name || s.Details.UID != v.UID || s.Details.Kind != "retainedvolumes" || s.Details.Group != "katbox.io" {
					t.Errorf("delete: %d %s, %v", answer.StatusCode, text, err)
				}
			} else {
				c.wantStatus("delete", answer, tt.code, tt.reason)
			}
			if answer, text := c.get("alice", list+"/"+name); (answer.StatusCode == 404) != tt.gone {
				t.Errorf("get after it: %d %s", answer.StatusCode, text)
			}
		})
	}
	c.wantStatus("delete what is not there", c.do("alice", http.MethodDelete, list+"/job-9-x7k2p.8n0nx3kybwp5", nil, ""), 404, "NotFound")
}

// What happens to a volume between the search and the request to its node is told.
func TestRemoveRaces(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	name, _ := n.put(1)
	path := list + "/" + name
	for code, want := range map[int]struct {
		code   int
		reason string
	}{404: {404, "NotFound"}, 410: {404, "NotFound"}, 409: {409, "Conflict"}, 503: {503, "ServiceUnavailable"}, 302: {500,
		"InternalError"}} {
		n.answers = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodDelete {
				w.Header().Set("Location", "http://elsewhere/")
				w.WriteHeader(code)
				_ = json.NewEncoder(w).Encode(api.Status{Kind: "Status", Status: "Failure", Code: code, Message: "no"})
			}
			return r.Method == http.MethodDelete
		}
		c.wantStatus("delete", c.do("alice", http.MethodDelete, path, nil, ""), want.code, want.reason)
	}
}
