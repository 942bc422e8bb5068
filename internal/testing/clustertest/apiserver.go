// Package clustertest is a Kubernetes API for tests, with what Katbox' users meet of it: users with tokens
// and rights, discovery, reviews of rights, and Katbox' real gateway. Behind that are nodes with the real
// handlers of a daemon, over real files.
package clustertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/gateway/arrays"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/server"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
)

// Role is what a user may do with retained volumes.
type Role int

// The roles, each with what the one before may do: see volumes; read their files and delete them.
const (
	View Role = iota + 1
	Edit
	// Keep is Edit with the right to keep volumes longer.
	Keep
)

// Cluster is the API of a cluster. Its token for a user is the user's name.
type Cluster struct {
	t       testing.TB
	http    *httptest.Server
	gateway *server.Server

	mu        sync.Mutex
	roles     map[string]map[string]Role
	tenancies map[string]volume.Tenancy
	nodes     map[string]*Node
	missing   []fleet.Missing
	arrays    *arrays.Arrays
	owners    map[string]api.Owner
	absent    bool
	down      bool
	intercept func(http.ResponseWriter, *http.Request) bool
	requests  []string
	cuts      []int
}

// New starts a cluster with the namespaces ci and etl, and without nodes. In ci, vic has the role View
// eve the role Edit, and kim the role Keep. In etl, bob has the role Edit. Admin has it everywhere.
func New(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{
		t: t, nodes: map[string]*Node{}, tenancies: map[string]volume.Tenancy{}, owners: map[string]api.Owner{},
		roles: map[string]map[string]Role{},
	}
	c.Grant("vic", "ci", View)
	c.Grant("eve", "ci", Edit)
	c.Grant("bob", "etl", Edit)
	c.Grant("kim", "ci", Keep)
	c.Grant("admin", "", Keep)
	for _, name := range []string{"ci", "etl"} {
		c.tenancies[name] = volume.Tenancy{UID: "uid-" + name}
	}
	c.startGateway()
	c.http = httptest.NewUnstartedServer(http.HandlerFunc(c.serve))
	c.http.EnableHTTP2 = true
	c.http.StartTLS()
	t.Cleanup(c.http.Close)
	return c
}

// Namespace makes a namespace anew.
func (c *Cluster) Namespace(name string, now volume.Tenancy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tenancies[name] = now
}

// Grant gives a user a role in a namespace, or in all if that is empty.
func (c *Cluster) Grant(user, namespace string, role Role) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.roles[user] == nil {
		c.roles[user] = map[string]Role{}
	}
	c.roles[user][namespace] = role
}

// Uninstall takes the gateway away, as if Katbox had never been installed with one.
func (c *Cluster) Uninstall() { c.mu.Lock(); defer c.mu.Unlock(); c.absent = true }

// Down lets no gateway answer, or lets it answer again.
func (c *Cluster) Down(down bool) { c.mu.Lock(); defer c.mu.Unlock(); c.down = down }

// Intercept calls f with each request, in place of the API server where f returns true.
func (c *Cluster) Intercept(f func(http.ResponseWriter, *http.Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.intercept = f
}

// Requests returns the requests so far, each as "USER METHOD PATH?QUERY".
func (c *Cluster) Requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.requests...)
}

// may reports whether a user may do something, as RBAC would with the roles that Katbox ships.
func (c *Cluster) may(user, verb, subresource, namespace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	role := max(c.roles[user][""], c.roles[user][namespace])
	switch {
	case subresource == "" && (verb == "get" || verb == "list"):
		return role >= View
	case subresource == "" && verb == "delete", subresource != "" && verb == "get":
		return role >= Edit
	case subresource == "" && verb == "patch":
		return role >= Keep
	}
	return false
}

