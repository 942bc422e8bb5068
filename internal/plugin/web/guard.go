package web

import (
	"net/http"
	"slices"
	"strings"
)

// headerKey has the key of the page in requests for data.
const headerKey = "Katbox-Page"

// refusal is the text of each 403.
const refusal = `This is the page of "kubectl katbox ui", and this request may not use it.

Open the URL that the command has printed, as it stands there. It works once: if it was used already, or
for another browser, end the command with Ctrl-C and run it again.
`

// refuse answers a request that may not be made. It says nothing about why.
func refuse(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	plain(w, http.StatusForbidden, refusal)
}

// plain answers with a text.
func plain(w http.ResponseWriter, code int, text string) {
	harmless(w.Header())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // the client is gone
}

// harmless sets the headers of each answer: a browser shows it as what it says to be and runs nothing of
// it, keeps no copy, and says nowhere where it came from.
func harmless(h http.Header) {
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// addressed reports whether a request names this site, and is its own. A name that a stranger lets point
// to this machine is not one of these two.
func (s site) addressed(r *http.Request) bool {
	if r.Host != "127.0.0.1:"+s.port && r.Host != "localhost:"+s.port {
		return false
	}
	origin, ok := single(r, "Origin")
	if !ok || origin != "" && origin != "http://"+r.Host {
		return false
	}
	// The target is a path: not "*", and no whole URL.
	return strings.HasPrefix(r.RequestURI, "/") && r.Header.Get("Upgrade") == ""
}

// beside returns the origin of another site under the same name of this machine, so that a browser takes
// both for the same site.
func (s site) beside(r *http.Request) string {
	name, _, _ := strings.Cut(r.Host, ":")
	return "http://" + name + ":" + s.port
}

// single returns the value of a header, empty if it is missing. It is not ok if there are several.
func single(r *http.Request, name string) (value string, ok bool) {
	values := r.Header.Values(name)
	if len(values) == 0 {
		return "", true
	}
	return values[0], len(values) == 1
}

// from reports whether a browser says that one of the senders sent a request. Old browsers, and
// programs, say nothing.
func from(r *http.Request, senders ...string) bool {
	site, ok := single(r, "Sec-Fetch-Site")
	if !ok {
		return false
	}
	return site == "" || slices.Contains(senders, site)
}
