package resource

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/katbox/katbox/internal/model/api"
)

var now = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

// example returns a volume that is confirmed to be of a Job.
func example() api.Volume {
	published, retained, expires := now.Add(-4*time.Hour), now.Add(-3*time.Hour), now.Add(9*time.Hour)
	size, inodes := int64(1288490189), int64(17)
	return api.Volume{
		ID: "csi-1", Namespace: "ci", Pod: "nightly-29000000-x7k2p", PodUID: "0c8e", Volume: "scratch", Node: "n17", Phase: "Retained",
		PublishedAt: &published, RetainedAt: &retained, ExpiresAt: &expires, Bytes: &size, Inodes: &inodes,
		Owner: &api.Owner{Verdict: "Confirmed", NamespaceUID: "ns-1", Kind: "Job", Name: "nightly-29000000", UID: "job-1",
			Job: "nightly-29000000"},
		Outcome: "Failed", Hold: &api.Hold{Kind: "Pinned", Until: expires, By: "alice", Why: "look"},
		Terms: &api.Terms{Lifespan: "12h", LifespanSucceeded: "1h", Retain: "Always", LimitBytes: 1 << 30,
			LimitNotEnforced: true},
	}
}

// exampleGone returns the same volume after a person has deleted it.
func exampleGone() api.GoneVolume {
	v := example()
	return api.GoneVolume{
		Volume: v, Number: 7, GoneAt: now.Add(-time.Hour), Reason: "purged", Promised: "12h", Kept: "2h", By: "bob", Why: "a secret",
	}
}

