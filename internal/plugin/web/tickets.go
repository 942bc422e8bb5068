package web

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	// ticketLimit is how long a ticket is good, resumeLimit how long a download that has begun may go on after the
	// last request for it, and maxTickets how many there are.
	ticketLimit = time.Minute
	resumeLimit = time.Hour
	maxTickets  = 256
	// maxImage is the size of the largest image that is shown, in bytes.
	maxImage = 32 << 20
	// checked is how much of a file is read before there is a ticket.
	checked = 512
)

// The kinds of tickets.
const (
	kindDownload = "download"
	kindArchive  = "archive"
	kindImage    = "image"
)

// order is what the page asks a ticket for, and what a ticket is good for.
type order struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Path is the ref of a file; of a directory too for an archive.
	Path string `json:"path"`
	Kind string `json:"kind"`
}

// call is the request for the bytes, and its query.
func (o order) call() (call, url.Values) {
	query := url.Values{"path": {o.Path}}
	if o.Kind == kindArchive {
		query.Set("archive", "tar")
		query.Set("compress", "gzip")
	}
	return call{o.Namespace, o.Name, "log"}, query
}

// check is a short request that fails if that for the bytes would, and its query.
func (o order) check() (call, url.Values) {
	if o.Kind == kindArchive {
		return call{o.Namespace, o.Name, "files"}, url.Values{"path": {o.Path}, "stat": {"true"}}
	}
	return call{o.Namespace, o.Name, "log"}, url.Values{"path": {o.Path}, "limit": {fmt.Sprint(checked)}}
}

// tickets are the orders that may be fetched, once each. What has begun as the download of a file may go on.
type tickets struct {
	mu     sync.Mutex
	issued map[string]ticket
}

type ticket struct {
	order
	until time.Time
	// used says that it was redeemed, and etag of which contents.
	used bool
	etag string
}

// issue returns a new ticket. The oldest goes if there are too many.
func (t *tickets) issue(o order) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.issued == nil {
		t.issued = map[string]ticket{}
	}
	now, oldest := time.Now(), ""
	for id, old := range t.issued {
		if !now.Before(old.until) {
			delete(t.issued, id)
		} else if oldest == "" || old.until.Before(t.issued[oldest].until) {
			oldest = id
		}
	}
	if len(t.issued) >= maxTickets {
		delete(t.issued, oldest)
	}
	id := rand.Text() // 130 random bits
	t.issued[id] = ticket{order: o, until: now.Add(ticketLimit)}
	return id
}

// redeem returns what a ticket is good for, and ends it. That of a file's download stays for who asks for the rest of
// the same contents; etag is what names them in the request, and resumed says that it was such a request.
func (t *tickets) redeem(id, etag string) (o order, resumed, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.issued[id]
	now := time.Now()
	switch {
	case !ok || !now.Before(found.until):
		delete(t.issued, id)
		return order{}, false, false
	case found.used && (etag == "" || etag != found.etag):
		return order{}, false, false
	case found.Kind != kindDownload:
		delete(t.issued, id)
		return found.order, false, true
	}
	resumed = found.used
	found.used, found.until = true, now.Add(resumeLimit)
	t.issued[id] = found
	return found.order, resumed, true
}

// begun notes which contents are sent for a ticket.
func (t *tickets) begun(id, etag string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found, ok := t.issued[id]; ok {
		found.etag = etag
		t.issued[id] = found
	}
}

// ticket answers a request for a ticket. What cannot be read is refused here, as the cluster does it, so
// that the browser need not leave the page for an error.
func (s *Server) ticket(w http.ResponseWriter, r *http.Request) {
	o, err := parseOrder(w, r)
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	c, query := o.check()
	reply := s.backend.ask(r.Context(), http.MethodGet, c, query.Encode(), http.Header{})
	defer reply.close()
	text, err := io.ReadAll(io.LimitReader(reply.body, maxBody))
	switch {
	case !sane(reply.code), reply.code == http.StatusOK && (err != nil || reply.header.Get("Content-Encoding") != ""):
		fail(w, http.StatusBadGateway, "BadGateway", "the cluster did not answer as expected; try again")
	case reply.code != http.StatusOK && json.Valid(text):
		if after := reply.header.Get("Retry-After"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		answer(w, reply.code, json.RawMessage(text))
	case reply.code != http.StatusOK:
		fail(w, max(reply.code, http.StatusBadRequest), "Unknown", fmt.Sprintf("the cluster answered with the HTTP status %d", reply.code))
	case o.Kind == kindImage && imageType(text) == "":
		fail(w, http.StatusUnsupportedMediaType, "UnsupportedMediaType",
			"the file does not begin like a png, jpeg, gif or webp image; download it")
	case o.Kind == kindImage && size(reply.header.Get("Katbox-Size")) > maxImage:
		fail(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "the image has more than 32 MiB; download it")
	default:
		answer(w, http.StatusOK, struct {
			URL string `json:"url"`
			// Size is that of the file in bytes; -1 for an archive, which becomes as long as it becomes.
			Size int64 `json:"size"`
		}{s.raw.beside(r) + rawPrefix + s.tickets.issue(o) + "/" + url.PathEscape(o.fileName()), size(reply.header.Get("Katbox-Size"))})
	}
}

// parseOrder reads and checks what the page sends.
func parseOrder(w http.ResponseWriter, r *http.Request) (o order, err error) {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return o, errors.New("the body of a request for a ticket is JSON, with Content-Type application/json")
	}
	text, err := readBody(w, r)
	if err != nil {
		return o, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&o); err != nil {
		return o, fmt.Errorf("the request for a ticket cannot be read: %w", err)
	}
	switch {
	case decoder.More():
		return o, errors.New("the request for a ticket has something behind its end")
	case !validNamespace.MatchString(o.Namespace), !validName.MatchString(o.Name):
		return o, fmt.Errorf("%q in %q is not the name of a retained volume", o.Name, o.Namespace)
	case o.Kind != kindDownload && o.Kind != kindArchive && o.Kind != kindImage:
		return o, fmt.Errorf("the kind %q is not possible; there are download, archive and image", o.Kind)
	case o.Path == "" && o.Kind != kindArchive:
		return o, errors.New("the path is missing; it is the ref of an entry in the list of files")
	case o.Path == "":
		o.Path = "/"
	}
	return o, nil
}
