package web

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// rawPrefix begins the path of raw bytes: a ticket follows, and a file name for people.
const rawPrefix = "/raw/"

// serveRaw answers on the port of raw bytes. It reads no cookie: a ticket says what may be read.
func (s *Server) serveRaw(w http.ResponseWriter, r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.Path, rawPrefix)
	id, _, named := strings.Cut(rest, "/")
	// The page is of the same site. A browser says "none" when its user repeats a download.
	if !ok || !named || !s.raw.addressed(r) || r.Method != http.MethodGet || r.URL.RawQuery != "" || !from(r, "same-site", "none") {
		refuse(w)
		return
	}
	o, ok := s.tickets.redeem(id)
	if !ok {
		plain(w, http.StatusForbidden, "This address was good for one download within a minute. Start the download again on the page.\n")
		return
	}
	defer s.idle.use()()
	c, query := o.call()
	reply := s.backend.ask(r.Context(), http.MethodGet, c, query.Encode(), http.Header{})
	defer reply.close()
	if reply.code != http.StatusOK || reply.header.Get("Content-Encoding") != "" {
		s.unreadable(w, reply)
		return
	}
	h, body := w.Header(), reply.body
	harmless(h)
	h.Set("Content-Type", "application/octet-stream")
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
	h.Set("Accept-Ranges", "none")
	send(w, body)
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
