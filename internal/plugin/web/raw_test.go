package web

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fetch is a request with a ticket, as a browser makes it for a link on the page.
func (p *play) fetch(target string) request {
	return request{"GET", target, map[string][]string{
		"Host": {"127.0.0.1:" + p.Server.raw.port}, "Sec-Fetch-Site": {"same-site"}, "Sec-Fetch-Mode": {"navigate"},
		"Sec-Fetch-Dest": {"document"},
	}, ""}
}

// raw sends a request to the port of raw bytes.
func (p *play) raw(r request) answered {
	p.t.Helper()
	got, err := p.send(p.Server.raw.port, r)
	if err != nil {
		p.t.Fatalf("%s %s: %v", r.method, r.target, err)
	}
	return got
}

// order asks for a ticket, and returns the answer, and the path of the URL if there is one.
func (p *play) order(o order) (got answered, target string) {
	p.t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		p.t.Fatal(err)
	}
	r := p.good("POST", "/tickets").with("Content-Type", "application/json")
	r.body = string(text)
	got = p.page(r)
	var said struct{ URL string }
	if got.code == 200 {
		if err := json.Unmarshal([]byte(got.body), &said); err != nil {
			p.t.Fatal(err)
		}
		target = strings.TrimPrefix(said.URL, "http://127.0.0.1:"+p.Server.raw.port)
	}
	return got, target
}

// holds says what a file has that the cluster answers with.
func (c *cluster) holds(content string) {
	c.answers(func(w http.ResponseWriter, r *http.Request) {
		text := content
		if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil {
			text = text[:min(len(text), limit)]
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Disposition", `inline; filename="x.html"`)
		w.Header().Set("Set-Cookie", "x=y")
		w.Header().Set("Katbox-Size", strconv.Itoa(len(content)))
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = io.WriteString(w, text)
	})
}

func TestDownload(t *testing.T) {
	p := start(t, Config{})
	content := strings.Repeat("<script>alert(1)</script>", 100_000)
	p.cluster.holds(content)
	got, target := p.order(order{"ci", name, "out/x%0A%22;a.html", "download"})
	if got.code != 200 || !strings.HasPrefix(target, "/raw/") {
		t.Fatalf("the ticket: %d %q", got.code, got.body)
	}
	p.cluster.requests()
	file := p.raw(p.fetch(target).with("Cookie", "katbox=x").with("Authorization", "x").with("Range", "bytes=5-"))
	if file.code != 200 || file.body != content {
		t.Fatalf("the download: %d, %d bytes", file.code, len(file.body))
	}
	mustHave(t, file.header, map[string]string{
		"Content-Type": "application/octet-stream", "Content-Disposition": `attachment; filename="x__;a.html"; filename*=UTF-8''x__%3Ba.html`,
		"Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
		"Cache-Control":                "no-store",
		"Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		"Content-Length": strconv.Itoa(len(content)),
	})
	if file.header.Get("Set-Cookie") != "" {
		t.Error("the cluster sets a cookie")
	}
	asked := p.cluster.requests()
	if len(asked) != 1 || asked[0].URL.String() != volume+"/log?path=out%2Fx%250A%2522%3Ba.html" || len(asked[0].Header) != 0 {
		t.Errorf("the cluster was asked %v %q", asked[0].URL, asked[0].Header)
	}
	// A ticket is good for one request.
	if again := p.raw(p.fetch(target)); again.code != 403 || again.header.Get("Content-Type") != "text/plain; charset=utf-8" ||
		len(p.cluster.requests()) > 0 {
		t.Errorf("the second request: %d", again.code)
	}
}

// TestDownloadGoesOn: a browser asks for the rest of a file that it has a part of. No other client gets more than one answer.
func TestDownloadGoesOn(t *testing.T) {
	p := start(t, Config{})
	content, tag := strings.Repeat("0123456789", 50_000), `"1-2-3"`
	var seen http.Header
	p.cluster.answers(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		text, code := content, http.StatusOK
		if at, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && r.Header.Get("If-Range") == tag {
			from, _ := strconv.Atoi(strings.TrimSuffix(at, "-"))
			text, code = content[from:], http.StatusPartialContent
			w.Header().Set("Content-Range", "bytes "+strconv.Itoa(from)+"-499999/500000")
		}
		w.Header().Set("Etag", tag)
		w.Header().Set("Katbox-Size", strconv.Itoa(len(content)))
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	})
	got, target := p.order(order{"ci", name, "log", "download"})
	if !strings.Contains(got.body, `"size":500000`) {
		t.Errorf("the ticket does not say how large the file is: %s", got.body)
	}
	whole := p.raw(p.fetch(target))
	mustHave(t, whole.header, map[string]string{"Etag": tag, "Accept-Ranges": "bytes", "Content-Length": "500000"})
	again := func(header ...string) answered {
		r := p.fetch(target)
		for i := 0; i < len(header); i += 2 {
			r = r.with(header[i], header[i+1])
		}
		return p.raw(r)
	}
	for range 2 {
		rest := again("Range", "bytes=123456-", "If-Range", tag)
		if rest.code != http.StatusPartialContent || rest.body != content[123456:] {
			t.Errorf("the rest: %d, %d bytes", rest.code, len(rest.body))
		}
		mustHave(t, rest.header, map[string]string{
			"Content-Range": "bytes 123456-499999/500000", "Content-Length": "376544", "Etag": tag, "Content-Type": "application/octet-stream",
			"Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
		})
		if len(seen) != 2 {
			t.Errorf("the cluster saw %v", seen)
		}
	}
	for _, header := range [][]string{
		{}, {"Range", "bytes=1-"}, {"If-Range", tag}, {"Range", "bytes=1-", "If-Range", `"other"`},
		{"Range", "bytes=1-", "If-Range", `W/"1-2-3"`}, {"Range", "bytes=1-2", "If-Range", tag},
		{"Range", "bytes=0-1,3-", "If-Range", tag}, {"Range", "lines=1-", "If-Range", tag},
	} {
		if got := again(header...); got.code != http.StatusForbidden {
			t.Errorf("once more with %q: %d", header, got.code)
		}
	}
	// The contents are others now: all of them come, under their own name.
	old := tag
	tag, content = `"4-5-6"`, strings.Repeat("abcdefghij", 50_000)
	if got := again("Range", "bytes=5-", "If-Range", old); got.code != http.StatusOK || got.body != content || got.header.Get("Etag") != tag {
		t.Errorf("of a file that has changed: %d, %d bytes", got.code, len(got.body))
	}
	_, target = p.order(order{"ci", name, "", "archive"})
	if archive := again(); archive.header.Get("Accept-Ranges") != "none" || archive.header.Get("Etag") != "" {
		t.Errorf("an archive: %v", archive.header)
	}
	if got := again("Range", "bytes=5-", "If-Range", tag); got.code != http.StatusForbidden {
		t.Errorf("an archive once more: %d", got.code)
	}
}