// serve is the API server: it knows the user, asks for the rights, and passes on.
func (c *Cluster) serve(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	user := token
	if as := r.Header.Get("Impersonate-User"); as != "" && token == "admin" {
		user = as
	}
	c.mu.Lock()
	c.requests = append(c.requests, fmt.Sprintf("%s %s %s", user, r.Method, r.URL.RequestURI()))
	intercept, absent, down, known := c.intercept, c.absent, c.down, c.roles[token] != nil
	c.mu.Unlock()
	if intercept != nil && intercept(w, r) {
		return
	}
	switch path := r.URL.Path; {
	case !known:
		answer(w, http.StatusUnauthorized, failure(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"))
	case path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		c.reviewAccess(w, r, user)
	case path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		answer(w, http.StatusCreated, map[string]any{"status": map[string]any{"userInfo": map[string]any{"username": user}}})
	case absent && c.mayReach(user, path):
		http.Error(w, "404 page not found", http.StatusNotFound)
	case absent && strings.HasPrefix(path, resource.VersionPath):
		c.forbid(w, r, user)
	case path == resource.GroupPath:
		answer(w, http.StatusOK, json.RawMessage(resource.Documents()[path]))
	case strings.HasPrefix(path, resource.VersionPath):
		c.toGateway(w, r, user, down)
	default:
		answer(w, http.StatusForbidden, failure(http.StatusForbidden, metav1.StatusReasonForbidden,
			fmt.Sprintf("forbidden: User %q cannot get path %q", user, path)))
	}
}

// mayReach reports whether a request passes authorization without a gateway: no user has rights on its
// resources then, except for all resources.
func (c *Cluster) mayReach(user, path string) bool {
	return path == resource.GroupPath || path == resource.VersionPath || user == "admin"
}

// toGateway passes a request on if the user may.
func (c *Cluster) toGateway(w http.ResponseWriter, r *http.Request, user string, down bool) {
	verb, subresource, namespace, _ := attributesOf(r)
	switch {
	case r.URL.Path != resource.VersionPath && !c.may(user, verb, subresource, namespace):
		c.forbid(w, r, user)
	case down:
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
	default:
		q := r.Clone(r.Context())
		q.Header.Del("Authorization")
		q.Header.Set("X-Remote-User", user)
		c.gateway.ServeHTTP(c.cutting(w, r), q)
	}
}

// forbid answers as the API server does if RBAC allows nothing.
func (c *Cluster) forbid(w http.ResponseWriter, r *http.Request, user string) {
	verb, subresource, namespace, name := attributesOf(r)
	where := "at the cluster scope"
	if namespace != "" {
		where = fmt.Sprintf("in the namespace %q", namespace)
	}
	if name != "" {
		name = fmt.Sprintf(" %q", name)
	}
	answer(w, http.StatusForbidden, failure(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(
		"%s.%s%s is forbidden: User %q cannot %s resource %q in API group %q %s", resource.Resource, resource.Group, name,
		user, verb, strings.TrimSuffix(resource.Resource+"/"+subresource, "/"), resource.Group, where)))
}

// attributesOf reads a request as the API server's authorization does.
func attributesOf(r *http.Request) (verb, subresource, namespace, name string) {
	elements := strings.Split(strings.TrimPrefix(r.URL.Path, resource.VersionPath+"/"), "/")
	if elements[0] == "namespaces" && len(elements) > 1 {
		namespace, elements = elements[1], elements[2:]
	}
	if len(elements) > 1 {
		name = elements[1]
	}
	if len(elements) > 2 {
		subresource = elements[2]
	}
	switch {
	case r.Method == http.MethodDelete:
		verb = "delete"
	case r.Method == http.MethodPatch:
		verb = "patch"
	case name == "":
		verb = "list"
	default:
		verb = "get"
	}
	return verb, subresource, namespace, name
}

// reviewAccess answers a SelfSubjectAccessReview.
func (c *Cluster) reviewAccess(w http.ResponseWriter, r *http.Request, user string) {
	var ask struct {
		Spec struct {
			ResourceAttributes struct{ Namespace, Verb, Group, Resource, Subresource string }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a := ask.Spec.ResourceAttributes
	allowed := a.Group == resource.Group && a.Resource == resource.Resource && c.may(user, a.Verb, a.Subresource, a.Namespace)
	answer(w, http.StatusCreated, map[string]any{"status": map[string]any{"allowed": allowed}})
}

func failure(code int32, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: code, Reason: reason, Message: message,
	}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client is gone
}
