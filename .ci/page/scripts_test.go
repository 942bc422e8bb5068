package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// hostileSite is a cluster with the hostile volume, and a window with its page.
type hostileSite struct {
	*site
	*plugin
	b *beacon
	v *visitor
	// name is that of the volume.
	name string
}

func openHostile(t testing.TB) *hostileSite {
	t.Helper()
	h := &hostileSite{b: newBeacon(t)}
	h.site = newSite(t, map[string]func(*node){"n1": func(n *node) { h.name, _ = putHostile(n, h.b) }})
	h.plugin = startPlugin(t, h.kubeconfig("token-of-alice", ""))
	h.v = newVisitor(t)
	h.enter(h.v)
	return h
}

// TestScriptsInThePage: names, links and contents of the hostile volume are shown, whatever they are, and
// nothing of them runs. Each file can be opened by its own address.
func TestScriptsInThePage(t *testing.T) {
	h := openHostile(t)
	v := h.v
	v.do(chromedp.EmulateViewport(1280, 4000)) // all rows of a directory are there
	v.sees("hostile-29000000-x7k2p")
	for _, pod := range hostilePods[:len(hostilePods)-1] {
		v.sees(pod)
	}
	h.b.wantSilence(v, "the list")
	volume := "#/ci/" + h.name
	for _, place := range []place{
		{name: "volume", hash: volume, shows: "script.html"}, {name: "names", hash: volume + "/names", shows: "__proto__"},
		{name: "search", hash: "#/ci?q=" + url.QueryEscape("<img src=x onerror="+h.b.script("search")+">"), shows: "None of"},
		{name: "no such namespace", hash: "#/" + url.PathEscape("<script>"+h.b.script("namespace")+"</script>"), shows: "script"},
		{name: "no such volume", hash: "#/ci/" + url.PathEscape("<img src=x onerror=alert(1)>"), shows: "onerror"},
		{name: "a script for a line", hash: volume + "/text.txt?line=" + url.QueryEscape("1\"><script>"+h.b.script("line")+"</script>"),
			shows: "<script>"},
	} {
		v.goTo(place)
		v.settle()
		h.b.wantSilence(v, place.name)
	}
	var refs []string
	for file := range hostileFiles(h.b) {
		refs = append(refs, refOf(file))
	}
	for file := range hostileLinks(h.b, func(string) string { return "" }) {
		refs = append(refs, refOf(file))
	}
	refs = append(refs, "fifo", "names")
	slices.Sort(refs)
	for _, view := range []string{"", "?view=text", "?view=hex", "?view=image"} {
		for _, ref := range refs {
			v.goTo(place{hash: volume + "/" + ref + view, shows: "ci"})
			v.settle()
			h.b.wantSilence(v, ref+view)
		}
	}
	for _, ref := range h.refs(t, "names") {
		v.goTo(place{hash: volume + "/" + ref, shows: "ci"})
		v.settle()
		if !contains(ref, "script%3E") && !contains(ref, "%3Cscript%3Ealert%28%27KATBOX-RAN%20closed") {
			v.sees("of a file with a name")
		}
		h.b.wantSilence(v, ref)
	}
}

// refs lists a directory of the volume by its refs.
func (h *hostileSite) refs(t testing.TB, path string) []string {
	t.Helper()
	return ask[[]string](h.v, fmt.Sprintf(`fetch(%s, {headers: {"Katbox-Page": %s}}).then((a) => a.json()).then((l) =>
		l.entries.map((e) => e.ref))`,
		quote(katboxAPI+"/namespaces/ci/retainedvolumes/"+h.name+"/files?path="+path), quote(h.key)))
}

// TestNamesAreShown: of names with characters that hide or reorder others, the page shows these as numbers;
// no character of a terminal or of another direction gets into its text.
func TestNamesAreShown(t *testing.T) {
	h := openHostile(t)
	h.v.look(1280, "light")
	h.v.goTo(place{hash: "#/ci/" + h.name + "/names", shows: `\x1b[2J`}) // in the first rows, which are in sight
	// All rows are there once one has scrolled through.
	shown := ask[string](h.v, `(async () => {
		const box = document.querySelector("[role=grid]");
		let text = "";
		for (let at = 0; box && at <= box.scrollHeight; at += 200) {
			box.scrollTop = at;
			await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
			text += document.body.innerText + "\n";
		}
		return text + document.body.innerText;
	})()`)
	for _, hidden := range []string{"\u202e", "\u2066", "\u2069", "\u200b", "\ufeff", "\x1b", "\x07", "\r"} {
		if contains(shown, hidden) {
			t.Errorf("the page shows %q", hidden)
		}
	}
	for _, name := range []string{"<img src=x onerror=", `\x1b[31mred`, `\u202etxt.exe`, `a\nb`, "&lt;img", "%3Cimg", "__proto__",
		"مرحبا", "日本語", "?line=1#x"} {
		if !contains(shown, name) {
			t.Errorf("the page does not show %q", name)
		}
	}
	if t.Failed() {
		t.Log(shown)
	}
}

