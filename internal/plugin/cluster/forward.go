package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/sealed"
)

// The headers that are passed on. Whatever else a page sends could be about who asks; what else the API
// server sends could be about the origin that it would have in a browser.
var (
	forwardedHeaders = []string{"Accept", "If-None-Match", "If-Range", "Range"}
	returnedHeaders  = []string{
		"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Length", "Content-Range", "Content-Security-Policy",
		"Content-Type", "Cross-Origin-Resource-Policy", "Etag", "Retry-After", "Warning", "X-Content-Type-Options",
		"Katbox-Node", "Katbox-Offset", "Katbox-Size",
	}
)

// mostPatch bounds the body of a patch.
const mostPatch = 16 << 10

// Forward returns a handler that sends requests for retained volumes to the API server, with the
// credentials of the client: GET and HEAD of a list, a volume, its subresources, and a search of several volumes, DELETE of a volume,
// and PATCH of one, which pins it or takes that back. All else is refused. It believes everyone who can
// reach it.
func (c *Client) Forward() http.Handler { return http.HandlerFunc(c.forward) }

func (c *Client) forward(w http.ResponseWriter, r *http.Request) {
	about, ok := parsePath(r.URL.Path)
	if !ok {
		refuse(w, http.StatusNotFound, api.NotFound, "only retained volumes are here, and not this path")
		return
	}
	switch {
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
	case r.Method == http.MethodDelete && about.name != "" && about.subresource == "":
		about.verb = "delete"
	case r.Method == http.MethodPatch && about.name != "" && about.subresource == "":
		about.verb = "patch"
	default:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, api.MethodNotAllowed, "volumes are read here, pinned and deleted one at a time")
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		refuse(w, http.StatusBadRequest, api.BadRequest, "the query cannot be read: "+err.Error())
		return
	}
	q := api.Request{Method: r.Method, Path: about.path(), Query: query, Stream: true, Header: http.Header{
		"Accept-Encoding": {"identity"},
	}}
	for _, name := range forwardedHeaders {
		if values := r.Header[name]; len(values) > 0 {
			q.Header[name] = values
		}
	}
	if about.verb == "patch" { // the bodies of others are for nothing that is possible here
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostPatch))
		if err != nil || !json.Valid(text) {
			refuse(w, http.StatusBadRequest, api.BadRequest, "the body of the request is not a patch in JSON")
			return
		}
		q.Header["Content-Type"], q.Body = []string{mergePatch}, json.RawMessage(text)
	}
	word := ""
	if archive := about.subresource == resource.Log && query.Get("archive") != ""; archive && r.Method == http.MethodGet {
		word = sealed.NewWord()
		q.Header.Set(sealed.Header, word)
	}
	answer, err := c.caller.Send(r.Context(), q)
	if err != nil {
		refuse(w, http.StatusBadGateway, api.ServiceUnavailable, c.Explain(r.Context(), "", err).Error())
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices && answer.StatusCode != http.StatusNotModified {
		c.forwardError(r.Context(), w, about, answer)
		return
	}
	search := query.Has("grep") // its last record is its end
	if about.subresource != resource.Log || r.Method != http.MethodGet || answer.StatusCode == http.StatusNotModified || search {
		pass(w, answer, answer.Body)
		return
	}
	limit, _ := strconv.ParseInt(query.Get("limit"), 10, 64)
	stream := api.OpenStream(answer, api.BytesQuery{Archive: word != "", Seal: word, Limit: limit})
	switch {
	case word != "":
		answer.Header.Del("Content-Length")
	case stream.Length < 0:
		refuse(w, http.StatusBadGateway, api.InternalError,
			"the answer does not say how long it is: a proxy has taken the headers Content-Length and Katbox-Size out of it")
		return
	default:
		answer.Header.Set("Content-Length", strconv.FormatInt(stream.Length, 10))
	}
	pass(w, answer, stream)
}

// parsePath reads the path of a request, decoded. It takes nothing but the paths that [object.path]
// returns.
func parsePath(path string) (object, bool) {
	rest, ok := strings.CutPrefix(path, resource.VersionPath+"/")
	if !ok {
		return object{}, false
	}
	o, elements := object{verb: "list"}, strings.Split(rest, "/")
	if elements[0] == "namespaces" && len(elements) > 2 {
		o.namespace, elements = elements[1], elements[2:]
		if len(validation.IsDNS1123Label(o.namespace)) > 0 {
			return object{}, false
		}
	}
	search := len(elements) == 3 && elements[1] == resource.AnyVolume && elements[2] == resource.Log
	if elements[0] != resource.Resource || len(elements) > 3 || len(elements) > 1 && o.namespace == "" && !search {
		return object{}, false
	}
	if len(elements) > 1 {
		o.verb, o.name = "get", elements[1]
		if !volumeName.MatchString(o.name) && !search {
			return object{}, false
		}
	}
	if len(elements) > 2 {
		o.subresource = elements[2]
	}
	return o, o.subresource == "" || o.subresource == resource.Files || o.subresource == resource.Log
}

// forwardError passes on an answer that is an error, with what a person can do about it.
func (c *Client) forwardError(ctx context.Context, w http.ResponseWriter, about object, answer *http.Response) {
	said := c.caller.ReadError(answer)
	for _, name := range []string{"Retry-After", "Content-Range"} {
		if text := answer.Header.Get(name); text != "" {
			w.Header().Set(name, text)
		}
	}
	if said.Code < http.StatusBadRequest {
		refuse(w, http.StatusBadGateway, api.InternalError, "the API server redirects, which is not followed: "+answer.Status)
		return
	}
	if e := (*Explained)(nil); errors.As(c.Explain(ctx, "", &requestError{about, said}), &e) {
		said.Message = e.Error()
	}
	writeStatus(w, said.Status, said.Code)
}

// pass sends an answer to the client, as it comes. Its body ends with an error if it is not complete.
func pass(w http.ResponseWriter, answer *http.Response, body io.Reader) {
	header := w.Header()
	for _, name := range returnedHeaders {
		if values := answer.Header[name]; len(values) > 0 {
			header[name] = values
		}
	}
	w.WriteHeader(answer.StatusCode)
	flush := http.NewResponseController(w)
	buffer := make([]byte, 64<<10)
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return // the client has gone
			}
			_ = flush.Flush() // one that cannot flush sends later
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			// The only way to tell the client that the answer is not complete.
			panic(http.ErrAbortHandler)
		}
	}
}

// refuse answers with an error of this program.
func refuse(w http.ResponseWriter, code int, reason api.Reason, message string) {
	writeStatus(w, api.Status{Kind: "Status", Status: "Failure", Code: code, Reason: reason, Message: message}, code)
}

func writeStatus(w http.ResponseWriter, status api.Status, code int) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status) // the client is gone
}
