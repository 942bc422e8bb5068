package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// prefix is that of all paths that are forwarded.
const prefix = "/apis/katbox.io/v1alpha1/"

var (
	validNamespace = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	// validName is wider than a DNS name: the pod's name in that of a volume may be cut at any place.
	validName = regexp.MustCompile(`^[a-z0-9][-.a-z0-9]{0,251}[a-z0-9]$`)
)

// anyVolume stands for the name of a volume where all are searched.
const anyVolume = "-"

// call is a request for retained volumes.
type call struct {
	// namespace is empty for all of them, name for a list, and subresource for the volume itself. The name is anyVolume for a search of
	// several volumes.
	namespace, name, subresource string
}

// path is that of the call. It needs no encoding.
func (c call) path() string {
	path := prefix
	if c.namespace != "" {
		path += "namespaces/" + c.namespace + "/"
	}
	path += "retainedvolumes"
	if c.name != "" {
		path += "/" + c.name
	}
	if c.subresource != "" {
		path += "/" + c.subresource
	}
	return path
}

// parsePath reads the path of a call, which is decoded already. What is not written exactly as [call.path]
// writes it is none.
func parsePath(path string) (c call, ok bool) {
	rest, ok := strings.CutPrefix(path, prefix)
	if !ok {
		return call{}, false
	}
	elements := strings.Split(rest, "/")
	if len(elements) >= 2 && elements[0] == "namespaces" {
		c.namespace = elements[1]
		elements = elements[2:]
		if !validNamespace.MatchString(c.namespace) {
			return call{}, false
		}
	}
	search := len(elements) == 3 && elements[1] == anyVolume && elements[2] == "log"
	if len(elements) == 0 || elements[0] != "retainedvolumes" || len(elements) > 1 && c.namespace == "" && !search || len(elements) > 3 {
		return call{}, false
	}
	if len(elements) > 1 {
		c.name = elements[1]
		if !validName.MatchString(c.name) && !search {
			return call{}, false
		}
	}
	if len(elements) > 2 {
		c.subresource = elements[2]
		if c.subresource != "files" && c.subresource != "log" {
			return call{}, false
		}
	}
	return c, true
}

// parseCall reads a request for retained volumes: its path, its method and its query. Only a patch has a
// body: what would say under which conditions a volume is deleted must not be dropped.
func parseCall(r *http.Request) (call, bool) {
	c, ok := parsePath(r.URL.Path)
	if !ok {
		return call{}, false
	}
	switch r.Method {
	case http.MethodGet:
	case http.MethodHead:
		ok = c.subresource == "log" && c.name != anyVolume
	case http.MethodPatch:
		return c, c.name != "" && c.subresource == "" && r.URL.RawQuery == "" && r.ContentLength > 0
	case http.MethodDelete:
		ok = c.name != "" && c.subresource == ""
	default:
		ok = false
	}
	_, err := url.ParseQuery(r.URL.RawQuery)
	return c, ok && err == nil && r.ContentLength == 0
}
