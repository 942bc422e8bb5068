package kubeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/katbox/katbox/internal/model/volume"
)

// errChanged: the object has been changed or made by another one meanwhile.
var errChanged = errors.New("changed meanwhile")

// kinds are the names of resources as people know them.
var kinds = map[string]string{
	"poolnodes": "PoolNode", "poolattachments": "PoolAttachment", "secrets": "Secret", "namespaces": "Namespace",
}

// what says what a request asks for, as in "patch the status of the PoolAttachment pvc-1.node-1".
func (r *request) what() string {
	object := kinds[r.resource] + " "
	if r.namespace != "" {
		object += r.namespace + "/"
	}
	if r.subresource != "" {
		object = r.subresource + " of the " + object
	}
	return r.verb + " the " + object + r.name
}

// unreachable is the error of a request that got no answer.
func (r *request) unreachable(server string, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the URL says nothing that is not said already
	}
	return fmt.Errorf("%w: %s: no answer from the API server at %s: %w", volume.ErrUnavailable, r.what(), server, err)
}

// refused is the error of a request that the API server refused.
func (r *request) refused(status int, text []byte, cfg Config) error {
	why := message(status, text)
	switch {
	case status == http.StatusNotFound && r.unknown(text):
		return fmt.Errorf("%w: %s: the cluster has no %s; install the definitions of the pools (deploy/crds): %s",
			volume.ErrUnavailable, r.what(), kinds[r.resource]+"s", why)
	case status == http.StatusNotFound:
		return fmt.Errorf("%w: %s: it is not there", volume.ErrNotFound, r.what())
	case status == http.StatusConflict:
		return fmt.Errorf("%w: %s: %w: %s", volume.ErrUnavailable, r.what(), errChanged, why)
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%w: %s: the API server does not accept the token in %s; is it that of this cluster? %s",
			volume.ErrUnavailable, r.what(), cfg.Credentials, why)
	case status == http.StatusForbidden && strings.Contains(why, "cannot "+r.verb+" resource"):
		return fmt.Errorf("%w: %s: the daemon's ServiceAccount lacks the right to %s %s; install the manifests with the pools again: %s",
			volume.ErrUnavailable, r.what(), r.verb, r.right(), why)
	default:
		return fmt.Errorf("%w: %s: the API server refuses it: %s", volume.ErrUnavailable, r.what(), why)
	}
}

// right is what a rule of a role has to name.
func (r *request) right() string {
	s := r.resource
	if r.subresource != "" {
		s += "/" + r.subresource
	}
	if r.group != "" {
		s += " of " + r.group
	}
	if r.namespace != "" {
		s += " in the namespace " + r.namespace
	}
	return s
}

// unknown reports whether an answer says that there is no such resource, rather than no such object: it
// names no object.
func (r *request) unknown(text []byte) bool {
	var s answered
	return r.group != "" && (json.Unmarshal(text, &s) != nil || s.Details.Name == "")
}

// answered is a Status of Kubernetes.
type answered struct {
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Details struct {
		Name string `json:"name"`
	} `json:"details"`
}

// message returns what an answer says, on one line.
func message(status int, text []byte) string {
	var s answered
	if json.Unmarshal(text, &s) != nil || s.Message == "" {
		s.Message = string(text)
	}
	s.Message = strings.Join(strings.Fields(strings.ToValidUTF8(s.Message, "?")), " ")
	if len(s.Message) > 600 {
		s.Message = strings.ToValidUTF8(s.Message[:600], "") + "..."
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, s.Message))
}

// isName reports whether an object can have this name, so that it changes no other part of a URL.
func isName(s string) bool { return len(s) <= 253 && subdomain.MatchString(s) }

var subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
