package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestReasonsAreNotEscaped: a character of a reason takes one byte of an answer, whatever it is, in each form
// of a list. Escaped, each < would take six.
func TestReasonsAreNotEscaped(t *testing.T) {
	c := newCluster(t)
	n := c.add("n1")
	reason := strings.Repeat("<&>", volume.MaxHoldWhy/3)
	const volumes = 20
	for i := range volumes {
		n.put(i+1, func(r *volume.Record) {
			r.Hold = volume.Hold{Kind: volume.Pinned, For: time.Hour, By: "jane", Why: reason}
		})
	}
	for name, tt := range map[string]struct{ query, accept string }{
		"a list":               {"", "application/json"},
		"a table with objects": {"?includeObject=Object", "application/json;as=Table;v=v1;g=meta.k8s.io"},
	} {
		answer, text := c.whole(c.do("alice", http.MethodGet, list+tt.query, http.Header{"Accept": {tt.accept}}, ""))
		if answer.StatusCode != http.StatusOK || len(text) > volumes*4<<10 || strings.Count(text, reason) != 2*volumes {
			t.Errorf("%s: %d, %d bytes for %d volumes, the reason %d times", name, answer.StatusCode, len(text), volumes,
				strings.Count(text, reason))
		}
		var got resource.RetainedVolumeList
		var table metav1.Table
		must(t, json.Unmarshal([]byte(text), &got), json.Unmarshal([]byte(text), &table))
		if len(table.Rows) == volumes {
			got.Items = make([]resource.RetainedVolume, 1)
			must(t, json.Unmarshal(table.Rows[0].Object.Raw, &got.Items[0]))
		}
		if len(got.Items) == 0 || got.Items[0].Spec.KeepReason != reason || got.Items[0].Status.Hold.Why != reason {
			t.Errorf("%s: the reason is read as %+v", name, got.Items)
		}
	}
}
