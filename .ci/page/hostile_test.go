package page

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

// hostilePods are pod names that Kubernetes allows and a program might stumble over.
var hostilePods = []string{
	"constructor", "0", "xn--80ak6aa92e.example", "www.evil.example", "localhost", "127.0.0.1", "a.b-c.d", "index.html", "x.svg",
	strings.Repeat("long-", 49) + "name",
}

// hostileNames are names of files that are more than their letters to one program or another. short is
// what must not run, and has to be short as a name is.
func hostileNames(short func(what string) string) []string {
	return []string{
		"<img src=x onerror=" + short("img") + ">", `"><img src=x onerror=` + short("quoted") + ">", "<svg onload=" + short("svg") + ">",
		`' onmouseover='` + short("over") + `' x='`, `" autofocus onfocus="` + short("focus") + `" x="`,
		"javascript:" + short("url"), "data:text,html,<script>" + short("data"), "{{constructor.constructor(" + short("braces") + ")()}}",
		"${" + short("template") + "}", "`-" + short("tick") + "-`", "&lt;img src=x onerror=" + short("entity") + "&gt;",
		"%3Cimg src=x onerror=" + short("percent") + "%3E", "%", "%00", "%2e%2e%2f", "..%2f..%2fetc%2fpasswd", "a%FFb", "a\xffb",
		"\xff\xfe", "a;b&c=d+e f",
		"?line=1#x", "#", "?", "a\nb", "a\r\nSet-Cookie: x=1", "\x1b[31mred\x1b[0m", "\x1b]8;;javascript:" + short("osc") + "\x07x",
		"\x1b[2J", "\x07", "tab\there",
		"annual\u202etxt.exe", "\u2066isolated\u2069", "zero\u200bwidth", "\ufeffbom", "e\u0301 and \u00e9", "", " ", " leading",
		"trailing ", "...", ".hidden", "-rf", "~", "$(id)",
		"con", "NUL.txt", "back\\slash", "star*", "colon:stream", "pipe|", "__proto__", "constructor", "toString", "hasOwnProperty",
		"index.html", "sw.js",
		strings.Repeat("n", 255), strings.Repeat("é", 127), "family 👨‍👩‍👧", "مرحبا", "שלום.txt", "日本語",
	}
}

// hostileFiles are contents that a browser would run as something.
func hostileFiles(b *beacon) map[string]string {
	s := b.script
	html := func(what string) string {
		return "<!doctype html><html><head><title>x</title><base href='" + b.url + "/'><meta http-equiv=refresh content='1;url=" + b.url +
			"/ran/refresh-" + what + "'></head>" +
			"<body onload=\"" + s(what+"-onload") + "\"><script>" + s(what) + "</script><img src=x onerror=\"" + s(what+"-img") + "\">" +
			"<iframe srcdoc=\"<script>" + s(what+"-srcdoc") + "</script>\"></iframe><form action='" + b.url +
			"/ran/form'><input name=q autofocus onfocus=\"" + s(what+"-focus") + "\"></form>" +
			"<link rel=stylesheet href='" + b.url + "/ran/style-" + what + "'></body></html>\n"
	}
	svg := "<svg xmlns='http://www.w3.org/2000/svg' onload=\"" + s("svg-onload") + "\"><script>" + s("svg") +
		"</script><rect width='9' height='9'/>" +
		"<image href='" + b.url + "/ran/svg-image'/></svg>\n"
	files := map[string]string{
		"script.html": html("html"), "script.htm": html("htm"), "script.svg": svg, "image.png": svg, "image.jpg": html("jpg"),
		"no-extension": html("bare"),
		"script.xhtml": "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><body><script>" + s("xhtml") +
			"</script></body></html>\n",
		"script.xml": "<?xml version='1.0'?><?xml-stylesheet href='script.xsl' type='text/xsl'?><a " +
			"xmlns:h='http://www.w3.org/1999/xhtml'><h:script>" + s("xml") + "</h:script></a>\n",
		"script.xsl": "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'><xsl:template " +
			"match='/'><script>" + s("xsl") + "</script></xsl:template></xsl:stylesheet>\n",
		"script.mhtml": "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\n\n--x\nContent-Type: text/html\n\n" +
			html("mhtml") + "--x--\n",
		"script.js": s("js") + "\n", "script.mjs": s("mjs") + "\n", "sw.js": s("worker") + "\n",
		"style.css":  "@import '" + b.url + "/ran/css'; body { background: url('" + b.url + "/ran/css-url') }\n",
		"script.pdf": hostilePDF(s("pdf")),
		"gif.js":     "GIF89a/*" + strings.Repeat("\x00", 9) + "*/=1;" + s("gif") + "\n",
		"text.txt": "<script>" + s("text") + "</script>\n<img src=x onerror=\"" + s("text-img") +
			"\">\n</pre></textarea></title><script>" + s("text-end") + "</script>\n",
		"ansi.log": "\x1b[31mred\x1b[0m \x1b]8;;javascript:" + s("ansi") + "\x07link\x1b]8;;\x07 \x1b]0;" + ran +
			" title\x07 \x1b[31;<script>" + s("ansi-tag") + "</script>m\n",
		"rtl.txt":       "user \u202e} \u2066if (admin)\u2069 \u2066 begin\nplain\n",
		"bom.txt":       "\xef\xbb\xbf<script>" + s("bom") + "</script>\n",
		"utf7.txt":      "+ADw-script+AD4-" + s("utf7") + "+ADw-/script+AD4-\n",
		"utf16.txt":     "\xff\xfe<\x00s\x00c\x00r\x00i\x00p\x00t\x00>\x001\x00",
		"long-line.txt": strings.Repeat("<b>x", 50_000) + "\n",
		"control.bin":   "\x00\x01<script>" + s("bin") + "</script>\x02",
		"manifest.json": `{"start_url":"` + b.url + `/ran/manifest"}`,
		"broken.png":    "\x89PNG\r\n\x1a\n<script>" + s("png") + "</script>",
		"huge.png":      bomb(30_000),
		"real.png":      picture(60, 40), "large.png": picture(900, 600),
	}
	return files
}

