package web

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// cookieOf returns the only cookie that an answer sets.
func cookieOf(t *testing.T, got answered) *http.Cookie {
	t.Helper()
	cookies := (&http.Response{Header: got.header}).Cookies()
	if len(cookies) != 1 {
		t.Fatalf("the answer sets %d cookies", len(cookies))
	}
	return cookies[0]
}

func TestTheFirstURLWorksOnce(t *testing.T) {
	p := start(t, Config{})
	got := p.page(p.first())
	key := goToPage.FindStringSubmatch(got.header.Get("Location"))
	if got.code != http.StatusSeeOther || key == nil || got.body != "" {
		t.Fatalf("the first URL: %d, Location %q, %q", got.code, got.header.Get("Location"), got.body)
	}
	mustHave(t, got.header, map[string]string{"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"})
	cookie := cookieOf(t, got)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" ||
		cookie.Name != "katbox-"+p.Server.page.port || cookie.MaxAge != 0 || !cookie.Expires.IsZero() {
		t.Errorf("the cookie is %q", got.header.Get("Set-Cookie"))
	}
	for _, secret := range []string{p.login.token, key[1]} {
		if strings.Contains(cookie.Value, secret) || len(cookie.Value) < 26 {
			t.Errorf("the cookie %q has to be a secret of its own", cookie.Value)
		}
	}
	select {
	case <-p.Opened():
	default:
		t.Error("Opened is not closed")
	}
	// What it gave is good for the page, for data, and not for a second cookie.
	own := p.good("GET", "/session").with("Cookie", cookie.Name+"="+cookie.Value).with("Katbox-Page", key[1])
	if got := p.page(own); got.code != 200 {
		t.Errorf("with the new cookie and key: %d", got.code)
	}
	p.refused(p.first())
	p.refused(p.first().with("Cookie", cookie.Name+"="+cookie.Value))
}

func TestTheFirstURLFromAFile(t *testing.T) {
	p := start(t, Config{})
	// A browser that follows a redirect there does not send a cookie that is SameSite=Strict.
	got := p.page(p.first().with("Sec-Fetch-Site", "cross-site"))
	if got.code != 200 || !strings.Contains(got.body, `<meta http-equiv="refresh" content="0;url=/#key=`+p.login.key+`">`) ||
		strings.Contains(got.body, p.login.token) {
		t.Errorf("from a file: %d %q", got.code, got.body)
	}
	mustHave(t, got.header, map[string]string{
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
		"Content-Type":            "text/html; charset=utf-8", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		"Cache-Control": "no-store",
	})
	if cookie := cookieOf(t, got); cookie.Value != p.login.secret {
		t.Errorf("the cookie is %q", cookie)
	}
	p.refused(p.first())
}

func TestWhatDoesNotUseTheTokenUp(t *testing.T) {
	p := start(t, Config{})
	first := p.first()
	get := func(target string) request {
		r := first
		r.target = target
		return r
	}
	for _, method := range methods {
		if method != "GET" {
			r := first
			r.method = method
			p.refused(r)
		}
	}
	for _, r := range []request{
		get("/?token="), get("/?token=" + strings.Repeat("A", 26)), get("/?token=" + p.login.token[:25]), get("/?token=" + p.login.token + "A"),
		get("/?token=" + strings.ToLower(p.login.token)), get("/?token=" + p.login.token + "&token=x"), get("/?token=x&token=" + p.login.token),
		get("/session?token=" + p.login.token), get("/api.js?token=" + p.login.token), get("//?token=" + p.login.token),
		get("/?token=" + p.login.secret),
		first.with("Host", "evil.example"), first.with("Host", "127.0.0.1:"+p.Server.raw.port), first.with("Origin",
			"http://evil.example"), first.with("Origin", "null"),
		first.with("Sec-Fetch-Mode", "no-cors"), first.with("Sec-Fetch-Mode", "cors"), first.with("Sec-Fetch-Dest", "iframe"),
		first.with("Sec-Fetch-Dest", "image"),
		first.with("Sec-Purpose", "prefetch"), first.with("Sec-Purpose", "prefetch;prerender"), first.with("Upgrade", "websocket"),
	} {
		p.refused(r)
	}
	select {
	case <-p.Opened():
		t.Fatal("the token is used up")
	default:
	}
	// A program, or an old browser, says nothing about where a request comes from.
	if got := p.page(first.with("Sec-Fetch-Site").with("Sec-Fetch-Mode").with("Sec-Fetch-Dest")); got.code != http.StatusSeeOther {
		t.Errorf("the token is not good any more: %d", got.code)
	}
}

func TestTheTokenIsGoodForOneOfMany(t *testing.T) {
	p := start(t, Config{})
	var entered atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := p.page(p.first()); got.code == http.StatusSeeOther {
				entered.Add(1)
			}
		})
	}
	all.Wait()
	if n := entered.Load(); n != 1 {
		t.Errorf("the token let %d browsers in", n)
	}
}

func TestServersDifferInTheirSecrets(t *testing.T) {
	one, two := start(t, Config{}), start(t, Config{})
	seen := map[string]bool{}
	for _, s := range []*play{one, two} {
		seen[s.login.token], seen[s.login.secret], seen[s.login.key] = true, true, true
	}
	if len(seen) != 6 {
		t.Errorf("there are %d secrets instead of 6", len(seen))
	}
	one.refused(one.good("GET", base).with("Cookie", one.login.name+"="+two.login.secret))
}
