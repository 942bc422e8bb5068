package main

import (
	"context"
	_ "embed" // for what kubectl calls
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
)

// completionName is the name of the verb.
const completionName = "completion"

func completionVerb() verbs.Verb {
	return verbs.Verb{
		Name:      completionName,
		Arguments: "[bash | zsh | fish]",
		Summary:   "makes the Tab key work behind kubectl katbox",
		Most:      1,
		Notes: `kubectl completes behind its plugins by a program kubectl_complete-katbox, which --install writes beside this one. The
completion of kubectl itself has to be there. The scripts are for those who type kubectl-katbox.

Examples:
  kubectl katbox completion --install                     for kubectl katbox, in all shells
  source <(kubectl katbox completion bash)                for kubectl-katbox in bash
  kubectl katbox completion zsh > "${fpath[1]}/_kubectl-katbox"
  kubectl katbox completion fish > ~/.config/fish/completions/kubectl-katbox.fish`,
		Define: func(flags *pflag.FlagSet) verbs.Action {
			install := flags.Bool("install", false, "write kubectl_complete-katbox beside this program")
			return func(_ context.Context, s *verbs.Session, args []string) error {
				switch {
				case *install && len(args) > 0:
					return verbs.WrongUsage("--install is for all shells: give no %s", verbs.Quoted(args[0]))
				case *install:
					return installCompletion(s)
				case len(args) == 0:
					return verbs.WrongUsage("name a shell (%s), or give --install", strings.Join(shellNames(), ", "))
				}
				script, ok := scripts[args[0]]
				if !ok {
					return verbs.WrongUsage("there is no completion for %s: choose one of %s", verbs.Quoted(args[0]), strings.Join(shellNames(), ", "))
				}
				_, err := fmt.Fprint(s.Stdout, script)
				return err
			}
		},
	}
}

func shellNames() []string { return slices.Sorted(maps.Keys(scripts)) }

// What kubectl calls for completion. The archives for users have the first as well.
var (
	//go:embed kubectl_complete-katbox
	completer string
	//go:embed kubectl_complete-katbox.cmd
	completerOfWindows string
)

// installCompletion writes the program that kubectl calls.
func installCompletion(s *verbs.Session) error {
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
	fmt.Fprintf(s.Stderr, "wrote %s: kubectl katbox completes with the Tab key where kubectl does\n", verbs.Quoted(path))
	if !onPath {
		fmt.Fprintf(s.Stderr, "Warning: %s is not on PATH, and kubectl finds plugins and their completion there alone\n", verbs.Quoted(dir))
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

// scripts are what shells read. Each asks the program with the words of the command line, and drops the
// directive in the last line, except whether files are offered.
var scripts = map[string]string{
	"bash": `# Completion of kubectl-katbox for bash.
_kubectl_katbox() {
	local cur=${COMP_LINE:0:COMP_POINT} line directive
	local -a words
	read -ra words <<<"$cur"
	[[ $cur == *' ' ]] && words+=('')
	local last=${words[${#words[@]} - 1]}
	COMPREPLY=()
	while IFS= read -r line; do
		if [[ $line == :* ]]; then
			directive=${line#:}
		else
			COMPREPLY+=("${line%%$'\t'*}")
		fi
	done < <(kubectl-katbox ` + completeVerb + ` "${words[@]:1}" 2>/dev/null)
	# bash may break words at colons and equal signs, and replaces the last part alone.
	local breaks=${COMP_WORDBREAKS//[^:=]/} part=$last
	[[ $breaks ]] && part=${last##*[$breaks]}
	local keep=${last%"$part"} i
	for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$keep"}; done
	((directive & 2)) && compopt -o nospace
	((directive & 4)) || compopt -o default
}
complete -F _kubectl_katbox kubectl-katbox
`,
	"zsh": `#compdef kubectl-katbox
# Completion of kubectl-katbox for zsh.
_kubectl_katbox() {
	local line directive=0
	local -a found shown
	while IFS= read -r line; do
		if [[ $line == :* ]]; then
			directive=${line#:}
		else
			found+=("${line%%$'\t'*}")
			shown+=("${line/$'\t'/  -- }")
		fi
	done < <(kubectl-katbox ` + completeVerb + ` "${(@)words[2,CURRENT]}" 2>/dev/null)
	if ((${#found})); then
		if ((directive & 2)); then
			compadd -S '' -l -d shown -a found
		else
			compadd -l -d shown -a found
		fi
	elif ! ((directive & 4)); then
		_files
	fi
}
if [[ $funcstack[1] == _kubectl_katbox || $funcstack[1] == _kubectl-katbox ]]; then
	_kubectl_katbox "$@"
else
	compdef _kubectl_katbox kubectl-katbox
fi
`,
	"fish": `# Completion of kubectl-katbox for fish.
function __kubectl_katbox
	set -l words (commandline -opc) (commandline -ct)
	set -l found (kubectl-katbox ` + completeVerb + ` $words[2..-1] 2>/dev/null)
	set -l directive (string replace ':' '' -- $found[-1])
	for line in $found[1..-2]
		echo $line
	end
	if test "$directive" = 0
		__fish_complete_path (commandline -ct)
	end
end
complete -c kubectl-katbox -f -a '(__kubectl_katbox)'
`,
}
