package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/katbox/katbox/deploy/docs/pages"
)

// TestCommandsOfTheDocuments: what the documents do with the plugin works in a checkout as they show it, one command after
// the other: bin and /usr/local/bin are other directories, and "make plugin" packs files that are no programs.
func TestCommandsOfTheDocuments(t *testing.T) {
	const root = "../.."
	found, err := pages.Commands(root)
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	count := map[string]int{}
	for _, command := range found {
		directories := strings.NewReplacer("sudo ", "", " bin/", " "+work+"/bin/", "=bin/", "="+work+"/bin/", "/usr/local/bin", work)
		first, rest, _ := strings.Cut(directories.Replace(command.Text), " ")
		switch {
		case first == "make" && strings.HasPrefix(rest, "plugin VERSION="):
			packed := madeUp(t, strings.TrimPrefix(rest, "plugin VERSION="))
			if err := os.CopyFS(filepath.Join(work, "bin/plugin"), os.DirFS(packed)); err != nil {
				t.Fatal(err)
			}
		case strings.Contains(command.Text, "krew install"):
			for _, match := range regexp.MustCompile(`--(?:manifest|archive)=(\S+)`).FindAllStringSubmatch(rest, -1) {
				count["krew"]++
				if _, err := os.Stat(match[1]); err != nil {
					t.Errorf("%s: %s: %v", command.Page, command.Text, err)
				}
			}
		case strings.Contains(command.Text, "kubectl-katbox") && (first == "go" || first == "install" || first == "tar"):
			count[first]++
			run := exec.CommandContext(t.Context(), first, strings.Fields(rest)...)
			run.Dir = root
			run.Env = append(run.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false") // as make build compiles it
			if output, err := run.CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", command.Page, command.Text, err, output)
				continue
			}
			if first == "go" {
				continue
			}
			for _, name := range []string{"kubectl-katbox", "kubectl_complete-katbox"} {
				info, err := os.Stat(filepath.Join(work, name))
				if err != nil || info.Mode().Perm()&0o111 == 0 {
					t.Errorf("%s: %s: %s is not there, or cannot be run: %v", command.Page, command.Text, name, err)
				}
				_ = os.Remove(filepath.Join(work, name))
			}
		}
	}
	if count["go"] == 0 || count["install"] == 0 || count["tar"] == 0 || count["krew"] < 2 {
		t.Errorf("only %v commands were found", count)
	}
}
