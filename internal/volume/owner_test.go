package volume

import (
	"testing"
	"time"
)

func TestOwns(t *testing.T) {
	created := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	now := Tenancy{UID: "new", Since: created}
	for name, tt := range map[string]struct {
		of        Tenancy
		owner     Owner
		published time.Time
		want      bool
	}{
		"confirmed":                {now, Owner{Verdict: Confirmed, NamespaceUID: "new"}, created.Add(-time.Hour), true},
		"of the earlier namespace": {now, Owner{Verdict: Confirmed, NamespaceUID: "old"}, created.Add(time.Hour), false},
		"no UID on either side":    {Tenancy{Since: created}, Owner{Verdict: Confirmed}, created.Add(time.Hour), false},
		"denied":                   {now, Owner{Verdict: Denied, NamespaceUID: "new"}, created.Add(time.Hour), false},
		"unasked, later":           {now, Owner{}, created, true},
		"unasked, earlier":         {now, Owner{}, created.Add(-time.Second), false},
		"unasked, no time":         {now, Owner{}, time.Time{}, false},
		"unasked, no namespace":    {Tenancy{}, Owner{}, created, false},
	} {
		if got := tt.of.Owns(tt.owner, tt.published); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}
