package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An alert is what the page needs of a rule.
type alert struct {
	Alert  string
	For    string
	Labels struct{ Severity string }

	Annotations struct{ Summary, Description, Runbook string }
}

// readAlerts returns the alerts of a file of rules, in its order.
func readAlerts(path string) ([]alert, error) {
	content, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	if err != nil {
		return nil, err
	}
	var file struct {
		Groups []struct{ Rules []alert }
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var alerts []alert
	for _, group := range file.Groups {
		for _, one := range group.Rules {
			if one.Alert != "" {
				alerts = append(alerts, one)
			}
		}
	}
	if len(alerts) == 0 {
		return nil, fmt.Errorf("%s: %w", path, errNoAlerts)
	}
	return alerts, nil
}

var errNoAlerts = errors.New("there are no alerts")

// alertSections returns the section of each alert for the page. Its anchor is the alert's name in lower case.
func alertSections(path string) (string, error) {
	alerts, err := readAlerts(path)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, one := range alerts {
		fmt.Fprintf(&b, "\n### %s\n\n**%s** (%s%s)\n\n%s\n\n**What to do:** %s\n", one.Alert, plain(one.Annotations.Summary),
			one.Labels.Severity, after(one.For), plain(one.Annotations.Description), plain(one.Annotations.Runbook))
	}
	return b.String() + "\n", nil
}

func after(wait string) string {
	if wait == "" {
		return ""
	}
	return ", after " + wait
}

var (
	labelOf = regexp.MustCompile(`\{\{ \$labels\.(\w+) \}\}`)
	valueOf = regexp.MustCompile(`\{\{ \$value[^}]*\}\}`)
	spaces  = regexp.MustCompile(`\s+`)
)

// plain puts the name of what stands there in the place of each expression: NODE, POOL, N. What Markdown would take
// for a tag is marked.
func plain(text string) string {
	text = labelOf.ReplaceAllStringFunc(text, func(expression string) string {
		name := labelOf.FindStringSubmatch(expression)[1]
		if name == "instance" {
			name = "node"
		}
		return strings.ToUpper(name)
	})
	text = strings.TrimSpace(spaces.ReplaceAllString(valueOf.ReplaceAllString(text, "N"), " "))
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`).Replace(text)
}