// TestScriptsByAddress: a person who opens an address of a file instead of the page sees nothing of it run: on the
// page's origin, on that of raw bytes, and through "kubectl proxy", which anybody may have open.
func TestScriptsByAddress(t *testing.T) {
	h := openHostile(t)
	h.v.sees("hostile-29000000-x7k2p")
	proxy := h.kubectlProxy(t)
	log := katboxAPI + "/namespaces/ci/retainedvolumes/" + h.name + "/log"
	var opened int
	elsewhere := newTab(h.v)
	for file := range hostileFiles(h.b) {
		for _, address := range []string{
			h.origin + log + "?path=" + refOf(file), strings.Replace(h.origin, "127.0.0.1", "localhost", 1) + log + "?path=" + refOf(file),
			h.origin + "/" + refOf(file), h.origin + "/raw/" + refOf(file), "http://" + h.raw + log + "?path=" + refOf(file), "http://" +
				h.raw + "/raw/x/" + refOf(file),
			proxy + log + "?path=" + refOf(file), proxy + log + "?path=" + refOf(file) + "&tailLines=5",
			h.ticket(h.v, h.name, refOf(file), "download"), h.ticket(h.v, h.name, refOf(file), "image"),
		} {
			if !strings.HasPrefix(address, "http") {
				continue // no ticket: it is no image
			}
			opened++
			_ = elsewhere.visit(address) // most are downloads
			elsewhere.settle()
			h.b.wantSilence(elsewhere, address)
			h.b.wantSilence(h.v, "the page, after "+address)
		}
	}
	t.Logf("opened %d addresses", opened)
}

// TestScriptsInFrames: a page of another origin that embeds the files, in all ways that there are, has
// nothing of them run, and reads nothing of them. So has a page on the origin of raw bytes' host.
func TestScriptsInFrames(t *testing.T) {
	h := openHostile(t)
	h.v.sees("hostile-29000000-x7k2p")
	proxy := h.kubectlProxy(t)
	var body string
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>foreign</title><p>foreign"+body)
	}))
	defer foreign.Close()
	log := katboxAPI + "/namespaces/ci/retainedvolumes/" + h.name + "/log?path="
	elsewhere := newTab(h.v)
	for _, file := range []string{"script.html", "script.svg", "script.xhtml", "script.xml", "script.pdf", "script.js", "script.mjs",
		"script.mhtml", "image.png", "gif.js", "text.txt", "no-extension", "style.css", "utf16.txt"} {
		addresses := []string{h.origin + log + file, "http://" + h.raw + log + file, proxy + log + file}
		for range 7 {
			addresses = append(addresses, h.ticket(h.v, h.name, file, "download"))
		}
		body = ""
		for i, address := range addresses {
			address = strings.ReplaceAll(address, "&", "&amp;")
			ways := []string{
				"<iframe src='%s'></iframe>", "<object data='%s'></object>", "<embed src='%s'>", "<script src='%s'></script>",
				"<script type=module src='%s'></script>",
				"<link rel=stylesheet href='%s'>", "<img src='%s'>",
			}
			if i >= 3 { // a ticket serves once
				ways = ways[i-3 : i-2]
			}
			for _, way := range ways {
				body += fmt.Sprintf(way, address)
			}
		}
		for _, from := range []string{foreign.URL, strings.Replace(foreign.URL, "127.0.0.1", rebound, 1)} {
			must(t, elsewhere.visit(from))
			elsewhere.sees("foreign")
			elsewhere.settle()
			h.b.wantSilence(elsewhere, file+" in a page of "+from)
		}
	}
}

// kubectlProxy is what "kubectl proxy" does for alice: everybody who reaches it is she.
func (h *hostileSite) kubectlProxy(t testing.TB) string {
	t.Helper()
	to, err := url.Parse(h.http.URL)
	must(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Transport: h.http.Client().Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Set("Authorization", "Bearer token-of-alice")
		},
	})
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	return proxy.URL
}
