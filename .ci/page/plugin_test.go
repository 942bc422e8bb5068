package page

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// plugin is a run of "kubectl katbox ui".
type plugin struct {
	t   testing.TB
	cmd *exec.Cmd
	// first is the URL that it printed, and origin that of the page. host is its host and port.
	first, origin, host string
	// key is what the page alone knows: it stands in a header of its requests. raw is the host and port of
	// the second origin. Both are known once a visitor has entered.
	key, raw string
	// stderr is read when the run has ended.
	stderr bytes.Buffer
	ended  chan struct{}
	stop   func()
}

// pluginBinary is the plugin that is tested.
func pluginBinary(t testing.TB) string {
	t.Helper()
	path := os.Getenv("KATBOX_PLUGIN")
	if path == "" {
		path = "../../bin/kubectl-katbox"
	}
	path, err := filepath.Abs(path)
	must(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; run the tests by \"make page-check\", which builds it", err)
	}
	return path
}

var firstURL = regexp.MustCompile(`^http://127\.0\.0\.1:[0-9]+/\?token=\S+$`)

// startPlugin runs "kubectl katbox ui" until the test ends, and waits for its first URL.
func startPlugin(t testing.TB, kubeconfig string, args ...string) *plugin {
	t.Helper()
	p := &plugin{t: t, ended: make(chan struct{})}
	p.cmd = exec.Command(pluginBinary(t), append([]string{"ui", "--no-browser"}, args...)...)
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	must(t, err, p.cmd.Start())
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			lines <- scanner.Text()
		}
		_, _ = io.Copy(io.Discard, stdout)
	}()
	var waited error
	p.stop = sync.OnceFunc(func() {
		_ = p.cmd.Process.Signal(syscall.SIGINT)
		for range lines { // until it has closed its output
		}
		waited = p.cmd.Wait()
		close(p.ended)
	})
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("the plugin ended: %v\n%s", waited, p.stderr.String())
		}
	})
	for line := range lines {
		if firstURL.MatchString(line) {
			p.first = line
			break
		}
	}
	if p.first == "" {
		p.stop()
		t.Fatalf("the plugin printed no URL, and ended: %v\n%s", waited, p.stderr.String())
	}
	u, err := url.Parse(p.first)
	must(t, err)
	p.host, p.origin = u.Host, "http://"+u.Host
	return p
}

// enter opens the first URL in the window, and waits for the page.
func (p *plugin) enter(v *visitor) {
	p.t.Helper()
	must(p.t, v.visit(p.first))
	v.wait("the page is there", "location.origin === "+quote(p.origin)+
		" && localStorage.getItem('katbox-key') && document.querySelector('h1') && !location.href.includes('token')")
	p.key = ask[string](v, `localStorage.getItem("katbox-key") ?? ""`)
	raw, err := url.Parse(ask[string](v, `fetch("/session", {headers: {"Katbox-Page": `+quote(p.key)+
		`}}).then((a) => a.json()).then((s) => s.raw)`))
	must(p.t, err)
	p.raw = raw.Host
}

// cookies returns the window's cookies as the plugin gets them.
func (p *plugin) cookies(v *visitor) string {
	p.t.Helper()
	found, err := chromedp.Call(v.ctx, network.GetCookies, network.GetCookiesParams{URLs: []string{p.origin}})
	must(p.t, err)
	var texts []string
	for _, cookie := range found.Cookies {
		texts = append(texts, cookie.Name+"="+cookie.Value)
		if !cookie.HTTPOnly || cookie.SameSite != network.CookieSameSiteStrict {
			p.t.Errorf("the cookie %s is HttpOnly %v, SameSite %s", cookie.Name, cookie.HTTPOnly, cookie.SameSite)
		}
	}
	return strings.Join(texts, "; ")
}

// ticket has the page's server make an address of the second origin.
func (p *plugin) ticket(v *visitor, name, ref, kind string) string {
	p.t.Helper()
	body := `{"namespace":"ci","name":"` + name + `","path":"` + ref + `","kind":"` + kind + `"}`
	return ask[string](v, `fetch("/tickets", {method: "POST", body: `+quote(body)+
		`, headers: {"Katbox-Page": `+quote(p.key)+
		`, "Content-Type": "application/json"}}).then(async (a) => (await a.json()).url ?? String(a.status))`)
}

// send sends a request to the plugin from outside a browser.
func (p *plugin) send(method, address string, header map[string]string) (*http.Response, string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	must(p.t, err)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	if host, ok := header["Host"]; ok {
		r.Host = host
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	must(p.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(p.t, err)
	return answer, string(text)
}
