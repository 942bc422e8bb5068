package web

import (
	"crypto/rand"
	"crypto/subtle"
	"io"
	"net/http"
	"sync"
)

// login lets one browser in.
type login struct {
	// token is in the first URL. It is good for one request, which closes used.
	token string
	use   *sync.Once
	used  chan struct{}
	// name and secret are the cookie. It is sent to all ports of this machine, and its name has the port so
	// that several pages do not overwrite each other's.
	name, secret string
	// key is known to the origin of the page alone.
	key string
}

func newLogin(port string) login {
	// Each has 130 random bits.
	return login{token: rand.Text(), use: new(sync.Once), used: make(chan struct{}), name: "katbox-" + port, secret: rand.Text(),
		key: rand.Text()}
}

// same compares in a time that says nothing about where two texts differ.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// hasCookie reports whether a request comes from the browser that used the token. Servers on other
// ports may have set cookies of the same name.
func (l *login) hasCookie(r *http.Request) bool {
	found := false
	for _, cookie := range r.CookiesNamed(l.name) {
		if same(cookie.Value, l.secret) {
			found = true
		}
	}
	return found
}

// hasKey reports whether the page itself sent a request.
func (l *login) hasKey(r *http.Request) bool {
	key, ok := single(r, headerKey)
	return ok && same(key, l.key)
}

// redeem reports whether the request is the first one with the token. Only a user who opens the URL
// sends it so: no frame, no image, no browser that guesses what is opened next.
func (l *login) redeem(r *http.Request) bool {
	mode, ok1 := single(r, "Sec-Fetch-Mode")
	dest, ok2 := single(r, "Sec-Fetch-Dest")
	switch {
	case r.Method != http.MethodGet, !ok1 || mode != "" && mode != "navigate", !ok2 || dest != "" && dest != "document",
		r.Header.Get("Sec-Purpose") != "":
		return false
	}
	tokens := r.URL.Query()["token"]
	if len(tokens) != 1 || !same(tokens[0], l.token) {
		return false
	}
	first := false
	l.use.Do(func() {
		first = true
		close(l.used)
	})
	return first
}

// onward leads from the first URL to the page, whose address stands between its parts.
var onward = [3]string{`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=`, `"><title>Katbox</title></head>
<body><p><a href="`, `">Open the page</a></p></body></html>
`}

// enter exchanges the token for the cookie and the key.
func (l *login) enter(w http.ResponseWriter, r *http.Request) {
	if !l.redeem(r) {
		refuse(w)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: l.name, Value: l.secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	harmless(w.Header())
	to := "/#key=" + l.key
	if from(r, "none", "same-origin") {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	// The browser came from the private file. It would not send the cookie when it follows a redirect; it
	// does when a document of this site leads it on. That replaces the first URL in the history.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, onward[0]+to+onward[1]+to+onward[2]) // the browser is gone
}
