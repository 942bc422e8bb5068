package web

import (
	"slices"
	"strings"
	"testing"
)

// methods are all that a browser or a program may send, and one that is made up.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "BREW"}

// targets are what the page may ask for, with the methods that are for it.
var targets = map[string][]string{
	"/":           {"GET", "HEAD"},
	"/api.js":     {"GET", "HEAD"},
	"/session":    {"GET"},
	"/tickets":    {"POST"},
	"/alive":      {"GET"},
	"/namespaces": {"GET"},
	"/apis/katbox.io/v1alpha1/retainedvolumes": {"GET"},
	base + "?limit=500":                        {"GET"},
	volume:                                     {"GET", "DELETE", "PATCH"},
	volume + "/files?path=%2Fa":                {"GET"},
	volume + "/log?path=a%2Fb%2500":            {"GET", "HEAD"},
}

// refused fails if a request is not answered with the one text, or reached the cluster.
func (p *play) refused(r request) {
	p.t.Helper()
	got := p.page(r)
	if got.code != 403 || got.header.Get("Content-Type") != "text/plain; charset=utf-8" || r.method != "HEAD" && got.body != refusal {
		p.t.Errorf("%s %s %q: %d %q", r.method, r.target, r.header, got.code, got.body)
	}
	if len(got.header.Values("Set-Cookie")) > 0 || got.header.Get("Access-Control-Allow-Origin") != "" {
		p.t.Errorf("%s %s: %q", r.method, r.target, got.header)
	}
	if asked := p.cluster.requests(); len(asked) > 0 {
		p.t.Errorf("%s %s %q reached the cluster as %s %s", r.method, r.target, r.header, asked[0].Method, asked[0].RequestURI)
	}
}

func TestMethods(t *testing.T) {
	p := start(t, Config{})
	for target, allowed := range targets {
		for _, method := range methods {
			r := p.good(method, target)
			if !slices.Contains(allowed, method) {
				p.refused(r)
				continue
			}
			if method == "PATCH" {
				r = p.patch(pin)
			}
			// The body of a ticket is missing here.
			if got := p.page(r); got.code != 200 && got.code != 204 && (target != "/tickets" || got.code != 400) {
				t.Errorf("%s %s: %d %q", method, target, got.code, got.body)
			}
			p.cluster.requests()
		}
	}
}

func TestForeignRequests(t *testing.T) {
	p := start(t, Config{})
	own, raw := p.Server.page.port, p.Server.raw.port
	for what, change := range map[string]func(request) request{
		"another host":           func(r request) request { return r.with("Host", "evil.example").with("Origin") },
		"another host, our port": func(r request) request { return r.with("Host", "evil.example:"+own).with("Origin") },
		"rebound, own origin": func(r request) request {
			return r.with("Host", "evil.example:"+own).with("Origin", "http://evil.example:"+own)
		},
		"a host below localhost": func(r request) request { return r.with("Host", "evil.localhost:"+own).with("Origin") },
		"a host that begins so":  func(r request) request { return r.with("Host", "127.0.0.1.evil.example:"+own).with("Origin") },
		"no port":                func(r request) request { return r.with("Host", "127.0.0.1").with("Origin") },
		"another port":           func(r request) request { return r.with("Host", "127.0.0.1:"+raw).with("Origin") },
		"another address":        func(r request) request { return r.with("Host", "127.0.0.2:"+own).with("Origin") },
		"any address":            func(r request) request { return r.with("Host", "0.0.0.0:"+own).with("Origin") },
		"IPv6":                   func(r request) request { return r.with("Host", "[::1]:"+own).with("Origin") },
		"an absolute dot":        func(r request) request { return r.with("Host", "localhost.:"+own).with("Origin") },
		"an empty host":          func(r request) request { return r.with("Host", "").with("Origin") },

		"another origin":             func(r request) request { return r.with("Origin", "http://evil.example") },
		"the origin of another port": func(r request) request { return r.with("Origin", "http://127.0.0.1:"+raw) },
		"the other name's origin":    func(r request) request { return r.with("Origin", "http://localhost:"+own) },
		"the origin with TLS":        func(r request) request { return r.with("Origin", "https://127.0.0.1:"+own) },
		"the origin null":            func(r request) request { return r.with("Origin", "null") },
		"two origins":                func(r request) request { return r.with("Origin", "http://127.0.0.1:"+own, "http://evil.example") },

		"another site":        func(r request) request { return r.with("Sec-Fetch-Site", "cross-site") },
		"another port's site": func(r request) request { return r.with("Sec-Fetch-Site", "same-site") },
		"an unknown site":     func(r request) request { return r.with("Sec-Fetch-Site", "new-kind") },
		"two sites":           func(r request) request { return r.with("Sec-Fetch-Site", "same-origin", "cross-site") },

		"no cookie":            func(r request) request { return r.with("Cookie") },
		"another cookie":       func(r request) request { return r.with("Cookie", p.login.name+"="+strings.Repeat("A", 26)) },
		"an empty cookie":      func(r request) request { return r.with("Cookie", p.login.name+"=") },
		"the key as cookie":    func(r request) request { return r.with("Cookie", p.login.name+"="+p.login.key) },
		"the token as cookie":  func(r request) request { return r.with("Cookie", p.login.name+"="+p.login.token) },
		"cookie of other port": func(r request) request { return r.with("Cookie", "katbox-"+raw+"="+p.login.secret) },
		"a credential":         func(r request) request { return r.with("Cookie").with("Authorization", "Bearer "+p.login.secret) },

		"an upgrade": func(r request) request { return r.with("Connection", "Upgrade").with("Upgrade", "websocket") },
		"HTTP/2": func(r request) request {
			return r.with("Connection", "Upgrade, HTTP2-Settings").with("Upgrade", "h2c").with("HTTP2-Settings", "")
		},
	} {
		t.Run(what, func(t *testing.T) {
			for target := range targets {
				for _, method := range methods {
					p.refused(change(p.good(method, target)))
				}
			}
		})
	}
}

