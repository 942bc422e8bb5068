//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
)

// testPage: the page of "kubectl katbox ui", in a real browser, before a real cluster.
func (c *gatewayCluster) testPage() {
	volumes := c.failedJob()
	others := []rv{c.retained("ci", 1, filled("train-7", 9<<20)), c.retained("ci", 3, leaves("import-41", "of the import"))}
	b := newBrowser(c.t, 1200, 420)
	first := c.as(bob).page("-n", "ci")
	b.open(first)
	newest := volumes[0]
	b.shows(newest.Spec.PodName, volumes[1].Spec.PodName, "job/nightly", "train-7", "import-41")
	c.keepPicture(b, listPicture)
	b.follows(newest.Spec.PodName)
	b.shows("out", "log")
	b.follows("log")
	b.shows("computing since", "the input ends in the middle")
	c.keepPicture(b, filePicture)
	c.onlyFrom(first, b.asked)

	// The first address is good once, and nothing is without it.
	origin := c.originOf(first)
	for _, address := range []string{first, origin + "/session", origin + newest.path()} {
		if code := c.withoutCookie(address); code != http.StatusForbidden {
			c.t.Errorf("%s is answered with %d, want 403", address, code)
		}
	}

	// One who may only view sees the list, and reads what is missing for more.
	b.open(c.as(alice).page("-n", "ci"))
	b.shows(newest.Spec.PodName)
	b.follows(newest.Spec.PodName)
	b.shows("retainedvolumes/files", "edit")
	for _, v := range others {
		c.kubectl("-n", "ci", "delete", "rv", v.Metadata.Name)
	}
}

// keepPicture writes what the page shows, with KATBOX_E2E_WRITE.
func (c *gatewayCluster) keepPicture(b *browser, path string) {
	c.t.Helper()
	picture := b.picture()
	if os.Getenv("KATBOX_E2E_WRITE") == "" {
		return
	}
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// page starts "kubectl katbox ui" as a person, until the test ends, and returns its first address.
func (p person) page(args ...string) string {
	p.t.Helper()
	cmd := p.command(p.t.TempDir(), "kubectl", append([]string{"katbox", "ui", "--no-browser"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := errors.Join(cmd.Process.Signal(syscall.SIGINT), cmd.Wait()); err != nil {
			p.t.Errorf("kubectl katbox ui: %v\n%s", err, &stderr)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.t.Fatalf("kubectl katbox ui printed %q: %v\n%s", line, err, &stderr)
	}
	return strings.TrimSpace(line)
}

// shows waits until a person sees each part on the page.
func (b *browser) shows(parts ...string) {
	b.t.Helper()
	var text string
	defer func() {
		if b.t.Failed() {
			b.t.Logf("the page shows:\n%s", text)
		}
	}()
	eventually(b.t, fmt.Sprintf("the page shows %q", parts), func() error {
		text = b.text()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				return fmt.Errorf("it does not show %q", part)
			}
		}
		return nil
	})
}

// follows presses the first link or button with a text, once it is there.
func (b *browser) follows(part string) {
	b.t.Helper()
	eventually(b.t, "a link "+part, func() error {
		if !b.follow(part) {
			return errors.New("there is none")
		}
		return nil
	})
}

// onlyFrom fails unless all addresses are of the page's own origins, on loopback.
func (c *gatewayCluster) onlyFrom(first string, asked []string) {
	c.t.Helper()
	if len(asked) == 0 {
		c.t.Error("the page asked for nothing")
	}
	for _, address := range asked {
		if parsed, err := url.Parse(address); err != nil || parsed.Hostname() != "127.0.0.1" {
			c.t.Errorf("the page that began at %s asked for %s: %v", first, address, err)
		}
	}
}

// originOf is where an address of the page is.
func (c *gatewayCluster) originOf(address string) string {
	c.t.Helper()
	parsed, err := url.Parse(address)
	if err != nil || parsed.Hostname() != "127.0.0.1" || parsed.Port() == "" {
		c.t.Fatalf("the page is at %q: %v", address, err)
	}
	return "http://" + parsed.Host
}

// withoutCookie is the code of the answer to a request without a cookie.
func (c *gatewayCluster) withoutCookie(address string) int {
	c.t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Get(address)
	if err != nil {
		c.t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}
