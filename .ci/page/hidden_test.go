package page

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestListeners: the plugin listens on the loopback address, and nowhere else.
func TestListeners(t *testing.T) {
	s, _ := oneVolume(t)
	p := startPlugin(t, s.kubeconfig("token-of-alice", ""))
	listens := listening(t, p.cmd.Process.Pid)
	if len(listens) == 0 || len(listens) > 2 {
		t.Errorf("the plugin listens on %v; one for the page and one for raw bytes are expected", listens)
	}
	for _, address := range listens {
		if ip := net.ParseIP(strings.Trim(address[:strings.LastIndex(address, ":")], "[]")); !ip.Equal(net.IPv4(127, 0, 0, 1)) {
			t.Errorf("the plugin listens on %s", address)
		}
	}
}

// listening returns the addresses that a process listens on, by what the kernel says.
func listening(t testing.TB, pid int) (addresses []string) {
	t.Helper()
	sockets := map[string]bool{}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	must(t, err)
	for _, fd := range open {
		if target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name())); err == nil {
			if inode, ok := strings.CutPrefix(target, "socket:["); ok {
				sockets[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	for _, file := range []string{"tcp", "tcp6", "udp", "udp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, file))
		must(t, err)
		for line := range strings.Lines(string(table)) {
			fields := strings.Fields(line)
			// 0A is LISTEN; an UDP socket that waits for anybody is 07.
			if len(fields) > 9 && sockets[fields[9]] && (fields[3] == "0A" || fields[3] == "07") {
				host, port, _ := strings.Cut(fields[1], ":")
				bytes, err := hex.DecodeString(host)
				must(t, err)
				for i := 0; i < len(bytes); i += 4 { // words of the machine's order
					bytes[i], bytes[i+1], bytes[i+2], bytes[i+3] = bytes[i+3], bytes[i+2], bytes[i+1], bytes[i]
				}
				number, err := hex.DecodeString(port)
				must(t, err)
				addresses = append(addresses, net.JoinHostPort(net.IP(bytes).String(), fmt.Sprint(int(number[0])<<8|int(number[1]))))
			}
		}
	}
	return addresses
}

// TestTokenStaysHidden: the token of the first URL is in no argument of a process, in no entry of the history
// with the page, in no Referer, and in nothing that is sent to another port.
func TestTokenStaysHidden(t *testing.T) {
	s, name := oneVolume(t)
	p := startPlugin(t, s.kubeconfig("token-of-alice", ""))
	first, err := url.Parse(p.first)
	must(t, err)
	token := first.Query().Get("token")
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, file := range processes {
		if args, err := os.ReadFile(file); err == nil && contains(string(args), token) {
			t.Errorf("%s has the token: %q", file, args)
		}
	}
	var (
		mu       sync.Mutex
		referers []string
	)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		referers = append(referers, r.Header.Get("Referer"))
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<p>elsewhere")
	}))
	defer other.Close()
	v := newVisitor(t)
	p.enter(v)
	v.sees("nightly-29000000-x7k2p")
	ask[bool](v, "(location.hash = "+quote("#/ci/"+name+"/log.txt")+", true)")
	v.sees(secret)
	history, err := chromedp.Call(v.ctx, page.GetNavigationHistory, cdp.Empty{})
	must(t, err)
	key := p.key
	for i, entry := range history.Entries {
		if contains(entry.URL, token) || key != "" && contains(entry.URL, key) {
			t.Errorf("entry %d of the history has the token or the key: %s", i, entry.URL)
		}
	}
	ask[bool](v, fmt.Sprintf(`((a) => { a.href = %s; document.body.append(a); a.click(); return true; })(document.createElement("a"))`,
		quote(other.URL+"/")))
	v.sees("elsewhere")
	mu.Lock()
	defer mu.Unlock()
	for _, sent := range referers {
		if contains(sent, token) || contains(sent, p.host) || key != "" && contains(sent, key) {
			t.Errorf("another port gets %q", sent)
		}
	}
	for _, r := range v.asked() {
		if contains(r.header["Referer"], token) || contains(r.header["Referer"], "key=") {
			t.Errorf("the Referer of %s is %s", r.url, r.header["Referer"])
		}
	}
}
