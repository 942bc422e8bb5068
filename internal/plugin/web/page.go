package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/katbox/katbox/internal/plugin/web/page"
)

// assetTypes are the types of the page's files, by the end of their names.
var assetTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// asset is a file of the page.
type asset struct {
	contentType string
	text        []byte
}

// pageAssets returns the page's files by their paths in a URL.
func pageAssets() (map[string]asset, error) {
	assets := map[string]asset{}
	names, err := fs.Glob(page.Files, "*")
	if err != nil {
		return nil, fmt.Errorf("the embedded page: %w", err)
	}
	for _, name := range names {
		contentType := assetTypes[path.Ext(name)]
		if contentType == "" {
			return nil, fmt.Errorf("the embedded page: %s has no type", name)
		}
		text, err := page.Sent(name)
		if err != nil {
			return nil, fmt.Errorf("the embedded page: %w", err)
		}
		assets["/"+name] = asset{contentType, text}
	}
	assets["/"] = assets["/index.html"]
	delete(assets, "/index.html")
	return assets, nil
}

// servePage answers on the port of the page.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	file, isFile := s.assets[r.URL.Path]
	target, isCall := parseCall(r)
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case !s.page.addressed(r):
		refuse(w)
	case r.RequestURI != r.URL.RequestURI(), r.URL.RawPath != "":
		// Another way to write a path.
		refuse(w)
	case r.URL.Path == "/" && r.URL.Query().Has("token"):
		s.login.enter(w, r)
	case !s.login.hasCookie(r):
		refuse(w)
	case r.URL.Path == "/" && reads && from(r, "none", "same-origin"), isFile && reads && from(r, "same-origin"):
		defer s.idle.use()()
		s.file(w, r, file)
	case !from(r, "same-origin") || !s.login.hasKey(r):
		refuse(w)
	case r.URL.Path == "/session" && r.Method == http.MethodGet:
		defer s.idle.use()()
		s.session(w, r)
	case r.URL.Path == "/alive" && r.Method == http.MethodGet:
		// The page asks this by itself: it is no use.
		harmless(w.Header())
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path == "/namespaces" && r.Method == http.MethodGet:
		defer s.idle.use()()
		s.namespaces(w, r)
	case r.URL.Path == "/tickets" && r.Method == http.MethodPost:
		defer s.idle.use()()
		s.ticket(w, r)
	case isCall && r.Method == http.MethodPatch:
		defer s.idle.use()()
		s.hold(w, r, target)
	case isCall:
		defer s.idle.use()()
		s.forward(w, r, target)
	default:
		refuse(w)
	}
}

// file answers with a file of the page.
func (s *Server) file(w http.ResponseWriter, r *http.Request, file asset) {
	h := w.Header()
	harmless(h)
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "+
		s.raw.beside(r)+"; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	h.Set("Origin-Agent-Cluster", "?1")
	h.Set("Content-Type", file.contentType)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.text))
}

// session says where the page is.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, struct {
		Namespace     string  `json:"namespace"`
		AllNamespaces bool    `json:"allNamespaces"`
		User          string  `json:"user"`
		Target        *Target `json:"target"`
		Raw           string  `json:"raw"`
		Version       string  `json:"version"`
		// Flags are those of kubectl that lead to this cluster.
		Flags []string `json:"flags"`
	}{s.Namespace, s.AllNamespaces, s.User, s.Target, s.raw.beside(r), s.Version, append([]string{}, s.Flags...)})
}

// namespaces names what the user may choose among.
func (s *Server) namespaces(w http.ResponseWriter, r *http.Request) {
	var names []string
	all := false
	if s.Namespaces != nil {
		names, all = s.Namespaces(r.Context())
	}
	answer(w, http.StatusOK, struct {
		Namespaces []string `json:"namespaces"`
		// All says that there are no others.
		All bool `json:"all"`
	}{append([]string{}, names...), all})
}

// answer sends JSON.
func answer(w http.ResponseWriter, code int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // the caller has made it of strings
	}
	harmless(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = w.Write(text) // the page is gone
}
