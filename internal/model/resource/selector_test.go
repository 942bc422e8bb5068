package resource

import (
	"reflect"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/api"
)

func parsed(t *testing.T, labels, fields string) Selector {
	t.Helper()
	s, err := ParseSelector(labels, fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSelector(t *testing.T) {
	confirmed := From(example(), "katbox", false)
	v := example()
	v.Owner = nil
	guessed := From(v, "katbox", false)
	foreign := From(example(), "katbox", true)
	name := confirmed.Name
	const job, kind, other = "batch.kubernetes.io/job-name", "katbox.io/owner-kind", "katbox.io/foreign"
	for _, tt := range []struct {
		labels, fields string
		query          api.Query
		// want says which of the three volumes are selected.
		want string
	}{
		{"", "", api.Query{}, "confirmed guessed foreign"},
		{job + "=nightly-29000000", "", api.Query{Job: "nightly-29000000"}, "confirmed guessed foreign"},
		{job + "=nightly", "", api.Query{Job: "nightly"}, "guessed"},
		{job + "=night", "", api.Query{Job: "night"}, ""},
		{job + " in (nightly,x)", "", api.Query{}, "guessed"},
		{job + " in (nightly)", "", api.Query{Job: "nightly"}, "guessed"},
		{job + " notin (nightly-29000000)", "", api.Query{}, ""},
		{job + "!=x", "", api.Query{}, "confirmed guessed foreign"},
		{job, "", api.Query{}, "confirmed guessed foreign"},
		{"!" + job, "", api.Query{}, ""},
		{kind + "=Job", "", api.Query{OwnerKind: "Job"}, "confirmed foreign"},
		{kind + "!=Job", "", api.Query{}, "guessed"},
		{other + "=true", "", api.Query{}, "foreign"},
		{"!" + other, "", api.Query{}, "confirmed guessed"},
		{job + "=nightly-29000000," + kind + "=Job", "", api.Query{Job: "nightly-29000000", OwnerKind: "Job"}, "confirmed foreign"},
		{"app=web", "", api.Query{}, ""},
		{"app!=web", "", api.Query{}, "confirmed guessed foreign"},
		{"", "spec.podName=nightly-29000000-x7k2p", api.Query{Pod: "nightly-29000000-x7k2p"}, "confirmed guessed foreign"},
		{"", "spec.podName!=nightly-29000000-x7k2p", api.Query{}, ""},
		{"", "spec.podName=x", api.Query{Pod: "x"}, ""},
		{"", "spec.podUID=0c8e", api.Query{PodUID: "0c8e"}, "confirmed guessed foreign"},
		{"", "spec.owner=job/nightly-29000000", api.Query{}, "confirmed foreign"},
		{"", "spec.owner=job/nightly", api.Query{}, ""},
		{"", "spec.owner!=job/nightly-29000000", api.Query{}, "guessed"},
		{"", "spec.nodeName==n17", api.Query{}, "confirmed guessed foreign"},
		{"", "spec.nodeName=n18", api.Query{}, ""},
		{"", "spec.nodeName=n17,spec.nodeName=n18", api.Query{}, ""},
		{"", "status.phase=Retained", api.Query{}, "confirmed guessed foreign"},
		{"", "status.phase!=Retained", api.Query{}, ""},
		{"", "status.phase=Published", api.Query{}, ""},
		{"", "metadata.name=" + name, api.Query{PodPrefix: "nightly-29000000-x7k2p"}, "confirmed guessed foreign"},
		{"", "metadata.name=" + name[:len(name)-1] + "0", api.Query{PodPrefix: "nightly-29000000-x7k2p"}, ""},
		{"", "metadata.name=x", api.Query{}, ""},
		{job + "=nightly-29000000", "metadata.name!=" + name, api.Query{Job: "nightly-29000000"}, ""},
	} {
		t.Run(tt.labels+" "+tt.fields, func(t *testing.T) {
			s := parsed(t, tt.labels, tt.fields)
			var got []string
			for _, v := range []struct {
				name string
				v    RetainedVolume
			}{{"confirmed", confirmed}, {"guessed", guessed}, {"foreign", foreign}} {
				if s.Matches(&v.v) {
					got = append(got, v.name)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("selected are %v, want %s", got, tt.want)
			}
			if s.Empty() && len(got) > 0 || !s.Nodes("n17") && len(got) > 0 {
				t.Errorf("selected are %v, and Empty is %v, Nodes %v", got, s.Empty(), s.Nodes("n17"))
			}
			if q := s.Narrow(api.Query{Namespace: "ci"}); q.Namespace != "ci" || !reflect.DeepEqual(s.Narrow(api.Query{}), tt.query) {
				t.Errorf("query %+v, want %+v", q, tt.query)
			}
			if s.All() != (tt.labels == "" && tt.fields == "") {
				t.Errorf("All is %v", s.All())
			}
		})
	}
}

// TestSelectorOfClaims: the node selects by the name, whosever it is, and the selector by what it is of.
func TestSelectorOfClaims(t *testing.T) {
	v := api.Volume{ID: "pvc-1", Namespace: "ci", Claim: "data", Node: "n17", Phase: "Retained", RetainedAt: &now,
		Owner: &api.Owner{Verdict: "Confirmed", NamespaceUID: "ns-1", Kind: "PersistentVolumeClaim", Name: "data", UID: "claim-1"}}
	claim, pod := From(v, "katbox", false), example()
	pod.Pod = "data"
	inline := From(pod, "katbox", false)
	if claim.Spec.ClaimName != "data" || claim.Spec.PodName != "" || claim.Spec.Owner == nil || claim.Spec.NamespaceUID != "ns-1" {
		t.Errorf("spec %+v", claim.Spec)
	}
	for selector, wantClaim := range map[[2]string]bool{
		{"", "spec.claimName=data"}: true, {"", "spec.podName=data"}: false, {LabelOwnerKind + "=PersistentVolumeClaim", ""}: true,
		{"", "spec.podName=data,spec.claimName="}: false,
	} {
		s := parsed(t, selector[0], selector[1])
		if s.Matches(&claim) != wantClaim || s.Matches(&inline) == wantClaim {
			t.Errorf("%v: of the claim %v, of the pod %v", selector, s.Matches(&claim), s.Matches(&inline))
		}
		if q := s.Narrow(api.Query{}); selector[0] == "" && q.Pod != "data" {
			t.Errorf("%v asks nodes for %+v", selector, q)
		}
	}
}

func TestSelectorKnowsWhatIsEmpty(t *testing.T) {
	for selector, want := range map[[2]string]bool{
		{"app=web", ""}: true, {"app", ""}: true, {"app!=web", ""}: false, {"!app", ""}: false, {"", "metadata.name=x"}: true,
		{"", "status.phase=Deleting"}: true, {"", "status.phase=Retained"}: false, {"katbox.io/foreign=true", ""}: false,
	} {
		if got := parsed(t, selector[0], selector[1]).Empty(); got != want {
			t.Errorf("%q is empty: %v", selector, got)
		}
	}
	if parsed(t, "", "metadata.name="+Name(example())).Nodes("n18") {
		t.Error("the name of a volume of n17 selects nodes like n18")
	}
	if w := parsed(t, "app!=web", "").Warning(); !strings.Contains(w, `"app"`) {
		t.Errorf("the warning about a label that no volume has: %q", w)
	}
	if w := parsed(t, LabelJob+"=x", "").Warning(); w != "" {
		t.Errorf("a warning about a label that volumes have: %q", w)
	}
}

func TestBadSelectors(t *testing.T) {
	for _, selector := range [][2]string{
		{"a=b=c", ""}, {"=", ""}, {"a in ", ""}, {"", "spec.volumeID=csi-1"}, {"", "metadata.namespace=ci"}, {"", "spec.podName"}, {"",
			"a=\\x"},
	} {
		if s, err := ParseSelector(selector[0], selector[1]); err == nil {
			t.Errorf("%q is taken for a selector: %s", selector, s)
		}
	}
}

func TestSelectorText(t *testing.T) {
	a := parsed(t, "katbox.io/foreign=true,batch.kubernetes.io/job-name in (b,a)", "spec.podName=x,spec.nodeName=y").String()
	b := parsed(t, "batch.kubernetes.io/job-name in (a,b), katbox.io/foreign=true", "spec.nodeName=y,spec.podName==x").String()
	c := parsed(t, "batch.kubernetes.io/job-name in (a,b), katbox.io/foreign=true", "spec.nodeName=y,spec.podName!=x").String()
	if a == c {
		t.Errorf("two selectors have the text %q", a)
	}
	if parsed(t, "", "").String() == a {
		t.Error("no selector has the text of one")
	}
	if a != b {
		t.Errorf("the same selector has the texts %q and %q", a, b)
	}
}

func TestOnlyName(t *testing.T) {
	for text, want := range map[string]string{
		"metadata.name=a": "a", "metadata.name==a,status.phase=Retained": "a", "metadata.name!=a": "", "": "", "status.phase=Retained": "",
		"x=\\y": "",
	} {
		if got := OnlyName(text); got != want {
			t.Errorf("the name in %q is %q, want %q", text, got, want)
		}
	}
}