func TestArchive(t *testing.T) {
	p := start(t, Config{})
	p.cluster.holds("tar")
	_, target := p.order(order{"ci", name, "", "archive"})
	if asked := p.cluster.requests(); len(asked) != 1 || asked[0].URL.String() != volume+"/files?path=%2F&stat=true" {
		t.Errorf("before the ticket the cluster was asked %v", asked)
	}
	got := p.raw(p.fetch(target))
	mustHave(t, got.header,
		map[string]string{"Content-Disposition": `attachment; filename="` + name + `.tar.gz"; filename*=UTF-8''` + name + `.tar.gz`})
	if asked := p.cluster.requests(); len(asked) != 1 || asked[0].URL.String() != volume+"/log?archive=tar&compress=gzip&path=%2F" {
		t.Errorf("the cluster was asked %v", asked)
	}
	// One that breaks does not look complete.
	_, target = p.order(order{"ci", name, "out", "archive"})
	p.cluster.answers(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	})
	if _, err := p.send(p.Server.raw.port, p.fetch(target)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half an archive: %v", err)
	}
}

func TestImages(t *testing.T) {
	p := start(t, Config{})
	rest := strings.Repeat("x", 3000)
	for start, want := range map[string]string{
		"\x89PNG\r\n\x1a\n": "image/png", "\xff\xd8\xff\xe0": "image/jpeg", "GIF87a": "image/gif", "GIF89a": "image/gif",
		"RIFF\x01\x02\x03\x04WEBPVP8L": "image/webp",
		"<svg xmlns=":                  "", "<?xml version=": "", "<html>": "", "%PDF-1.7": "", "BM": "", "RIFF\x01\x02\x03\x04AVI LIST": "",
		"GIF88a": "", "\x00\x00\x00\x1cftypavif": "",
	} {
		p.cluster.holds(start + rest)
		got, target := p.order(order{"ci", name, "x.svg", "image"})
		if want == "" {
			if got.code != 415 {
				t.Errorf("%q: %d %q", start, got.code, got.body)
			}
			continue
		}
		image := p.raw(p.fetch(target).with("Sec-Fetch-Dest", "image").with("Sec-Fetch-Mode", "no-cors"))
		if image.code != 200 || image.body != start+rest {
			t.Errorf("%q: %d", start, image.code)
		}
		mustHave(t, image.header, map[string]string{
			"Content-Type": want, "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin",
			"Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
			"Content-Disposition":     `attachment; filename="x.svg"; filename*=UTF-8''x.svg`,
		})
		// A file that is another one by then.
		_, target = p.order(order{"ci", name, "x.png", "image"})
		p.cluster.holds("<svg onload=alert(1)>" + rest)
		if other := p.raw(p.fetch(target)); other.code != 415 || other.header.Get("Content-Type") != "text/plain; charset=utf-8" ||
			strings.Contains(other.body, "svg") {
			t.Errorf("a file that became an SVG: %d %q", other.code, other.body)
		}
	}
	p.cluster.holds("GIF")
	if got, _ := p.order(order{"ci", name, "x", "image"}); got.code != 415 {
		t.Errorf("a short file: %d", got.code)
	}
	p.cluster.holds("GIF89a" + strings.Repeat("x", maxImage))
	if got, _ := p.order(order{"ci", name, "x", "image"}); got.code != 413 {
		t.Errorf("a large image: %d", got.code)
	}
}

