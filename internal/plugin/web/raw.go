package web

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// rawPrefix begins the path of raw bytes: a ticket follows, and a file name for people.
const rawPrefix = "/raw/"

// serveRaw answers on the port of raw bytes. It reads no cookie: a ticket says what may be read.
func (s *Server) serveRaw(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, rawPrefix)
	id, _, named := strings.Cut(path, "/")
	// The page is of the same site. A browser says "none" when its user repeats a download.
	if !ok || !named || !s.raw.addressed(r) || r.Method != http.MethodGet || r.URL.RawQuery != "" || !from(r, "same-site", "none") {
		refuse(w)
		return
	}
	rest := resumption(r.Header)
	o, resumed, ok := s.tickets.redeem(id, rest.Get("If-Range"))
	if !ok {
		plain(w, http.StatusForbidden, "This address was good for one download within a minute. Start the download again on the page.\n")
		return
	}
	if !resumed {
		rest = http.Header{}
	}
	defer s.idle.use()()
	c, query := o.call()
	reply := s.backend.ask(r.Context(), http.MethodGet, c, query.Encode(), rest)
	defer reply.close()
	part := resumed && reply.code == http.StatusPartialContent
	if reply.code != http.StatusOK && !part || reply.header.Get("Content-Encoding") != "" {
		s.unreadable(w, reply)
		return
	}
	h, body := w.Header(), reply.body
	harmless(h)
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Accept-Ranges", "none")
	if etag := reply.header.Get("Etag"); o.Kind == kindDownload && validTag.MatchString(etag) {
		s.tickets.begun(id, etag)
		h.Set("Etag", etag)
		h.Set("Accept-Ranges", "bytes")
	}
	if part {
		h.Set("Content-Range", reply.header.Get("Content-Range"))
	}
	length := size(reply.header.Get("Content-Length"))
	if o.Kind == kindImage {
		start := make([]byte, imageStart)
		n, _ := io.ReadFull(reply.body, start) // what is too short is no image
		contentType := imageType(start[:n])
		if contentType == "" || length < 0 || length > maxImage {
			plain(w, http.StatusUnsupportedMediaType, "The file is not a png, jpeg, gif or webp image of at most 32 MiB. Download it.\n")
			return
		}
		body = io.MultiReader(bytes.NewReader(start[:n]), body)
		h.Set("Content-Type", contentType)
		// The page is of another origin. Browsers never take two ports of an IP address for the same site
		// here, so the header cannot say more; the ticket and Sec-Fetch-Site do.
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
	h.Set("Content-Disposition", attachment(o.fileName()))
	if length >= 0 {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	w.WriteHeader(reply.code)
	send(w, body)
}

var (
	// validTag is a strong ETag, and validRest a range from a byte on: a browser asks for nothing else.
	validTag  = regexp.MustCompile(`^"[!#-~]{1,128}"$`)
	validRest = regexp.MustCompile(`^bytes=[0-9]{1,18}-$`)
)

// resumption returns what of a request says that a download goes on: from where, and of which contents. It is
// empty for all other requests.
func resumption(header http.Header) http.Header {
	from, etag := header.Get("Range"), header.Get("If-Range")
	if !validRest.MatchString(from) || !validTag.MatchString(etag) {
		return http.Header{}
	}
	return http.Header{"Range": {from}, "If-Range": {etag}}
}

// unreadable answers with what the cluster said.
func (s *Server) unreadable(w http.ResponseWriter, reply *reply) {
	code := reply.code
	if code < 400 || code > 599 {
		code = http.StatusBadGateway
	}
	text, _ := io.ReadAll(io.LimitReader(reply.body, maxBody)) // whatever came
	plain(w, code, "The file cannot be read: "+messageOf(text)+"\n\nGo back to the page.\n")
}

// size reads a number of bytes; it is -1 if there is none.
func size(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
