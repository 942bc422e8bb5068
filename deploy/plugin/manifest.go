package main

import (
	"bytes"
	_ "embed"
	"regexp"
	"text/template"
)

// manifestText is the form of krew's manifest.
//
//go:embed katbox.yaml.tmpl
var manifestText string

// manifest returns what krew installs the plugin from.
func manifest(version string, platforms []platform) ([]byte, error) {
	form, err := template.New("katbox.yaml").Option("missingkey=error").Parse(manifestText)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = form.Execute(&text, struct {
		Version   string
		Platforms []platform
	}{version, platforms})
	return text.Bytes(), err
}

// version2 is a semantic version 2.0.0, with or without a v before it.
var version2 = regexp.MustCompile(`^v?((?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)` +
	`(?:-(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?)(?:\+[0-9A-Za-z.-]+)?$`)

var odd = regexp.MustCompile(`[^0-9A-Za-z-]+`)

// semantic returns a version as krew wants it: v1.2.3, or v1.2.3-more. Without a tag "git describe" gives the
// commit, which becomes v0.0.0-dev-COMMIT. Build metadata behind a plus sign is left out.
func semantic(version string) string {
	if found := version2.FindStringSubmatch(version); found != nil {
		return "v" + found[1]
	}
	return "v0.0.0-dev-" + odd.ReplaceAllString(version, "-")
}
