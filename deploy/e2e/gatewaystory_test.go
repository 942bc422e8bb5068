//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	transcriptFile = "../plugin/transcript.txt"
	usersFile      = "../docs/users.md"
	// The pictures of the page.
	listPicture = "../plugin/page-list.png"
	filePicture = "../plugin/page-file.png"
	// usersPart is what on that page is the transcript, between two lines.
	usersPart = "plugin"
)

// story is what a person types who looks for the files of a job that failed, and what is printed.
// The page for users shows it. With KATBOX_E2E_WRITE it is written there; otherwise it has to be the same, except what
// is another each time.
func (c *gatewayCluster) story() {
	c.t.Helper()
	p := c.as(bob)
	p.can("config", "set-context", "--current", "--namespace=ci")
	dir := c.t.TempDir()
	var text strings.Builder
	for _, line := range []string{
		"kubectl get pods -l job-name=nightly",
		"kubectl katbox list --job nightly",
		"kubectl katbox ls -l --last job/nightly:",
		"kubectl katbox tail -n 2 --last job/nightly:log",
		"kubectl katbox cp job/nightly ./nightly",
		"find nightly -type f | sort",
	} {
		out, err := p.command(dir, "sh", "-c", line+" 2>&1").Output()
		if err != nil {
			c.t.Errorf("%s: %v\n%s", line, err, out)
		}
		text.WriteString("$ " + line + "\n" + string(out))
	}
	printed := text.String()
	if os.Getenv("KATBOX_E2E_WRITE") != "" {
		c.write(printed)
		return
	}
	if want := string(c.readFile(transcriptFile)); masked(printed) != masked(want) {
		c.t.Errorf("the transcript is another than that of %s; make e2e SUITE=transcript writes it. It is:\n%s", transcriptFile, printed)
	}
}

// write writes the transcript, and puts it into the page for users.
func (c *gatewayCluster) write(transcript string) {
	c.t.Helper()
	begin, end := "<!-- "+usersPart+" -->\n", "<!-- /"+usersPart+" -->\n"
	page := string(c.readFile(usersFile))
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		c.t.Fatalf("the page has no %s%s", begin, end)
	}
	page = before + begin + "```\n" + transcript + "```\n" + end + after
	for path, content := range map[string]string{transcriptFile: transcript, usersFile: page} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
	c.t.Logf("%s and %s have the transcript", filepath.Clean(transcriptFile), filepath.Clean(usersFile))
}

// variable is what is another each time: names that are made up, times and ages, and with them the width of columns.
var variable = []struct {
	form *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`nightly-[a-z0-9]{5}\b`), "nightly-POD"},
	{regexp.MustCompile(`POD\.[a-z0-9]{12}\b`), "POD.VOLUME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d UTC \d{4}`), "DATE"},
	{regexp.MustCompile(`\d+[smh] ago`), "AGE"},
	{regexp.MustCompile(`\bin \d+[smh]\b`), "LEFT"},
	{regexp.MustCompile(`[\d.]+ ([KM]i)?B/s`), "SPEED"},
	// The API server may say how the pods ended a moment after the kubelet has unpublished their volumes.
	{regexp.MustCompile(`job/nightly +(Failed|-) `), "job/nightly OUTCOME "},
	{regexp.MustCompile(` +`), " "},
}

func masked(text string) string {
	for _, v := range variable {
		text = v.form.ReplaceAllString(text, v.text)
	}
	return text
}