func TestErrorsBeforeTheTicketAndAfter(t *testing.T) {
	p := start(t, Config{})
	p.cluster.holds("x")
	_, target := p.order(order{"ci", name, "x", "download"})
	_, another := p.order(order{"ci", name, "x", "download"})
	p.cluster.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(429)
		_, _ = io.WriteString(w, `{"kind":"Status","message":"<b>too\nmany","code":429}`)
	})
	got, _ := p.order(order{"ci", name, "x", "download"})
	mustHave(t, got.header, map[string]string{"Content-Type": "application/json", "Retry-After": "1"})
	if got.code != 429 || !strings.Contains(got.body, "too\\nmany") {
		t.Errorf("%d %q", got.code, got.body)
	}
	late := p.raw(p.fetch(target))
	mustHave(t, late.header, map[string]string{"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"})
	if late.code != 429 || !strings.Contains(late.body, "<b>too_many") || late.header.Get("Content-Disposition") != "" {
		t.Errorf("%d %q", late.code, late.body)
	}
	p.cluster.answers(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "GIF89a, and what is not as it looks")
	})
	if got := p.raw(p.fetch(another)); got.code != 502 {
		t.Errorf("a compressed answer: %d %q", got.code, got.body)
	}
	for _, code := range []int{302, 101, 204, 0} {
		p.cluster.holds("x")
		_, target := p.order(order{"ci", name, "x", "download"})
		p.cluster.answers(func(w http.ResponseWriter, _ *http.Request) {
			if code == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(code)
		})
		if got, _ := p.order(order{"ci", name, "x", "download"}); got.code < 400 {
			t.Errorf("the cluster's %d becomes %d", code, got.code)
		}
		if got := p.raw(p.fetch(target)); got.code != 502 {
			t.Errorf("the cluster's %d becomes %d for raw bytes", code, got.code)
		}
	}
}

func TestBadOrders(t *testing.T) {
	p := start(t, Config{})
	good := `{"namespace":"ci","name":"` + name + `","path":"x","kind":"download"}`
	for _, body := range []string{
		"", "{}", "[]", good + good, good + "x", `{"namespace":"ci","name":"` + name + `","path":"x","kind":"svg"}`,
		`{"namespace":"ci","name":"` + name + `","path":"","kind":"download"}`,
		`{"namespace":"../..","name":"` + name + `","path":"x","kind":"download"}`,
		`{"namespace":"ci","name":"../../../secrets","path":"x","kind":"download"}`,
		`{"namespace":"","name":"` + name + `","path":"x","kind":"download"}`, `{"namespace":"ci","name":"a/b","path":"x","kind":"download"}`,
		strings.Replace(good, "{", `{"more":1,`, 1), strings.Repeat(" ", maxBody) + good,
	} {
		r := p.good("POST", "/tickets").with("Content-Type", "application/json")
		r.body = body
		if got := p.page(r); got.code != 400 || len(p.cluster.requests()) > 0 {
			t.Errorf("%.99q: %d %q", body, got.code, got.body)
		}
	}
	// A form of another site can be sent with these without a question.
	for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"} {
		r := p.good("POST", "/tickets").with("Content-Type", contentType)
		r.body = good
		if got := p.page(r); got.code != 400 {
			t.Errorf("%q: %d", contentType, got.code)
		}
	}
	// No path leads out of the parameter that it is in.
	p.cluster.holds("x")
	if _, target := p.order(order{"ci", name, "x&archive=tar#/../", "download"}); target == "" {
		t.Error("no ticket for an odd path")
	}
	if query := p.cluster.requests()[0].URL.Query(); query.Get("path") != "x&archive=tar#/../" || query.Has("archive") {
		t.Errorf("the query is %q", query)
	}
}

