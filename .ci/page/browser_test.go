package page

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

const (
	// rebound is a name that an attacker resolves to this machine, as in DNS rebinding.
	rebound = "evil.example"
	// resolver lets no request leave this machine.
	resolver = "MAP " + rebound + " 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
)

// chrome is the browser that all tests share. Each has windows, cookies and a history of its own.
var chrome struct {
	sync.Once
	ctx context.Context
	end context.CancelFunc
	err error
}

// chromeOptions are how the browser is started.
func chromeOptions() ([]chromedp.ExecAllocatorOption, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("%w; install Debian's package chromium", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.WSURLReadTimeout(patience), chromedp.WindowSize(1280, 900),
		chromedp.Flag("host-resolver-rules", resolver),
		// Frames of other sites stay in the page's process, so that what runs in them is heard.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,SitePerProcess,IsolateOrigins"),
		chromedp.Flag("disable-site-isolation-trials", true),
		// For performance.memory in bytes, and a collection of garbage before memory is measured.
		chromedp.Flag("enable-precise-memory-info", true), chromedp.Flag("js-flags", "--expose-gc"),
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has none for root
	}
	return options, nil
}

// startChrome returns the context of the browser.
func startChrome() (context.Context, error) {
	chrome.Do(func() {
		options, err := chromeOptions()
		if err != nil {
			chrome.err = err
			return
		}
		allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, end := chromedp.NewContext(allocator)
		chrome.ctx, chrome.end = ctx, func() { end(); endAllocator() }
		chrome.err = chromedp.Do(ctx)
	})
	return chrome.ctx, chrome.err
}

// newVisitor opens a window that shares nothing with others.
func newVisitor(t testing.TB) *visitor {
	t.Helper()
	parent, err := startChrome()
	must(t, err)
	v := window(t, t.TempDir())
	v.open(parent, chromedp.WithNewBrowserContext())
	return v
}

// newTab opens another tab beside a window, with the same cookies.
func newTab(beside *visitor) *visitor {
	beside.t.Helper()
	v := window(beside.t, beside.downloads)
	v.open(beside.ctx, chromedp.WithExistingBrowserContext(chromedp.FromContext(beside.ctx).BrowserContextID))
	return v
}

func window(t testing.TB, downloads string) *visitor {
	return &visitor{t: t, downloads: downloads, finished: map[string]string{}, pending: map[network.RequestID]bool{}}
}
