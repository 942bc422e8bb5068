package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sidecarFlags are other programs' flags in the manifests.
var sidecarFlags = map[string]bool{"csi-address": true, "health-port": true, "probe-timeout": true}

// TestManifestsGiveFlagsThatAreThere: also in the chart's templates, whatever the values, and in
// patches. The gateway's are another program's.
func TestManifestsGiveFlagsThatAreThere(t *testing.T) {
	var o options
	flags := o.flags()
	given := regexp.MustCompile(`(?m)^\s*(?:-|value:) --([a-z-]+)`)
	ofGateway := []string{"deployment.yaml", "releasenodes.yaml"}
	found := 0
	err := filepath.WalkDir("../../deploy", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		// A patch does not say of what it is.
		if strings.Contains(string(content), "kind: Deployment") || slices.Contains(ofGateway, filepath.Base(path)) {
			return err
		}
		for _, match := range given.FindAllStringSubmatch(string(content), -1) {
			if found++; flags.Lookup(match[1]) == nil && !sidecarFlags[match[1]] {
				t.Errorf("%s gives the flag --%s, and there is none", path, match[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 20 {
		t.Errorf("only %d flags were found", found)
	}
}

// TestManifestsStartTheDaemon: the daemon accepts their arguments as a whole.
func TestManifestsStartTheDaemon(t *testing.T) {
	for _, path := range []string{"base/daemonset.yaml", "overlays/sidecars/daemonset.yaml"} {
		content, err := os.ReadFile(filepath.Join("../../deploy/kustomize", path))
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
			args = append(args, strings.NewReplacer("$(NODE_NAME)", "node", "$(WORKDIR_ON_NODE)", "/data").Replace(arg))
		}
		if len(args) < 5 {
			t.Errorf("%s gives only %q", path, args)
		}
		if _, err := parse(args, io.Discard); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