func TestStrangersAtTheRawPort(t *testing.T) {
	p := start(t, Config{})
	p.cluster.holds("x")
	_, target := p.order(order{"ci", name, "x", "download"})
	p.cluster.requests()
	host, cookie := "127.0.0.1:"+p.Server.raw.port, p.login.name+"="+p.login.secret
	change := func(method, target string) request {
		r := p.fetch(target).with("Cookie", cookie).with("Katbox-Page", p.login.key)
		r.method = method
		return r
	}
	attacks := []request{
		change("GET", target).with("Host", "evil.example"), change("GET", target).with("Host", "evil.example:"+p.Server.raw.port),
		change("GET", target).with("Host", "127.0.0.1:"+p.Server.page.port), change("GET", target).with("Sec-Fetch-Site", "cross-site"),
		change("GET", target).with("Origin", "http://evil.example"), change("GET", target).with("Origin",
			"http://127.0.0.1:"+p.Server.page.port),
		change("GET", target).with("Origin", "null"), change("GET", target).with("Upgrade", "websocket"), change("GET",
			target+"?x=y"), change("GET", "http://"+host+target),
		change("GET", "/"), change("GET", "/session"), change("GET", base), change("GET", "/raw/"), change("GET", "/raw/x"),
		change("GET", "/raw//x"), change("GET", p.first().target),
		change("GET", "*"), change("GET", "/raw/"+url.PathEscape(cookie)+"/x"),
	}
	for _, method := range methods {
		if method != "GET" {
			attacks = append(attacks, change(method, target))
		}
	}
	for _, r := range attacks {
		if got := p.raw(r); got.code != 403 || got.header.Get("Content-Type") != "text/plain; charset=utf-8" || len(p.cluster.requests()) > 0 {
			t.Errorf("%s %s %q: %d", r.method, r.target, r.header, got.code)
		}
	}
	// None of these has used the ticket up, and it is good without any cookie.
	if got := p.raw(p.fetch(target).with("Sec-Fetch-Site", "none")); got.code != 200 || got.body != "x" {
		t.Errorf("the ticket: %d %q", got.code, got.body)
	}
}

func TestTickets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all tickets
		one := order{"ci", name, "a", "download"}
		id := all.issue(one)
		if got, _, ok := all.redeem(id, ""); !ok || got != one || len(id) != 26 {
			t.Errorf("ticket %q is for %+v, %t", id, got, ok)
		}
		if _, _, ok := all.redeem(id, ""); ok {
			t.Error("a ticket is good twice")
		}
		id = all.issue(one)
		time.Sleep(ticketLimit - time.Second)
		other := all.issue(one)
		if _, _, ok := all.redeem(id, ""); !ok {
			t.Error("a ticket is not good for a minute")
		}
		id = all.issue(one)
		time.Sleep(ticketLimit)
		for _, id := range []string{id, other, "", "x"} {
			if _, _, ok := all.redeem(id, ""); ok {
				t.Errorf("the ticket %q is good", id)
			}
		}
		first := all.issue(one)
		for range maxTickets {
			time.Sleep(time.Millisecond)
			id = all.issue(one)
		}
		if len(all.issued) != maxTickets {
			t.Errorf("there are %d tickets", len(all.issued))
		}
		if _, _, ok := all.redeem(first, ""); ok {
			t.Error("the oldest ticket is good")
		}
		if _, _, ok := all.redeem(id, ""); !ok {
			t.Error("the newest ticket is not good")
		}
		time.Sleep(resumeLimit)
		all.issue(one)
		if len(all.issued) != 1 {
			t.Errorf("%d tickets stay when they are too old", len(all.issued)-1)
		}
	})
}

func TestFileNames(t *testing.T) {
	for ref, want := range map[string]string{
		"out/log.txt": "log.txt", "a%20b": "a b", "%2e%2e": "_", "a/..": "_", "x%2F..%2Fy": "x_.._y", "a%00b": "a_b",
		"a%0d%0aSet-Cookie:x": "a__Set-Cookie_x",
		"%ff":                 "_", "gpj%e2%80%ae.exe": "gpj_.exe", "%e2%80%8b": "_", "日本": "日本", "100%": "100%", "a%22b": "a_b",
		".bashrc": "_.bashrc", "a.": "a", "%20": name,
		"/": name, "a/": "a", strings.Repeat("ä", 200): strings.Repeat("ä", 100),
	} {
		if got := (order{"ci", name, ref, "download"}).fileName(); got != want {
			t.Errorf("%q is saved as %q, want %q", ref, got, want)
		}
	}
	if got, want := attachment("日% a+b"), `attachment; filename="__ a+b"; filename*=UTF-8''%E6%97%A5%25%20a%2Bb`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
