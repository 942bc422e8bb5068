package page

import (
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// person is a user of the cluster: who he is, and what he may do in which namespace. "*" is all of
// them, and the cluster's own objects.
type person struct {
	name   string
	groups []string
	roles  map[string]role
}

// role is what the chart gives to view and edit, and keep what katbox-keep has beside these.
type role int

const (
	none role = iota
	view
	edit
	keep
)

// people are known by their token.
var people = map[string]person{
	"token-of-alice": {"alice", []string{"developers"}, map[string]role{"ci": edit}},
	"token-of-kim":   {"kim", nil, map[string]role{"ci": keep}},
	"token-of-vera":  {"vera", []string{"readers"}, map[string]role{"ci": view}},
	"token-of-bob":   {"bob", nil, map[string]role{"other": edit}},
	"token-of-root":  {"root", []string{"system:masters"}, map[string]role{"*": edit}},
}

// may answers a review.
func may(user string, what *authorizationv1.ResourceAttributes) bool {
	for _, p := range people {
		if p.name == user && what != nil {
			return p.may(what.Group, what.Verb, what.Resource, what.Subresource, what.Namespace)
		}
	}
	return false
}

func (p person) may(group, verb, resource, subresource, namespace string) bool {
	has := max(p.roles["*"], p.roles[namespace])
	if namespace == "" {
		has = p.roles["*"]
	}
	if group != "katbox.io" || resource != "retainedvolumes" {
		return has == edit && p.roles["*"] == edit
	}
	switch {
	case subresource == "" && slices.Contains([]string{"get", "list"}, verb):
		return has >= view
	case slices.Contains([]string{"files", "log"}, subresource) && verb == "get", subresource == "" && verb == "delete":
		return has >= edit
	case subresource == "" && verb == "patch":
		return has >= keep
	}
	return false
}
