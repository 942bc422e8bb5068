package main

import (
	_ "embed" // for what kubectl calls
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
)

// shells are those that cobra has scripts for.
var shells = []string{"bash", "fish", "powershell", "zsh"}

func completionVerb() *cobra.Command {
	var install bool
	verb := &cobra.Command{
		Use:       "completion [SHELL]",
		Short:     "makes the Tab key work behind kubectl katbox",
		Args:      verbs.Arguments(0, 1),
		ValidArgs: shells,
		Long: `kubectl completes behind its plugins by a program kubectl_complete-katbox, which --install writes beside this one. The
completion of kubectl itself has to be there. The script of a SHELL (bash, fish, powershell or zsh) is for those who type
kubectl-katbox; that of bash needs the package bash-completion, as kubectl's own does.`,
		Example: `  kubectl katbox completion --install                     for kubectl katbox, in all shells
  source <(kubectl katbox completion bash)                for kubectl-katbox in bash
  kubectl katbox completion zsh > "${fpath[1]}/_kubectl-katbox"
  kubectl katbox completion fish > ~/.config/fish/completions/kubectl-katbox.fish
  kubectl katbox completion powershell | Out-String | Invoke-Expression`,
		RunE: func(verb *cobra.Command, args []string) error {
			root, stdout := verb.Root(), verb.OutOrStdout()
			switch {
			case install && len(args) > 0:
				return verbs.WrongUsage("--install is for all shells: give no %s", verbs.Quoted(args[0]))
			case install:
				return installCompletion(verb.ErrOrStderr())
			case len(args) == 0:
				return verbs.WrongUsage("name a shell (%s), or give --install", strings.Join(shells, ", "))
			}
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(stdout, true)
			case "fish":
				return root.GenFishCompletion(stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(stdout)
			case "zsh":
				return root.GenZshCompletion(stdout)
			}
			return verbs.WrongUsage("there is no completion for %s: choose one of %s", verbs.Quoted(args[0]), strings.Join(shells, ", "))
		},
	}
	verb.Flags().BoolVar(&install, "install", false, "write kubectl_complete-katbox beside this program")
	return verb
}

// What kubectl calls for completion. The archives for users have the first as well.
var (
	//go:embed kubectl_complete-katbox
	completer string
	//go:embed kubectl_complete-katbox.cmd
	completerOfWindows string
)

// installCompletion writes the program that kubectl calls.
func installCompletion(stderr io.Writer) error {
	dir, onPath, err := home()
	if err != nil {
		return err
	}
	name, content := "kubectl_complete-katbox", completer
	if runtime.GOOS == "windows" {
		name, content = name+".cmd", completerOfWindows
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		return fmt.Errorf("%w; run it as one who may write there, or put kubectl-katbox into a directory of your own on PATH", err)
	}
	// One that is there keeps its mode.
	if err := os.Chmod(path, 0o755); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "wrote %s: kubectl katbox completes with the Tab key where kubectl does\n", verbs.Quoted(path))
	if !onPath {
		fmt.Fprintf(stderr, "Warning: %s is not on PATH, and kubectl finds plugins and their completion there alone\n", verbs.Quoted(dir))
	}
	return nil
}

// home returns the directory in which kubectl finds this program, and whether that is on PATH. A plugin
// manager has a link on PATH and the program elsewhere.
func home() (dir string, onPath bool, err error) {
	if found, err := exec.LookPath("kubectl-katbox"); err == nil && filepath.IsAbs(found) {
		return filepath.Dir(found), true, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", false, fmt.Errorf("find where this program is: %w", err)
	}
	return filepath.Dir(self), false, nil
}
