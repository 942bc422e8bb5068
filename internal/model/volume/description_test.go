package volume

import (
	"testing"
	"time"
)

func TestSelects(t *testing.T) {
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	record := Record{ID: "v", Pod: "uid", Namespace: "ci", PodName: "job", Unpublished: at,
		Owner: Owner{Verdict: Confirmed, NamespaceUID: "ns", Kind: "Job", Job: "nightly"}}
	for name, tt := range map[string]struct {
		s    Selection
		want bool
	}{
		"all":                {Selection{}, true},
		"all that it has":    {Selection{Namespace: "ci", PodName: "job", Pod: "uid", Since: at, Before: Key{at, "w"}}, true},
		"by its owner":       {Selection{Tenancy: &Tenancy{UID: "ns"}, PodPrefix: "jo", Job: "nightly", OwnerKind: "Job"}, true},
		"other owner":        {Selection{OwnerKind: "StatefulSet"}, false},
		"other job":          {Selection{Job: "daily"}, false},
		"other prefix":       {Selection{PodPrefix: "ob"}, false},
		"earlier namespace":  {Selection{Tenancy: &Tenancy{UID: "later"}}, false},
		"has a namespace":    {Selection{NoNamespace: true}, false},
		"other namespace":    {Selection{Namespace: "default"}, false},
		"other pod name":     {Selection{PodName: "job-2"}, false},
		"other pod":          {Selection{Pod: "other"}, false},
		"retained before":    {Selection{Since: at.Add(1)}, false},
		"on an earlier page": {Selection{Before: Key{at, "v"}}, false},
		"on a later page":    {Selection{Before: Key{at.Add(1), ""}}, true},
	} {
		if got := tt.s.Selects(record); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}