func TestRequestsForDataNeedThePage(t *testing.T) {
	p := start(t, Config{})
	for what, change := range map[string]func(request) request{
		"no key":             func(r request) request { return r.with("Katbox-Page") },
		"an empty key":       func(r request) request { return r.with("Katbox-Page", "") },
		"another key":        func(r request) request { return r.with("Katbox-Page", "1") },
		"the cookie as key":  func(r request) request { return r.with("Katbox-Page", p.login.secret) },
		"two keys":           func(r request) request { return r.with("Katbox-Page", p.login.key, p.login.key) },
		"typed by the user":  func(r request) request { return r.with("Sec-Fetch-Site", "none") },
		"a link on the page": func(r request) request { return r.with("Katbox-Page").with("Sec-Fetch-Mode", "navigate") },
	} {
		t.Run(what, func(t *testing.T) {
			for target := range targets {
				if target == "/" || target == "/api.js" {
					continue
				}
				for _, method := range methods {
					p.refused(change(p.good(method, target)))
				}
			}
		})
	}
}

func TestStrangePaths(t *testing.T) {
	p := start(t, Config{})
	host := "http://127.0.0.1:" + p.Server.page.port
	for _, target := range []string{
		"*", host + "/", host + volume, "http://evil.example" + volume, "//evil.example" + volume, "//" + volume,
		"/api", "/api/v1/secrets", "/apis", "/apis/", "/apis/katbox.io", "/apis/katbox.io/v1alpha1", "/apis/katbox.io/v1alpha1/",
		"/apis/apps/v1/deployments", "/apis/katbox.io.evil/v1alpha1/retainedvolumes", "/apis/katbox.io/v1/retainedvolumes",
		"/openapi/v3", "/version",
		"/apis/katbox.io/v1alpha1/secrets", "/apis/katbox.io/v1alpha1/watch/retainedvolumes",
		"/apis/katbox.io/v1alpha1/retainedvolumes/" + name,
		"/apis/katbox.io/v1alpha1/namespaces/ci", "/apis/katbox.io/v1alpha1/namespaces//retainedvolumes",
		"/apis/katbox.io/v1alpha1/namespaces/ci/secrets",
		"/apis/katbox.io/v1alpha1/namespaces/../retainedvolumes", "/apis/katbox.io/v1alpha1/namespaces/CI/retainedvolumes",
		"/apis/katbox.io/v1alpha1/../../../api/v1/secrets", "/apis/katbox.io/v1alpha1/retainedvolumes/../../../../api/v1/secrets",
		"/apis/katbox.io/v1alpha1/%2e%2e/%2e%2e/%2e%2e/api/v1/secrets", "/apis/katbox.io/v1alpha1/%2E%2E/apps",
		"/apis%2Fkatbox.io/v1alpha1/retainedvolumes",
		"/apis/katbox.io/v1alpha1/namespaces/ci%2Fretainedvolumes",
		"/apis/katbox.io/v1alpha1/namespaces/ci/retainedvolumes%2F" + name, "/%61pis/katbox.io/v1alpha1/retainedvolumes",
		base + "/", base + "//", base + "/.", base + "/..", base + "/../secrets", base + "/%2e%2e", base + "/" + name + "/",
		base + "/" + name + "/proxy",
		volume + "/log/", volume + "/log/..", volume + "/log/../files", volume + "/log%00", volume + "%00", volume + "/log;x=1",
		volume + "\\log", volume + "/LOG",
		volume + "/log?path=%zz", volume + "/log?a;b", base + "/" + strings.Repeat("a", 254), base + "/-a", base + "/a%20b", base + "/a%C3%A4",
		"/index.html", "/api.js/", "/./api.js", "/../api.js", "/page/api.js", "/%61pi.js", "/api.js%00", "/API.JS", "/doc.go",
		"/page", "/session/", "/tickets/", "/raw/x/y",
	} {
		for _, method := range methods {
			p.refused(p.good(method, target))
		}
	}
}

func TestOldBrowsersAndTheOtherName(t *testing.T) {
	p := start(t, Config{})
	for _, r := range []request{
		p.good("GET", base).with("Sec-Fetch-Site"),
		p.good("GET", base).with("Origin"),
		p.good("GET", "/").with("Sec-Fetch-Site", "none").with("Origin"),
		p.good("GET", base).with("Host", "localhost:"+p.Server.page.port).with("Origin", "http://localhost:"+p.Server.page.port),
		// A server on another port has set a cookie of the same name.
		p.good("GET", base).with("Cookie", p.login.name+"=x; "+p.login.name+"="+p.login.secret+"; other=y"),
	} {
		if got := p.page(r); got.code != 200 {
			t.Errorf("%s %s %q: %d", r.method, r.target, r.header, got.code)
		}
	}
}