// hostileLinks are targets of symbolic links.
func hostileLinks(b *beacon, short func(string) string) map[string]string {
	return map[string]string{
		"link-javascript": "javascript:" + b.script("link"), "link-tag": "<img src=x onerror=" + short("link-tag") + ">",
		"link-shadow": "/etc/shadow", "link-up": "..",
		"link-url": b.url + "/ran/link-url", "link-self": "link-self", "link-escape": "\x1b]0;x\x07", "link-html": "script.html",
		"link-data": "data:text/html,<script>" + short("link-data") + "</script>",
	}
}

// putHostile makes a volume full of all that.
func putHostile(n *node, b *beacon) (volumeName, podName string) {
	t := n.t
	t.Helper()
	podName = "hostile-29000000-x7k2p"
	volumeName, path := n.put(func(d *volume.Description) {
		d.Record.PodName, d.Record.Unpublished = podName, hoursAgo(0.2)
		d.Record.Owner.Kind, d.Record.Owner.Name, d.Record.Owner.Job = "Job", "hostile", "hostile"
	})
	short := func(what string) string { return fmt.Sprintf("alert('%s %s')", ran, what) }
	names := filepath.Join(path, "names")
	must(t, os.Mkdir(names, 0o755))
	for _, name := range hostileNames(short) {
		if name != "" {
			must(t, os.WriteFile(filepath.Join(names, name), []byte("of a file with a name\n"), 0o644))
		}
	}
	closing := filepath.Join(names, "<script>"+short("closed")+"<")
	must(t, os.Mkdir(closing, 0o755), os.WriteFile(filepath.Join(closing, "script>"), []byte("x\n"), 0o644))
	for name, content := range hostileFiles(b) {
		must(t, os.WriteFile(filepath.Join(path, name), []byte(content), 0o644))
	}
	for name, target := range hostileLinks(b, short) {
		must(t, os.Symlink(target, filepath.Join(path, name)))
	}
	must(t, syscall.Mkfifo(filepath.Join(path, "fifo"), 0o644))
	deep := path
	for range 40 {
		deep = filepath.Join(deep, "deeper")
	}
	must(t, os.MkdirAll(deep, 0o755), os.WriteFile(filepath.Join(deep, "end.txt"), []byte("the end\n"), 0o644))
	for _, pod := range hostilePods {
		n.put(func(d *volume.Description) { d.Record.PodName, d.Record.Unpublished = pod, hoursAgo(2) })
	}
	return volumeName, podName
}

// hostilePDF opens with a script.
func hostilePDF(script string) string {
	var text strings.Builder
	var offsets []int
	text.WriteString("%PDF-1.7\n")
	escape := strings.NewReplacer("(", "\\(", ")", "\\)")
	for i, object := range []string{
		"<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /JavaScript /JS (" + escape.Replace("app.alert('"+ran+"'); "+script) + ") >> >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] >>",
	} {
		offsets = append(offsets, text.Len())
		fmt.Fprintf(&text, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	table := text.Len()
	fmt.Fprintf(&text, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&text, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&text, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, table)
	return text.String()
}

// bomb is a small PNG that takes side² bytes once it is decoded.
func bomb(side int) string {
	var text bytes.Buffer
	text.WriteString("\x89PNG\r\n\x1a\n")
	chunk := func(kind string, data []byte) {
		must := func(err error) {
			if err != nil {
				panic(err)
			}
		}
		must(binary.Write(&text, binary.BigEndian, uint32(len(data))))
		body := append([]byte(kind), data...)
		text.Write(body)
		must(binary.Write(&text, binary.BigEndian, crc32.ChecksumIEEE(body)))
	}
	header := binary.BigEndian.AppendUint32(nil, uint32(side))
	chunk("IHDR", append(binary.BigEndian.AppendUint32(header, uint32(side)), 1, 0, 0, 0, 0))
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	row := make([]byte, 1+side/8)
	for range side {
		_, _ = w.Write(row)
	}
	_ = w.Close()
	chunk("IDAT", packed.Bytes())
	chunk("IEND", nil)
	return text.String()
}

// TestHostileVolume: the API gives all of it away as it is, and as nothing that a browser would run.
func TestHostileVolume(t *testing.T) {
	b := newBeacon(t)
	var name string
	s := newSite(t, map[string]func(*node){"n1": func(n *node) { name, _ = putHostile(n, b) }})
	base := katboxAPI + "/namespaces/ci/retainedvolumes"
	_, _, list := s.ask("token-of-alice", "GET", base)
	for _, pod := range hostilePods {
		if !contains(list, `"podName":"`+pod+`"`) {
			t.Errorf("pod %s is not listed", pod)
		}
	}
	for file, content := range hostileFiles(b) {
		code, header, text := s.ask("token-of-alice", "GET", base+"/"+name+"/log?path="+file)
		if code != 200 || text != content {
			t.Errorf("%s: %d, and %d bytes of %d", file, code, len(text), len(content))
		}
		kind := header.Get("Content-Type")
		if kind != "text/plain; charset=utf-8" && kind != "application/octet-stream" {
			t.Errorf("%s is served as %s", file, kind)
		}
	}
}
