package web

import (
	"context"
	"encoding/json"
	"path"
	"strings"
	"testing"
)

func TestThePage(t *testing.T) {
	p := start(t, Config{})
	raw := p.Server.raw.port
	for _, host := range []string{"127.0.0.1", "localhost"} {
		own := host + ":" + p.Server.page.port
		got := p.page(p.good("GET", "/").with("Host", own).with("Origin"))
		if got.code != 200 || !strings.Contains(got.body, "<title>") {
			t.Errorf("the page: %d %q", got.code, got.body)
		}
		mustHave(t, got.header, map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
				"img-src 'self' http://" + host + ":" + raw +
				"; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
			"Content-Type": "text/html; charset=utf-8", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"X-Frame-Options":            "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		})
		for _, name := range []string{"Set-Cookie", "Access-Control-Allow-Origin", "Server", "Etag", "Last-Modified"} {
			if value := got.header.Get(name); value != "" {
				t.Errorf("%s is %q", name, value)
			}
		}
	}
	if got := p.page(p.good("GET", "/api.js")); got.header.Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("a script has the type %q", got.header.Get("Content-Type"))
	}
}

// The page is as heavy as the browser has to load it, and asks no other host.
func TestTheEmbeddedFiles(t *testing.T) {
	assets, err := pageAssets()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for name, file := range assets {
		total += len(file.text)
		if assetTypes[path.Ext(name)] != file.contentType && name != "/" {
			t.Errorf("%s has the type %q", name, file.contentType)
		}
		if text := string(file.text); path.Ext(name) == ".css" && strings.Contains(text, "url(http") || strings.Contains(text, `src="http`) {
			t.Errorf("%s loads something from another host", name)
		}
	}
	if total > 200<<10 {
		t.Errorf("the page has %d bytes, and at most 200 KiB are allowed", total)
	}
	if _, ok := assets["/"]; !ok || assets["/index.html"].text != nil {
		t.Error("the document is served as / alone")
	}
	for what, html := range map[string]string{
		"an inline script": "<script>", "an inline handler": " onclick=", "an inline style": " style=", "a style element": "<style",
	} {
		if strings.Contains(string(assets["/"].text), html) {
			t.Errorf("index.html has %s, which the Content-Security-Policy blocks", what)
		}
	}
}

func TestSession(t *testing.T) {
	target := &Target{"ci", name, "out/log.txt", ""}
	p := start(t, Config{Target: target, AllNamespaces: true, User: "jane", Version: "v1"})
	got := p.page(p.good("GET", "/session"))
	var said struct {
		Namespace, User, Raw, Version string
		AllNamespaces                 bool
		Target                        *Target
	}
	if err := json.Unmarshal([]byte(got.body), &said); err != nil {
		t.Fatal(err)
	}
	if said.Namespace != "ci" || said.User != "jane" || said.Raw != "http://127.0.0.1:"+p.Server.raw.port ||
		said.Version != "v1" || !said.AllNamespaces ||
		*said.Target != *target {
		t.Errorf("the session is %+v", said)
	}
	if got := p.page(start(t, Config{}).good("GET", "/session")); got.code != 403 {
		t.Errorf("the other server's session: %d", got.code)
	}
	mustHave(t, got.header, map[string]string{"Content-Type": "application/json", "X-Content-Type-Options": "nosniff",
		"Cache-Control": "no-store"})
}

func TestNamespaces(t *testing.T) {
	for want, names := range map[string]func(context.Context) ([]string, bool){
		`{"namespaces":["ci","etl"],"all":true}`: func(context.Context) ([]string, bool) { return []string{"ci", "etl"}, true },
		`{"namespaces":[],"all":false}`:          nil,
	} {
		p := start(t, Config{Namespaces: names})
		if got := p.page(p.good("GET", "/namespaces")); got.code != 200 || got.body != want {
			t.Errorf("the namespaces: %d %s, want %s", got.code, got.body, want)
		}
	}
}
