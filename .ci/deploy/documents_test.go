package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/katbox/katbox/deploy/docs/pages"
)

const repository = "../.."

// TestCommandsOfTheDocuments: what the documents install by kustomize and Helm is rendered, with the flags that they
// show, and the API server's code takes it. The files that they apply are there.
func TestCommandsOfTheDocuments(t *testing.T) {
	found, err := pages.Commands(repository)
	if err != nil {
		t.Fatal(err)
	}
	byKustomize := regexp.MustCompile(`^kubectl (?:apply|delete)(?: --server-side)? -k (deploy/\S+)$`)
	byFile := regexp.MustCompile(`^kubectl apply -f (deploy/\S+)$`)
	byHelm := regexp.MustCompile(`^helm (?:install|upgrade|upgrade --install) katbox deploy/helm/katbox --namespace katbox(.*)$`)
	counts := map[string]int{}
	seen := map[string]bool{}
	for _, command := range found {
		if seen[command.Text] {
			continue
		}
		seen[command.Text] = true
		if match := byKustomize.FindStringSubmatch(command.Text); match != nil {
			counts["kustomize"]++
			rendered, err := output("kustomize", "build", filepath.Join(repository, match[1]))
			if err != nil {
				t.Errorf("%s: %v", command.Page, err)
				continue
			}
			acceptAll(t, split(t, rendered))
		}
		if match := byHelm.FindStringSubmatch(command.Text); match != nil {
			counts["helm"]++
			// What is installed already has no say in what is rendered here.
			rendered, err := template(shellWords(strings.Replace(match[1], " --reuse-values", "", 1))...)
			if err != nil {
				t.Errorf("%s: %v", command.Page, err)
				continue
			}
			acceptAll(t, split(t, rendered))
		}
		if match := byFile.FindStringSubmatch(command.Text); match != nil {
			counts["file"]++
			if _, err := os.Stat(filepath.Join(repository, match[1])); err != nil {
				t.Errorf("%s: %v", command.Page, err)
			}
		}
	}
	if counts["kustomize"] < 5 || counts["helm"] < 4 || counts["file"] < 4 {
		t.Errorf("only %v commands were found", counts)
	}
}

// shellWords takes flags apart as a shell does, with single quotes.
func shellWords(flags string) []string {
	var found []string
	for i, part := range strings.Split(flags, "'") {
		if i%2 == 1 {
			found = append(found, part)
		} else {
			found = append(found, strings.Fields(part)...)
		}
	}
	return found
}
