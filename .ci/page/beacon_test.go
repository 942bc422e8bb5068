package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// beacon hears what ran that should not have: each hostile script asks it, says so in the console and
// in a dialog, and changes the page.
type beacon struct {
	url string

	mu   sync.Mutex
	rang []string
}

const ran = "KATBOX-RAN"

func newBeacon(t testing.TB) *beacon {
	b := &beacon{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.rang = append(b.rang, r.URL.RequestURI())
		b.mu.Unlock()
		w.Header().Set("Access-Control-Allow-Origin", "*")
	}))
	b.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return b
}

// script is what must not run. It has no quotes of one kind and no character that HTML changes.
func (b *beacon) script(what string) string {
	mark := ran + " " + what
	return fmt.Sprintf("try{window.katboxRan='%s'}catch(e){};try{console.log('%s')}catch(e){};try{document.title='%s'}catch(e){};"+
		"try{top.katboxRan='%s'}catch(e){};try{new Image().src='%s/ran/%s'}catch(e){};"+
		"try{fetch('%s/ran/%s')}catch(e){};try{alert('%s')}catch(e){}",
		mark, mark, mark, mark, b.url, what, b.url, what, mark)
}

// wantSilence wants that nothing ran in the visitor's window.
func (b *beacon) wantSilence(v *visitor, where string) {
	v.t.Helper()
	for _, heard := range b.heard(v) {
		v.t.Errorf("%s: a script of a pod ran: %s", where, heard)
	}
}

// heard returns what ran, and forgets it.
func (b *beacon) heard(v *visitor) (heard []string) {
	b.mu.Lock()
	heard, b.rang = b.rang, nil
	b.mu.Unlock()
	v.mu.Lock()
	heard = append(heard, v.dialogs...)
	v.dialogs = nil
	for _, text := range v.consoles {
		if strings.HasPrefix(text, `log: "`+ran) {
			heard = append(heard, text)
		}
	}
	v.mu.Unlock()
	for _, what := range []string{"document.title", "String(window.katboxRan)"} {
		if text := ask[string](v, what); strings.HasPrefix(text, ran) {
			heard = append(heard, what+" is "+text)
		}
	}
	return heard
}
