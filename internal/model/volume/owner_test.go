package volume

import (
	"errors"
	"strings"
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

func TestCheckOwner(t *testing.T) {
	for name, tt := range map[string]struct {
		owner Owner
		field string // of the error; empty for none
	}{
		"unasked":           {Owner{}, ""},
		"denied":            {Owner{Verdict: Denied}, ""},
		"confirmed":         {Owner{Verdict: Confirmed, NamespaceUID: "ns"}, ""},
		"everything":        {Owner{Confirmed, "ns", "Job", strings.Repeat("n", 253), "uid", "job", "7", "seal"}, ""},
		"long seal":         {Owner{Verdict: Confirmed, NamespaceUID: "ns", Seal: strings.Repeat("s", 65)}, "owner.seal"},
		"another language":  {Owner{Verdict: Confirmed, NamespaceUID: "ns", Kind: "Größe"}, ""},
		"no namespace":      {Owner{Verdict: Confirmed, Kind: "Job"}, "owner.namespaceUID"},
		"denied, and more":  {Owner{Verdict: Denied, Kind: "Job"}, "owner"},
		"unasked, and more": {Owner{NamespaceUID: "ns"}, "owner"},
		"another verdict":   {Owner{Verdict: 3}, "owner.verdict"},
		"long":              {Owner{Verdict: Confirmed, NamespaceUID: "ns", UID: strings.Repeat("u", 254)}, "owner.uid"},
		"line break":        {Owner{Verdict: Confirmed, NamespaceUID: "ns", Name: "a\nb"}, "owner.name"},
		"escape":            {Owner{Verdict: Confirmed, NamespaceUID: "ns", Job: "\x1b[31m"}, "owner.job"},
		"not UTF-8":         {Owner{Verdict: Confirmed, NamespaceUID: "ns", JobIndex: "\xff"}, "owner.jobIndex"},
		"odd namespace":     {Owner{Verdict: Confirmed, NamespaceUID: "\x00"}, "owner.namespaceUID"},
	} {
		err := tt.owner.Check()
		var invalid *InvalidError
		if errors.As(err, &invalid) != (tt.field != "") || (err == nil) != (tt.field == "") {
			t.Errorf("%s: %v, want an error of %q", name, err, tt.field)
		} else if invalid != nil && invalid.Field != tt.field {
			t.Errorf("%s: the error names %q, want %q", name, invalid.Field, tt.field)
		}
	}
}

func TestConfirmedIsTheLastWord(t *testing.T) {
	first, second := Owner{Verdict: Confirmed, NamespaceUID: "a"}, Owner{Verdict: Confirmed, NamespaceUID: "b"}
	denied := Owner{Verdict: Denied}
	for _, tt := range []struct{ known, said, want Owner }{
		{Owner{}, Owner{}, Owner{}}, {Owner{}, denied, denied}, {Owner{}, first, first},
		{denied, Owner{}, denied}, {denied, denied, denied}, {denied, first, first},
		{first, Owner{}, first}, {first, denied, first}, {first, second, first},
	} {
		if got := tt.known.Learn(tt.said); got != tt.want {
			t.Errorf("%+v after %+v: %+v", tt.said, tt.known, got)
		}
	}
}
