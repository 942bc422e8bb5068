package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/lifespan"
)

// TestMadeAnew: the picture of the pressure, the page of all messages and the sections of the alerts are those that "make docs" makes.
func TestMadeAnew(t *testing.T) {
	if read(t, pressureFile) != pressurePicture() {
		t.Errorf("%s is not what make docs makes: run it", pressureFile)
	}
	messages, err := messagesPage(root)
	if err != nil {
		t.Fatal(err)
	}
	if read(t, messagesFile) != messages {
		t.Errorf("%s does not have the messages of the source: run make docs, and read what has become of the page", messagesFile)
	}
	alerts, err := alertSections(filepath.Join(root, rulesFile))
	if err != nil {
		t.Fatal(err)
	}
	_, in, _, err := part(read(t, troubleshootingFile), alertsPart)
	if err != nil || in != alerts {
		t.Errorf("%s does not have the alerts of %s: run make docs: %v", troubleshootingFile, rulesFile, err)
	}
}

// TestEachAlertHasASection, at the anchor that its runbook_url has: its name in lower case.
func TestEachAlertHasASection(t *testing.T) {
	alerts, err := readAlerts(filepath.Join(root, rulesFile))
	if err != nil {
		t.Fatal(err)
	}
	there := anchors(t, troubleshootingFile)
	for _, one := range alerts {
		if !there[strings.ToLower(one.Alert)] {
			t.Errorf("%s has no section for the alert %s: run make docs", troubleshootingFile, one.Alert)
		}
		if one.Annotations.Summary == "" || one.Annotations.Description == "" || one.Annotations.Runbook == "" {
			t.Errorf("the alert %s does not say what is wrong and what to do: %+v", one.Alert, one.Annotations)
		}
	}
}

// TestPressureHasTheDefaults of the daemon.
func TestPressureHasTheDefaults(t *testing.T) {
	reference := read(t, "deploy/docs/reference.md")
	for _, line := range []string{
		fmt.Sprintf("| `--headroom` | `%g` |", headroom), fmt.Sprintf("| `--afterlifespan` | `%s` |", duration.Format(longLifespan)),
		fmt.Sprintf("`auto` is `%s` where `--workdir`", lifespan.DefaultLine),
	} {
		if !strings.Contains(reference, line) {
			t.Errorf("deploy/docs/reference.md does not have %q: what has the picture of the pressure?", line)
		}
	}
}

// TestReadmeHasAnExcerpt of the demo: each of its lines is one of the demo's, in the same order. Times, sizes and the
// width of columns may differ: those of the page are of its last run.
func TestReadmeHasAnExcerpt(t *testing.T) {
	_, demo, _, err := part(read(t, "deploy/docs/demo.md"), "demo")
	if err != nil {
		t.Fatal(err)
	}
	_, excerpt, _, err := part(read(t, "README.md"), "demo-excerpt")
	if err != nil {
		t.Fatal(err)
	}
	varying := regexp.MustCompile(`\d+| {2,}`)
	demo = varying.ReplaceAllString(demo, " ")
	lines := strings.Split(strings.Trim(varying.ReplaceAllString(excerpt, " "), "`\n"), "\n")
	if len(lines) < 5 {
		t.Errorf("the excerpt has the lines %q", lines)
	}
	for _, line := range lines {
		_, rest, found := strings.Cut(demo, line+"\n")
		if !found {
			t.Errorf("README.md shows the line %q, which the demo does not print there", line)
		}
		demo = rest
	}
}

// TestPagesHaveTheirParts: each page has the part that a program writes, by its flag --readme or in a cluster.
func TestPagesHaveTheirParts(t *testing.T) {
	parts := map[string]string{"soak/bench/README.md": "bench", "deploy/docs/demo.md": "demo", "deploy/docs/users.md": "plugin"}
	for page, name := range parts {
		if _, in, _, err := part(read(t, page), name); err != nil || in == "" {
			t.Errorf("%s: %v", page, err)
		}
	}
}
