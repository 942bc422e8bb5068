package server

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// machinery are parameters that clients of Kubernetes add to any request. They change nothing here.
var machinery = []string{
	"timeout", "timeoutSeconds", "pretty", "fieldValidation", "resourceVersion", "resourceVersionMatch", "allowWatchBookmarks",
	"sendInitialEvents", "watch",
}

// maxQuery bounds the query of a request: the longest path that a volume can have takes 20 KiB. A node
// takes no more than 64 KiB.
const maxQuery = 32 << 10

// query reads the parameters of a request.
func query(r *http.Request) (url.Values, *apierrors.StatusError) {
	if len(r.URL.RawQuery) > maxQuery {
		return nil, badParameter("", "the query of the request has %d bytes, and may have %d", len(r.URL.RawQuery), maxQuery)
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		// What is wrong would be left out of the query.
		return nil, badParameter("", "the query %q is malformed: %v", r.URL.RawQuery, err)
	}
	return values, nil
}

// only returns those parameters that are named, and refuses all others except those of the
// machinery: a misspelled parameter must not send a whole file instead of its last lines.
func only(values url.Values, names ...string) (url.Values, *apierrors.StatusError) {
	known := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case slices.Contains(names, name):
			known[name] = values[name]
		case !slices.Contains(machinery, name):
			return nil, badParameter(name, "there is no parameter %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	return known, nil
}

// once returns a parameter that may be given once.
func once(values url.Values, name string) (string, *apierrors.StatusError) {
	if n := len(values[name]); n > 1 {
		return "", badParameter(name, "the parameter %s is given %d times; give it once", name, n)
	}
	return values.Get(name), nil
}

// number returns a parameter that is a number between 0 and most; 0 if it is not given.
func number(values url.Values, name string, most int64) (int64, *apierrors.StatusError) {
	text, wrong := once(values, name)
	if wrong != nil || text == "" {
		return 0, wrong
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, badParameter(name, "%s=%q is not a number between 0 and %d", name, text, most)
	}
	return n, nil
}

// badParameter says which parameter is wrong.
func badParameter(name, format string, values ...any) *apierrors.StatusError {
	return resource.BadRequest(api.BadParameter, name, format, values...)
}
