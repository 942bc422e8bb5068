package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestGone: what is gone is listed on request, to those alone whose it was.
func TestGone(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	mine, _ := n.put(1, func(r *volume.Record) { r.Lifespan, r.Outcome = 12*time.Hour, volume.Failed })
	foreign, _ := n.put(2, func(r *volume.Record) { r.Owner.NamespaceUID = "ci-1" })
	for _, path := range []string{list + "/" + mine + "?reason=a+secret", list + "/" + foreign} {
		if answer := c.do("admin", http.MethodDelete, path, nil, ""); answer.StatusCode != http.StatusOK {
			t.Fatalf("delete %s: %d", path, answer.StatusCode)
		}
	}
	const gone = list + "?fieldSelector=status.phase%3DGone"
	if _, names := c.list("alice", list); len(names) > 0 {
		t.Errorf("retained: %v", names)
	}
	got, names := c.list("alice", gone)
	if len(names) != 1 || names[0] != mine {
		t.Fatalf("alice sees %v, want %s", names, mine)
	}
	s := got.Items[0].Status
	if s.Phase != "Gone" || s.Outcome != "Failed" || s.Gone == nil ||
		s.Gone.Reason != "purged" || s.Gone.By != "admin" || s.Gone.Why != "a secret" ||
		s.Gone.Promised != "12h" || s.Gone.Kept != "1h" || s.ExpiresAt != nil || s.Gone.At.Unix() != 8500 {
		t.Errorf("%+v, %+v", s, s.Gone)
	}
	if _, names = c.list("admin", gone); len(names) != 2 {
		t.Errorf("the administrator sees %v", names)
	}
	c.wantStatus("another namespace",
		c.do("alice", http.MethodGet, base+"/namespaces/other/retainedvolumes?fieldSelector=status.phase%3DGone", nil, ""),
		403, "Forbidden")
	if _, names = c.list("alice", gone+"%2Cspec.podName%3Dnobody"); len(names) != 0 {
		t.Errorf("of another pod: %v", names)
	}
	if _, names = c.list("alice", gone+"%2Cmetadata.name%3D"+mine); len(names) != 1 {
		t.Errorf("by its name: %v", names)
	}
	c.wantStatus("one that is gone", c.do("alice", http.MethodGet, list+"/"+mine, nil, ""), 404, "NotFound")
	header := http.Header{"Accept": {"application/json;as=Table;v=v1;g=meta.k8s.io"}}
	answer, text := c.whole(c.do("alice", http.MethodGet, gone, header, ""))
	if !strings.Contains(text, `"purged by admin"`) || !strings.Contains(text, `"1h of 12h"`) {
		t.Errorf("table: %d %s", answer.StatusCode, text)
	}
}
