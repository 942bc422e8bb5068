package server

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/katbox/katbox/internal/gateway/trust"
	"github.com/katbox/katbox/internal/model/resource"
)

// kind is what a request is about.
type kind int

const (
	nothing kind = iota
	health
	ready
	groups   // the list of all groups, which is the API server's
	document // discovery, or OpenAPI
	volumes
)

// target is what a request asks for.
type target struct {
	kind kind
	trust.Attributes
	// refused says why no user can do this; it is empty if a user may.
	refused string
}

// route reads the method and the path of a request. It takes a path as it is: without cleaning it,
// and in the same way as the API server has for its own question whether the user may.
func route(r *http.Request) target {
	switch r.URL.Path {
	case "/livez", "/healthz":
		return target{kind: health}
	case "/readyz":
		return target{kind: ready}
	case "/apis":
		return target{kind: groups}
	case resource.GroupPath, resource.VersionPath, resource.OpenAPIPath, resource.SchemaPath:
		return target{kind: document}
	}
	path, ok := strings.CutPrefix(r.URL.Path, resource.VersionPath+"/")
	if !ok {
		return target{}
	}
	t := target{kind: volumes}
	elements := strings.Split(path, "/")
	if elements[0] == "watch" {
		elements, t.Verb = elements[1:], "watch"
	}
	if len(elements) >= 2 && elements[0] == "namespaces" {
		t.Namespace = elements[1]
		if len(validation.IsDNS1123Label(t.Namespace)) > 0 {
			return target{}
		}
		elements = elements[2:]
	}
	if len(elements) == 0 || elements[0] != resource.Resource {
		return target{}
	}
	switch {
	case len(elements) == 1:
	case len(elements) == 3 && elements[1] == resource.AnyVolume && elements[2] == resource.Log:
		t.Name, t.Subresource = elements[1], elements[2]
	case len(elements) <= 3 && t.Namespace != "" && elements[1] != "" && len(elements[1]) <= maxName:
		t.Name = elements[1]
		if len(elements) == 3 {
			t.Subresource = elements[2]
		}
	default:
		return target{}
	}
	if t.Subresource != "" && t.Subresource != resource.Files && t.Subresource != resource.Log {
		return target{}
	}
	return t.by(r)
}

// maxName is the longest name of an object, in bytes.
const maxName = 253

// by completes a target by the method of the request.
func (t target) by(r *http.Request) target {
	switch {
	case t.Verb == "watch" || r.Method == http.MethodGet && watches(r):
		t.Verb, t.refused = "watch", "retained volumes cannot be watched; list them again after a while"
	case r.Method == http.MethodGet && t.Name == "":
		t.Verb = "list"
	case r.Method == http.MethodGet, r.Method == http.MethodHead && t.Subresource == resource.Log:
		t.Verb = "get"
	case r.Method == http.MethodDelete && t.Name == "":
		t.Verb, t.refused = "deletecollection", "retained volumes are deleted one by one, each by its name"
	case r.Method == http.MethodDelete && t.Subresource == "":
		t.Verb = "delete"
	case r.Method == http.MethodPatch && t.Name != "" && t.Subresource == "":
		t.Verb = "patch"
	default:
		t.Verb, t.refused = verbs[r.Method], "retained volumes can be read, kept longer and deleted, and nothing else"
	}
	return t
}

// verbs are Kubernetes' words for methods that are always refused.
var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodHead: "get", http.MethodDelete: "delete",
}

// watches reports whether a request wants to watch, which the API server reads so: any value but
// two.
func watches(r *http.Request) bool {
	values := r.URL.Query()["watch"]
	return len(values) > 0 && !strings.EqualFold(values[0], "false") && values[0] != "0"
}

// resourceName is the resource in metrics and messages.
func (t target) resourceName() string {
	switch {
	case t.kind != volumes:
		return "other"
	case t.Subresource != "":
		return resource.Resource + "/" + t.Subresource
	}
	return resource.Resource
}

// maxAuditID is the longest ID of a request that the API server takes from a client.
const maxAuditID = 64

// auditID returns the ID that a request has in the API server's audit log, or a new one.
func auditID(text string) string {
	if text == "" {
		return string(uuid.NewUUID())
	}
	return headerText(text[:min(len(text), maxAuditID)])
}
