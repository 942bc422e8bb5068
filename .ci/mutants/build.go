package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// goPackage is what "go list" says of a package.
type goPackage struct {
	ImportPath, Dir, Export, Name string
	GoFiles                       []string
}

// list asks for packages, and for all that these import.
func list(ctx context.Context, root string, patterns []string) (wanted []goPackage, exports map[string]string, err error) {
	names, err := output(ctx, root, "go", append([]string{"list"}, patterns...)...)
	if err != nil {
		return nil, nil, err
	}
	mine := make(map[string]bool)
	for name := range strings.FieldsSeq(string(names)) {
		mine[name] = true
	}
	fields := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,Name,GoFiles"}
	text, err := output(ctx, root, "go", append(fields, patterns...)...)
	if err != nil {
		return nil, nil, err
	}
	exports = make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return wanted, exports, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("understand what go list says: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if mine[p.ImportPath] {
			wanted = append(wanted, p)
		}
	}
}

// command ends with ctx as one does that a person interrupts: go removes what it has made.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd
}

func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := command(ctx, dir, name, args...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return nil, errInterrupted
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args[:min(3, len(args))], " "), err)
	}
	return text, nil
}

// instrument writes the packages with all their mutants below work, and an overlay that puts them
// in the place of the tree's files, which stay as they are.
func instrument(ctx context.Context, root, work string, patterns []string) (mutants []mutant, overlay string, err error) {
	packages, exports, err := list(ctx, root, patterns)
	if err != nil {
		return nil, "", err
	}
	replace := make(map[string]string)
	write := func(path string, text []byte) error {
		copied := filepath.Join(work, "source", strings.ReplaceAll(strings.TrimPrefix(path, root+"/"), "/", "__"))
		replace[path] = copied
		return os.WriteFile(copied, text, 0o644)
	}
	if err := os.MkdirAll(filepath.Join(work, "source"), 0o755); err != nil {
		return nil, "", err
	}
	for _, p := range packages {
		if err := mutatePackage(p, exports, &mutants, write); err != nil {
			return nil, "", fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	for _, p := range packages {
		if err := write(filepath.Join(p.Dir, "mutants_of_this_run.go"), fmt.Appendf(nil, runtime, p.Name, len(mutants))); err != nil {
			return nil, "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, "", err
	}
	overlay = filepath.Join(work, "overlay.json")
	return mutants, overlay, os.WriteFile(overlay, text, 0o644)
}

func mutatePackage(p goPackage, exports map[string]string, mutants *[]mutant, write func(string, []byte) error) error {
	fset := token.NewFileSet()
	sources := make(map[*ast.File][]byte)
	var files []*ast.File
	for _, name := range p.GoFiles {
		source, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
		sources[file] = source
	}
	info := &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object),
	}
	export := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", export)}
	self, err := config.Check(p.ImportPath, fset, files, info)
	if err != nil {
		return err
	}
	m := &mutator{fset: fset, pkg: p.ImportPath, info: info, self: self, mutants: mutants}
	for _, file := range files {
		text, n := m.rewrite(file, sources[file])
		if n == 0 {
			continue
		}
		if err := write(fset.Position(file.Pos()).Filename, text); err != nil {
			return err
		}
	}
	return nil
}

// compile makes the test binary of a package.
func compile(ctx context.Context, root, overlay, pkg, to string) error {
	cmd := command(ctx, root, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", to, pkg)
	text, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return fmt.Errorf("compile the tests of %s: %w\n%s", pkg, err, text)
	}
	return nil
}
