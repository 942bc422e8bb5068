package page

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// visitor is a window of the browser, and what it noticed.
type visitor struct {
	t   testing.TB
	ctx context.Context
	// close closes the window.
	close context.CancelFunc
	// downloads is where files go.
	downloads string

	mu sync.Mutex
	// consoles are messages of scripts and of the browser, dialogs those of alert and the like, and
	// requests the URLs that were asked for.
	consoles, dialogs []string
	requests          []request
	// pending are the requests that have no end yet.
	pending map[network.RequestID]bool
	// begun are the names of downloads, in order, and finished their paths by ID.
	begun    []download
	finished map[string]string
}

type request struct {
	url, method string
	header      map[string]string
	bytes       float64
	id          network.RequestID
}

type download struct{ id, name, url string }

// open opens the window.
func (v *visitor) open(parent context.Context, options ...chromedp.ContextOption) {
	v.t.Helper()
	ctx, cancel := chromedp.NewContext(parent, append(options, chromedp.WithListener(v.notice))...)
	v.ctx, v.close = ctx, cancel
	v.t.Cleanup(cancel)
	must(v.t, chromedp.Do(ctx))
	must(v.t, chromedp.ListenBrowser(ctx, v.noticeDownload))
	yes := true
	_, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, DownloadPath: v.downloads, EventsEnabled: &yes,
		BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
	})
	must(v.t, err)
}

// notice keeps what happens in the window.
func (v *visitor) notice(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		text := string(e.Type) + ":"
		for _, arg := range e.Args {
			text += " " + string(arg.Value) + arg.Description
		}
		v.consoles = append(v.consoles, text)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		v.consoles = append(v.consoles, "exception: "+text)
	case *log.EventEntryAdded:
		v.consoles = append(v.consoles, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *page.EventJavascriptDialogOpening:
		v.dialogs = append(v.dialogs, e.Message)
		go func() {
			_, _ = chromedp.Call(v.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *network.EventRequestWillBeSent:
		header := map[string]string{}
		for name, value := range e.Request.Headers {
			header[name] = fmt.Sprint(value)
		}
		v.requests = append(v.requests, request{url: e.Request.URL, method: e.Request.Method, header: header, id: e.RequestID})
		v.pending[e.RequestID] = true
	case *network.EventLoadingFailed:
		delete(v.pending, e.RequestID)
	case *network.EventLoadingFinished:
		delete(v.pending, e.RequestID)
		for i := range v.requests {
			if v.requests[i].id == e.RequestID {
				v.requests[i].bytes = e.EncodedDataLength
			}
		}
	}
}

func (v *visitor) noticeDownload(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *browser.EventDownloadWillBegin:
		v.begun = append(v.begun, download{e.GUID, e.SuggestedFilename, e.URL})
	case *browser.EventDownloadProgress:
		if e.State == browser.DownloadProgressStateCompleted {
			v.finished[e.GUID] = filepath.Join(v.downloads, e.GUID)
		}
	}
}

// do runs actions, with patience.
func (v *visitor) do(actions ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	must(v.t, v.try(actions...))
}

func (v *visitor) try(actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

// visit goes to an address, which may answer with a download or nothing.
func (v *visitor) visit(address string) error {
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	answer, err := chromedp.Call(ctx, page.Navigate, page.NavigateParams{URL: address})
	if err == nil && answer.ErrorText != "" {
		return errors.New(answer.ErrorText)
	}
	return err
}

// ask evaluates an expression in the page; a promise is awaited.
func ask[T any](v *visitor, expression string) T {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		v.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// wait waits until an expression is true in the page. The page may be replaced meanwhile.
func (v *visitor) wait(what, expression string) {
	v.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(v.ctx, patience)
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		cancel()
		if is {
			return
		}
		if time.Now().After(deadline) || v.ctx.Err() != nil {
			v.t.Fatalf("still not: %s (%v); the page has:\n%s\nconsole: %q", what, err, v.text(), v.said())
		}
	}
}

// sees waits until the page shows a text.
func (v *visitor) sees(text string) {
	v.t.Helper()
	v.wait("the page shows "+quote(text), "document.body?.innerText.includes("+quote(text)+")")
}

// look sets width and colours.
func (v *visitor) look(width int64, scheme string) {
	v.t.Helper()
	v.do(chromedp.EmulateViewport(width, 800))
	_, err := chromedp.Call(v.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	must(v.t, err)
}

// settle waits until the document has loaded with all that belongs to it, and nothing more is being loaded
// for a while. It does not rely on scripts: where they are forbidden, no timer runs.
func (v *visitor) settle() {
	v.t.Helper()
	for range 4 {
		time.Sleep(20 * time.Millisecond)
		v.wait("the document has loaded", `document.readyState === "complete"`)
		eventually(v.t, "nothing is being loaded", func() bool {
			v.mu.Lock()
			defer v.mu.Unlock()
			return len(v.pending) == 0
		})
	}
}

// text is what a person reads.
func (v *visitor) text() string {
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + (document.body?.innerText ?? "")`))
	if err != nil {
		return err.Error()
	}
	return text
}

// press presses keys, one after the other.
func (v *visitor) press(keys ...string) {
	v.t.Helper()
	for _, key := range keys {
		v.do(chromedp.KeyEvent(key))
	}
}

// said returns the console's messages.
func (v *visitor) said() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.consoles...)
}

// asked returns the requests.
func (v *visitor) asked() []request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]request(nil), v.requests...)
}

// downloaded waits for the download with this number, and returns its name and content.
func (v *visitor) downloaded(number int) (name string, content []byte) {
	v.t.Helper()
	var path string
	eventually(v.t, fmt.Sprintf("download %d is complete", number), func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		if number < len(v.begun) {
			name, path = v.begun[number].name, v.finished[v.begun[number].id]
		}
		return path != ""
	})
	content, err := os.ReadFile(path)
	must(v.t, err)
	return name, content
}

// wantQuiet wants nothing in the console that a developer would look into, and no request to another
// host than those of the plugin.
func (v *visitor) wantQuiet(hosts ...string) {
	v.t.Helper()
	for _, text := range v.said() {
		v.t.Errorf("the console says %s", text)
	}
	for _, r := range v.asked() {
		u, err := url.Parse(r.url)
		must(v.t, err)
		if u.Scheme != "data" && u.Scheme != "blob" && !strings.Contains(" "+strings.Join(hosts, " ")+" ", " "+u.Host+" ") {
			v.t.Errorf("the page asked for %s", r.url)
		}
	}
}

// quote writes a text as JavaScript does.
func quote(text string) string {
	return fmt.Sprintf("decodeURIComponent(%q)", url.PathEscape(text))
}
