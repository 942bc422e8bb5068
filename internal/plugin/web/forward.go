package web

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
)

// What of a request the cluster sees, and what of its answer the page sees. Cookies, credentials, names
// of users, and what is about a connection are not among these.
var (
	requestHeaders = []string{"Accept", "Range", "If-Range"}
	answerHeaders  = []string{"Content-Length", "Content-Range", "Content-Disposition", "Content-Encoding", "Etag",
		"Accept-Ranges", "Retry-After",
		"Warning", "Audit-Id", "Katbox-Size", "Katbox-Offset", "Katbox-Node"}
)

// forward passes a request of the page on to the cluster, and the answer back.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, c call) {
	header := http.Header{}
	for _, name := range requestHeaders {
		if values := r.Header.Values(name); len(values) > 0 {
			header[name] = values
		}
	}
	reply := s.backend.ask(r.Context(), r.Method, c, r.URL.RawQuery, header)
	defer reply.close()
	if !sane(reply.code) {
		fail(w, http.StatusBadGateway, "BadGateway", "the cluster answered with something that is no answer to a request for retained volumes")
		return
	}
	h := w.Header()
	harmless(h)
	for _, name := range answerHeaders {
		if values := reply.header.Values(name); len(values) > 0 {
			h[name] = values
		}
	}
	h.Set("Content-Type", inert(reply.header.Get("Content-Type")))
	if h.Get("Content-Type") != "application/json" && h.Get("Content-Disposition") == "" {
		h.Set("Content-Disposition", "attachment")
	}
	w.WriteHeader(reply.code)
	if r.Method != http.MethodHead {
		send(w, reply.body)
	}
}

// sane reports whether a code may be passed on: nothing redirects, and no connection becomes another.
func sane(code int) bool { return code >= 200 && code < 300 || code >= 400 && code < 600 }

// inert returns a content type that a browser does not run.
func inert(contentType string) string {
	media, _, _ := mime.ParseMediaType(contentType)
	switch media {
	case "application/json":
		return media
	case "text/plain":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// readBody reads the body of a request, which must be short and come soon.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyLimit)) // without one, it ends with the connection
	// A deadline that passes while the answer is made would end the request.
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("the body of the request cannot be read: %w", err)
	}
	return text, nil
}

// send sends a body as it arrives. If it is not complete, the connection is cut, so that no download looks
// complete.
func send(w http.ResponseWriter, body io.Reader) {
	control := http.NewResponseController(w)
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			_ = control.SetWriteDeadline(time.Now().Add(stallLimit)) // without one, the piece may take any time
			if _, err := w.Write(buf[:n]); err != nil {
				panic(http.ErrAbortHandler)
			}
			if err := control.Flush(); err != nil {
				panic(http.ErrAbortHandler)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			panic(http.ErrAbortHandler)
		}
	}
}

// fail answers with an error of the server itself, in the form of the Kubernetes API.
func fail(w http.ResponseWriter, code int, reason, message string) {
	answer(w, code, struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Status     string `json:"status"`
		Reason     string `json:"reason"`
		Message    string `json:"message"`
		Code       int    `json:"code"`
	}{"Status", "v1", "Failure", reason, message, code})
}
