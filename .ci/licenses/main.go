package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// texts is the name of the file with the licenses of others.
const texts = "THIRD-PARTY-LICENSES.txt"

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("licenses", flag.ContinueOnError)
	flags.SetOutput(stderr)
	license := flags.String("license", "", "license of the program itself")
	output := flags.String("output", "", "directory that gets the files")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *license == "" || *output == "" || flags.NArg() != 1 {
		return errors.New("it takes --license, --output and one program")
	}
	own, err := os.ReadFile(*license)
	if err != nil {
		return err
	}
	program := flags.Arg(0)
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	works, err := linked(info)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	text, err := describe(filepath.Base(program), works)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	if err := os.MkdirAll(*output, 0o755); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(*output, "LICENSE"), own, 0o644),
		os.WriteFile(filepath.Join(*output, texts), text, 0o644),
	)
}

// work is what somebody else has made, a module or Go itself.
type work struct {
	// name and version are as "go version -m" says them.
	name, version string
	// root is its directory, packages are those of the packages that are linked.
	root     string
	packages []string
}

// pkg is a package as "go list" describes it.
type pkg struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version string }
	}
}

// linked returns what a program is made of besides the module that it is from.
func linked(info *debug.BuildInfo) ([]work, error) {
	packages, err := list(info)
	if err != nil {
		return nil, err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	root := strings.TrimSpace(string(goroot))
	works := []work{{name: "Go", version: info.GoVersion, root: root, packages: []string{root}}}
	at := map[string]int{}
	for _, p := range packages {
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		i, known := at[p.Module.Path]
		if !known {
			i = len(works)
			at[p.Module.Path] = i
			works = append(works, work{name: p.Module.Path, version: p.Module.Version, root: p.Module.Dir})
			if replace := p.Module.Replace; replace != nil {
				works[i].name, works[i].version = replace.Path, replace.Version
			}
		}
		works[i].packages = append(works[i].packages, p.Dir)
	}
	slices.SortFunc(works[1:], func(a, b work) int { return strings.Compare(a.name, b.name) })
	return works, sameModules(info, works[1:])
}

// list returns the packages of a program, for the platform that it was built for.
func list(info *debug.BuildInfo) ([]pkg, error) {
	args := []string{"list", "-deps", "-json=Dir,Standard,Module"}
	env := os.Environ()
	for _, setting := range info.Settings {
		switch setting.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED":
			env = append(env, setting.Key+"="+setting.Value)
		case "-tags":
			args = append(args, "-tags="+setting.Value)
		}
	}
	command := exec.Command("go", append(args, info.Path)...)
	command.Env = env
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -deps %s: %w: %s", info.Path, err, stderr.Bytes())
	}
	var packages []pkg
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list -deps %s: %w", info.Path, err)
		}
		packages = append(packages, p)
	}
}

// sameModules fails unless works are the modules that the program says it is made of.
func sameModules(info *debug.BuildInfo, works []work) error {
	said := map[string]string{}
	for _, module := range info.Deps {
		for module.Replace != nil {
			module = module.Replace
		}
		said[module.Path] = module.Version
	}
	found := map[string]string{}
	for _, w := range works {
		found[w.name] = w.version
	}
	for name, version := range said {
		if found[name] != version {
			return fmt.Errorf("it was built with %s %s, and this checkout has %q: build it again", name, version, found[name])
		}
	}
	for name := range found {
		if _, ok := said[name]; !ok {
			return fmt.Errorf("it was built without %s, which this checkout would link: build it again", name)
		}
	}
	return nil
}
