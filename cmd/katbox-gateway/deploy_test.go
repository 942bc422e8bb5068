package main

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

const (
	manifest = "../../deploy/kustomize/components/gateway/deployment.yaml"
	template = "../../deploy/helm/katbox/templates/gateway/deployment.yaml"
)

// TestManifestsGiveFlagsThatAreThere: also in the chart's template, whatever the values.
func TestManifestsGiveFlagsThatAreThere(t *testing.T) {
	var o options
	flags := o.flags()
	for _, path := range []string{manifest, template} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		given := regexp.MustCompile(`(?m)^\s*- --([a-z-]+)`).FindAllStringSubmatch(string(content), -1)
		if len(given) < 5 {
			t.Errorf("%s gives only %q", path, given)
		}
		for _, match := range given {
			if flags.Lookup(match[1]) == nil {
				t.Errorf("%s gives the flag --%s, and there is none", path, match[1])
			}
		}
	}
}

// TestManifestStartsTheGateway: it accepts the arguments as a whole. The ports are those that it
// listens on when it is told nothing.
func TestManifestStartsTheGateway(t *testing.T) {
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(content), "args:\n")
	var args []string
	for line := range strings.Lines(list) {
		arg, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			break
		}
		args = append(args, strings.ReplaceAll(arg, "$(NAMESPACE)", "katbox"))
	}
	o, err := parse(args, io.Discard)
	if err != nil {
		t.Error(err)
	}
	for _, endpoint := range []string{o.apiEndpoint, o.nodesEndpoint, o.httpEndpoint} {
		if !strings.Contains(string(content), "containerPort: "+strings.TrimPrefix(endpoint, ":")+"\n") {
			t.Errorf("it listens on %s, and the pod has no such port", endpoint)
		}
	}
}

// TestReferenceNamesEveryFlag, as it does for the daemon.
func TestReferenceNamesEveryFlag(t *testing.T) {
	page, err := os.ReadFile("../../deploy/docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## The gateway\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var o options
	o.flags().VisitAll(func(flag *pflag.Flag) {
		if !strings.Contains(section, "`--"+flag.Name+"`") {
			t.Errorf("deploy/docs/reference.md does not name the flag --%s", flag.Name)
		}
	})
}
