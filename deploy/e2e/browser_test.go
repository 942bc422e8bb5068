//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// browser is a headless Chromium with one page, driven over a pipe by the DevTools protocol.
type browser struct {
	t       *testing.T
	orders  io.Writer
	answers *bufio.Reader
	calls   int
	// session is the page's; asked are the addresses that the page asked for.
	session string
	asked   []string
}

// newBrowser starts Chromium with a page of a size. It skips the test where there is none.
func newBrowser(t *testing.T, width, height int) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium: install it")
	}
	orders, its, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, says, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// The sandbox does not run as root, and all that this browser opens is Katbox's page.
	cmd := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--hide-scrollbars", "--force-color-profile=srgb", "--disable-background-networking", "--disable-component-update",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{orders, says} // 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	orders.Close()
	says.Close()
	b := &browser{t: t, orders: its, answers: bufio.NewReaderSize(answers, 1<<20)}
	t.Cleanup(func() {
		b.t = t
		b.session = ""
		b.call("Browser.close", nil, nil)
		its.Close()
		_, _ = io.Copy(io.Discard, b.answers)
		_ = cmd.Wait()
		answers.Close()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	screen := map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}
	b.call("Emulation.setDeviceMetricsOverride", screen, nil)
	b.call("Page.enable", nil, nil)
	b.call("Network.enable", nil, nil)
	return b
}

// call gives an order and waits for its answer.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	if params == nil {
		params = struct{}{}
	}
	b.calls++
	order, err := json.Marshal(struct {
		ID        int    `json:"id"`
		Method    string `json:"method"`
		Params    any    `json:"params"`
		SessionID string `json:"sessionId,omitempty"`
	}{b.calls, method, params, b.session})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.orders.Write(append(order, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		message, err := b.answers.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		var answer struct {
			ID     int
			Method string
			Params struct{ Request struct{ URL string } }
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(bytes.TrimSuffix(message, []byte{0}), &answer); err != nil {
			b.t.Fatalf("%s: %v in %.200s", method, err, message)
		}
		if answer.Method == "Network.requestWillBeSent" {
			b.asked = append(b.asked, answer.Params.Request.URL)
		}
		if answer.ID != b.calls {
			continue
		}
		if answer.Error != nil {
			b.t.Fatalf("%s: %s", method, answer.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(answer.Result, result); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

// open goes to an address.
func (b *browser) open(url string) {
	b.t.Helper()
	var result struct{ ErrorText string }
	b.call("Page.navigate", map[string]any{"url": url}, &result)
	if result.ErrorText != "" {
		b.t.Fatalf("%s: %s", url, result.ErrorText)
	}
}

// value is what a JavaScript expression gives in the page.
func (b *browser) value(expression string, v any) {
	b.t.Helper()
	var result struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &result)
	if e := result.ExceptionDetails; e != nil {
		b.t.Fatalf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if len(result.Result.Value) == 0 {
		return // undefined
	}
	if err := json.Unmarshal(result.Result.Value, v); err != nil {
		b.t.Fatalf("%s: %v in %s", expression, err, result.Result.Value)
	}
}

// text is what a person sees of the page.
func (b *browser) text() string {
	b.t.Helper()
	var text string
	b.value("document.body ? document.body.innerText : ''", &text)
	return text
}

// follow presses the first link or button whose text has a part, and says whether there is one.
func (b *browser) follow(part string) bool {
	b.t.Helper()
	quoted, err := json.Marshal(part)
	if err != nil {
		b.t.Fatal(err)
	}
	var found bool
	b.value(fmt.Sprintf(`(() => {
		const e = [...document.querySelectorAll("a, button, [role=treeitem], [role=row]")].find(e => e.textContent.includes(%s));
		e?.click();
		return !!e;
	})()`, quoted), &found)
	return found
}

// picture is the page as a PNG.
func (b *browser) picture() []byte {
	b.t.Helper()
	var result struct{ Data []byte }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &result)
	return result.Data
}
