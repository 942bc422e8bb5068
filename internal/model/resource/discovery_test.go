package resource

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/api"
)

// A verb more, and controllers of the cluster delete or watch all volumes.
func TestDiscoveryAdvertisesGetAndListAlone(t *testing.T) {
	var list metav1.APIResourceList
	if err := json.Unmarshal(Documents()["/apis/katbox.io/v1alpha1"], &list); err != nil {
		t.Fatal(err)
	}
	if list.Kind != "APIResourceList" || list.GroupVersion != "katbox.io/v1alpha1" || len(list.APIResources) != 1 {
		t.Fatalf("resources %+v", list)
	}
	r := list.APIResources[0]
	if !slices.Equal(r.Verbs, []string{"get", "list"}) || r.Name != "retainedvolumes" || !r.Namespaced || r.Kind != "RetainedVolume" ||
		!slices.Equal(r.ShortNames, []string{"rv"}) || len(r.Categories) > 0 {
		t.Errorf("resource %+v", r)
	}
	var group metav1.APIGroup
	if err := json.Unmarshal(Documents()["/apis/katbox.io"], &group); err != nil || group.Kind != "APIGroup" || group.Name != "katbox.io" ||
		group.PreferredVersion.GroupVersion != "katbox.io/v1alpha1" || len(group.Versions) != 1 {
		t.Errorf("group %+v, %v", group, err)
	}
}

// described is a part of a document of OpenAPI.
type described struct {
	Type        string
	Description string
	Properties  map[string]described
	Required    []string
	Items       *described
	AllOf       []struct {
		Ref string `json:"$ref"`
	}
	Ref string `json:"$ref"`
}

func TestSchemaDescribesTheTypes(t *testing.T) {
	var document struct {
		OpenAPI    string
		Paths      map[string]any
		Components struct{ Schemas map[string]described }
	}
	if err := json.Unmarshal(Documents()["/openapi/v3/apis/katbox.io/v1alpha1"], &document); err != nil {
		t.Fatal(err)
	}
	var root struct{ Paths map[string]map[string]string }
	if err := json.Unmarshal(Documents()["/openapi/v3"], &root); err != nil ||
		!strings.HasPrefix(root.Paths["apis/katbox.io/v1alpha1"]["serverRelativeURL"], "/openapi/v3/apis/katbox.io/v1alpha1?hash=") {
		t.Errorf("root %+v, %v", root, err)
	}
	if !strings.HasPrefix(document.OpenAPI, "3.0") ||
		document.Paths["/apis/katbox.io/v1alpha1/namespaces/{namespace}/retainedvolumes"] == nil {
		t.Errorf("document of OpenAPI %s with %d paths", document.OpenAPI, len(document.Paths))
	}
	seen := map[string]bool{}
	var check func(name string, of reflect.Type)
	check = func(name string, of reflect.Type) {
		if seen[name] {
			return
		}
		seen[name] = true
		s, ok := document.Components.Schemas[name]
		if !ok || s.Description == "" {
			t.Errorf("there is no schema %s, or it has no description", name)
			return
		}
		left := map[string]bool{}
		for property := range s.Properties {
			left[property] = true
		}
		for field := range of.Fields() {
			tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if tag == "" { // TypeMeta
				delete(left, "apiVersion")
				delete(left, "kind")
				continue
			}
			p, ok := s.Properties[tag]
			if !ok || p.Description == "" {
				t.Errorf("%s.%s is not described", name, tag)
			}
			delete(left, tag)
			if required := !strings.Contains(options, "omitempty"); required != slices.Contains(s.Required, tag) {
				t.Errorf("%s.%s is always there: %v, and the schema says otherwise", name, tag, required)
			}
			if p.Items != nil {
				p = *p.Items
			}
			var ref string
			if ref = p.Ref; len(p.AllOf) > 0 {
				ref = p.AllOf[0].Ref
			}
			inner := field.Type
			for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
				inner = inner.Elem()
			}
			switch ref = strings.TrimPrefix(ref, "#/components/schemas/"); {
			case strings.HasPrefix(ref, "io.katbox."):
				check(ref, inner)
			case ref != "" && document.Components.Schemas[ref].Type == "":
				t.Errorf("%s.%s leads to %q, which is not there", name, tag, ref)
			case inner.Kind() == reflect.String && p.Type != "string", inner.Kind() == reflect.Bool && p.Type != "boolean",
				inner.Kind() >= reflect.Int && inner.Kind() <= reflect.Int64 && p.Type != "integer":
				t.Errorf("%s.%s is %v, and described as %q", name, tag, inner, p.Type)
			}
		}
		for property := range left {
			t.Errorf("%s.%s is described, and is not there", name, property)
		}
	}
	check("io.katbox.v1alpha1.RetainedVolume", reflect.TypeFor[RetainedVolume]())
	check("io.katbox.v1alpha1.RetainedVolumeList", reflect.TypeFor[RetainedVolumeList]())
}