// TestFromGone: a released volume is not kept until then, and one that is gone says when and why.
func TestFromGone(t *testing.T) {
	released := example()
	released.Hold.Kind = "Released"
	if v := From(released, "katbox", false); v.Spec.KeepUntil != nil || v.Spec.KeepReason != "" || v.Status.Hold.Kind != "Released" {
		t.Errorf("released: %+v, %+v", v.Spec, v.Status.Hold)
	}
	v := FromGone(exampleGone(), "katbox", false)
	text, err := json.Marshal(v.Status)
	if err != nil || v.Name != From(example(), "katbox", false).Name {
		t.Fatal(v.Name, err)
	}
	want := `"gone":{"at":"2026-11-22T11:00:00Z","reason":"purged","promised":"12h","kept":"2h","early":false,"by":"bob","why":"a secret"}}`
	if !strings.HasPrefix(string(text), `{"phase":"Gone","outcome":"Failed",`) || !strings.HasSuffix(string(text), want) {
		t.Errorf("status %s, want %s at its end", text, want)
	}
	early := v
	early.Status.Gone = &Gone{At: v.Status.Gone.At, Reason: "bytes", Promised: "12h", Kept: "2h"}
	table := Table(metav1.ListMeta{}, []RetainedVolume{v, early}, true, "", now)
	for i, want := range []string{"60m, 2h of 12h, purged by bob", "60m, 2h of 12h, bytes: the disk ran short of space"} {
		var cells []string
		for j, cell := range table.Rows[i].Cells {
			if name := table.ColumnDefinitions[j].Name; name == "Gone" || name == "Kept" || name == "Why" {
				cells = append(cells, cell.(string))
			}
		}
		if got := strings.Join(cells, ", "); got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
}

func TestFrom(t *testing.T) {
	v := From(example(), "katbox", false)
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"RetainedVolume","apiVersion":"katbox.io/v1alpha1",` +
		`"metadata":{"name":"nightly-29000000-x7k2p.8n0nx3kybwp5","namespace":"ci",` +
		`"uid":"` + string(v.UID) + `","creationTimestamp":"2026-11-22T09:00:00Z",` +
		`"labels":{"batch.kubernetes.io/job-name":"nightly-29000000",` +
		`"katbox.io/owner-kind":"Job"}},"spec":{"podName":"nightly-29000000-x7k2p","podUID":"0c8e","volumeName":"scratch","nodeName":"n17",` +
		`"volumeID":"csi-1","owner":{"kind":"Job","name":"nightly-29000000","uid":"job-1","guessed":false},"namespaceUID":"ns-1",` +
		`"keepUntil":"2026-11-22T21:00:00Z","keepReason":"look"},` +
		`"status":{"phase":"Retained","outcome":"Failed","publishedAt":"2026-11-22T08:00:00Z","retainedAt":"2026-11-22T09:00:00Z",` +
		`"expiresAt":"2026-11-22T21:00:00Z",` +
		`"mayGoEarlier":false,"bytes":1288490189,"inodes":17,` +
		`"hold":{"kind":"Pinned","until":"2026-11-22T21:00:00Z","by":"alice","why":"look"},` +
		`"terms":{"lifespan":"12h","lifespanSucceeded":"1h","retain":"Always","limitBytes":1073741824,"limitNotEnforced":true}}}`
	if string(text) != want {
		t.Errorf("volume:\n%s\nwant\n%s", text, want)
	}
	if other := From(example(), "other", true); other.UID != v.UID || other.Namespace != "ci" || other.Labels[LabelForeign] != "true" {
		t.Errorf("the same volume, foreign: %+v", other.ObjectMeta)
	}
	elsewhere := example()
	elsewhere.Node = "n18"
	if other := From(elsewhere, "katbox", false); other.UID == v.UID || other.Name == v.Name {
		t.Errorf("the volume of another node: %+v", other.ObjectMeta)
	}
}

func TestOwnersAndLabels(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pod    string
		owner  *api.Owner
		want   *Owner
		labels map[string]string
	}{
		{"guessed", "nightly-29000000-x7k2p", nil, &Owner{Kind: "Job", Name: "nightly-29000000", Guessed: true},
			map[string]string{LabelJob: "nightly-29000000"}},
		{"no guess", "web-6f7c9d8b5-x7k2p", nil, nil, nil},
		{"denied", "nightly-29000000-x7k2p", &api.Owner{Verdict: "Denied"}, nil, nil},
		{"alone", "nightly-29000000-x7k2p", &api.Owner{Verdict: "Confirmed", NamespaceUID: "u"}, nil, nil},
		{"a set", "db-0", &api.Owner{Verdict: "Confirmed", NamespaceUID: "u", Kind: "StatefulSet", Name: "db", UID: "s"},
			&Owner{Kind: "StatefulSet", Name: "db", UID: "s"}, map[string]string{LabelOwnerKind: "StatefulSet"}},
		{"indexed", "train-3-abcde", &api.Owner{Verdict: "Confirmed", NamespaceUID: "u", Kind: "Job", Name: "train", UID: "j", Job: "train",
			JobIndex: "3"},
			&Owner{Kind: "Job", Name: "train", UID: "j", JobIndex: "3"}, map[string]string{LabelJob: "train", LabelOwnerKind: "Job"}},
		{"a label that cannot be one", "p", &api.Owner{Verdict: "Confirmed", Kind: "a b", Name: "n", Job: strings.Repeat("j", 64)},
			&Owner{Kind: "a b", Name: "n"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := example()
			v.Pod, v.Owner = tt.pod, tt.owner
			got := From(v, "katbox", false)
			if (got.Spec.Owner == nil) != (tt.want == nil) || tt.want != nil && *got.Spec.Owner != *tt.want {
				t.Errorf("owner %+v, want %+v", got.Spec.Owner, tt.want)
			}
			if !labels.Equals(got.Labels, tt.labels) {
				t.Errorf("labels %v, want %v", got.Labels, tt.labels)
			}
		})
	}
}

func TestVolumeOfNoNamespace(t *testing.T) {
	v := From(api.Volume{ID: "adopted", Node: "n17", Phase: "Retained"}, "katbox", true)
	if v.Namespace != "katbox" || !strings.HasPrefix(v.Name, "unknown.") || v.Labels[LabelForeign] != "true" {
		t.Errorf("an adopted orphan: %+v", v.ObjectMeta)
	}
}

func TestTable(t *testing.T) {
	bare := From(api.Volume{ID: "adopted", Node: "n17", Phase: "Retained"}, "katbox", true)
	guessed := From(api.Volume{ID: "g", Node: "n17", Pod: "etl-x7k2p", Phase: "Retained"}, "katbox", false)
	over := From(example(), "katbox", false)
	over.Status.ExpiresAt = &metav1.Time{Time: now}
	meta := metav1.ListMeta{Continue: "next"}
	table := Table(meta, []RetainedVolume{From(example(), "katbox", false), bare, guessed, over}, false, "", now)
	text, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kind, APIVersion  string
		Metadata          metav1.ListMeta
		ColumnDefinitions []metav1.TableColumnDefinition
		Rows              []struct {
			Cells  []string
			Object metav1.PartialObjectMetadata
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != "Table" || got.APIVersion != "meta.k8s.io/v1" || got.Metadata.Continue != "next" {
		t.Errorf("table %+v", got)
	}
	want := []string{
		"Name nightly-29000000-x7k2p.8n0nx3kybwp5, Pod nightly-29000000-x7k2p, Owner job/nightly-29000000, " +
			"Outcome Failed, Size 1.2 GiB, Age 3h, Expires 9h, Node n17, Pod-UID 0c8e, Hold Pinned by alice, Phase Retained",
		"Name " + bare.Name + ", Pod , Owner <none>, Outcome <unknown>, Size <unknown>, " +
			"Age <unknown>, Expires <unknown>, Node n17, Pod-UID , Hold <none>, Phase Retained",
		"Name " + guessed.Name + ", Pod etl-x7k2p, Owner job/etl?, Outcome <unknown>, Size <unknown>, " +
			"Age <unknown>, Expires <unknown>, Node n17, Pod-UID , Hold <none>, Phase Retained",
		"Name nightly-29000000-x7k2p.8n0nx3kybwp5, Pod nightly-29000000-x7k2p, Owner job/nightly-29000000, " +
			"Outcome Failed, Size 1.2 GiB, Age 3h, Expires now, Node n17, Pod-UID 0c8e, Hold Pinned by alice, Phase Retained",
	}
	for i, row := range got.Rows {
		var cells []string
		for j, cell := range row.Cells {
			cells = append(cells, got.ColumnDefinitions[j].Name+" "+cell)
		}
		if line := strings.Join(cells, ", "); line != want[i] {
			t.Errorf("row %d:\n%s\nwant\n%s", i, line, want[i])
		}
		if row.Object.Kind != "PartialObjectMetadata" || row.Object.Name != row.Cells[0] {
			t.Errorf("object of row %d: %+v", i, row.Object)
		}
	}
	for include, want := range map[metav1.IncludeObjectPolicy]string{
		metav1.IncludeNone: `"object":null`, metav1.IncludeObject: `"object":{"kind":"RetainedVolume"`,
		metav1.IncludeMetadata: `"kind":"PartialObjectMetadata"`,
	} {
		text, err := json.Marshal(Table(meta, []RetainedVolume{bare}, false, include, now))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("table with %s: %s, %v; want %s", include, text, err, want)
		}
	}
}

func TestNothingToWatchFrom(t *testing.T) {
	list := &RetainedVolumeList{Items: []RetainedVolume{From(example(), "katbox", false)}}
	for _, v := range []any{list, Table(list.ListMeta, list.Items, false, metav1.IncludeObject, now), MetadataList(list),
		Metadata(&list.Items[0])} {
		if text, err := json.Marshal(v); err != nil || strings.Contains(string(text), "resourceVersion") {
			t.Errorf("%T has a resourceVersion: %s, %v", v, text, err)
		}
	}
}

func TestDeepCopy(t *testing.T) {
	v := FromGone(exampleGone(), "katbox", false)
	before, _ := json.Marshal(v)
	other := v.DeepCopyObject().(*RetainedVolume)
	if after, _ := json.Marshal(other); string(after) != string(before) {
		t.Errorf("copy %s of %s", after, before)
	}
	other.Labels[LabelJob], other.Spec.Owner.Name, *other.Status.Bytes = "x", "x", 0
	other.Status.ExpiresAt.Time, other.Spec.KeepUntil.Time = now.Add(1), now.Add(1)
	other.Status.Hold.By, other.Status.Terms.Retain, other.Status.Gone.Reason = "x", "x", "x"
	if after, _ := json.Marshal(v); string(after) != string(before) {
		t.Errorf("a change of the copy has changed %s into %s", before, after)
	}
}