func TestAccept(t *testing.T) {
	const table, meta = "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	for accept, want := range map[string]Form{
		"": AsObject, "*/*": AsObject, "application/json": AsObject, "application/*": AsObject,
		table + ",application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json":                                   AsTable,
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," + meta + ",application/json": AsMetadata,
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1":                                              AsMetadata,
		"application/vnd.kubernetes.protobuf,application/json":                                                          AsObject,
		"application/cbor, */*": AsObject, "application/yaml,*/*;q=0.8": AsObject,
		"application/json;q=0.5," + table: AsTable, "application/json;as=Table;v=v2;g=meta.k8s.io,application/json": AsObject,
	} {
		if got, err := Accept(http.Header{"Accept": {accept}}); err != nil || got != want {
			t.Errorf("Accept %q: form %d, %v; want %d", accept, got, err, want)
		}
	}
	if got, err := Accept(http.Header{"Accept": {"text/html", table}}); err != nil || got != AsTable {
		t.Errorf("Accept in two lines: form %d, %v", got, err)
	}
	for _, accept := range []string{"text/html", "application/vnd.kubernetes.protobuf", "application/json;q=0", "application/yaml", ",",
		"application/json;as=Foo;v=v1;g=meta.k8s.io"} {
		if got, err := Accept(http.Header{"Accept": {accept}}); err == nil || err.ErrStatus.Code != http.StatusNotAcceptable {
			t.Errorf("Accept %q: form %d, %v", accept, got, err)
		}
	}
}

func TestErrorsOfNodes(t *testing.T) {
	for _, tt := range []struct {
		code   int
		after  time.Duration
		want   int32
		reason string
		retry  int32
	}{
		{400, 0, 400, "BadRequest", 0}, {404, 0, 404, "NotFound", 0}, {409, 0, 409, "Conflict", 0}, {410, 0, 410, "Gone", 0},
		{416, 0, 416, "RangeNotSatisfiable", 0}, {429, 0, 429, "TooManyRequests", 1}, {429, 7 * time.Second, 429, "TooManyRequests", 7},
		{500, 0, 500, "InternalError", 0}, {503, 0, 503, "ServiceUnavailable", 10}, {503, 50000 * time.Second, 503, "ServiceUnavailable", 60},
		{504, 0, 504, "Timeout", 0}, {405, 0, 500, "InternalError", 0}, {302, 0, 500, "InternalError", 0}, {600, 0, 500, "InternalError", 0},
	} {
		e := &api.Error{Status: api.Status{Code: tt.code, Message: "a\x1b[31m\nb\xff"}, RetryAfter: tt.after}
		s := FromNode(e, "pod.x").ErrStatus
		if s.Code != tt.want || string(s.Reason) != tt.reason || s.Details.RetryAfterSeconds != tt.retry || s.Details.Name != "pod.x" ||
			s.Kind != "Status" || s.Status != "Failure" || !strings.Contains(s.Message, "a\ufffd[31m\ufffdb\ufffd") {
			t.Errorf("code %d: %+v, details %+v", tt.code, s, s.Details)
		}
	}
	e := &api.Error{Status: api.Status{Code: 400, Message: strings.Repeat("m", 1<<20), Details: &api.Details{
		Causes: []api.Cause{{Reason: "NotRegularFile", Field: "path"}}}}}
	s := FromNode(e, "pod.x").ErrStatus
	if len(s.Message) > maxMessage || len(s.Details.Causes) != 1 || s.Details.Causes[0].Type != "NotRegularFile" ||
		s.Details.Causes[0].Field != "path" {
		t.Errorf("a long message: %d bytes, causes %+v", len(s.Message), s.Details.Causes)
	}
}
