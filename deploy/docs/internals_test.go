package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPagesForDevelopersNameWhatIsThere: each path, and each name of the code. A name is declared in the file that
// follows it.
func TestPagesForDevelopersNameWhatIsThere(t *testing.T) {
	found, err := filepath.Glob("internals*.md")
	if err != nil || len(found) < 5 {
		t.Fatalf("pages %q, %v", found, err)
	}
	code := declared(t)
	isPath, isName := regexp.MustCompile(`^[a-z0-9.]+/[a-z0-9_./-]+$`), regexp.MustCompile(`^[A-Za-z]\w*(\.[A-Za-z]\w*)*$`)
	paths, names, placed := 0, 0, 0
	for _, page := range append(found, "../../.github/CONTRIBUTING.md") {
		page = filepath.Join("deploy/docs", page)
		text := read(t, page)
		for _, found := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
			switch span := found[1]; {
			case isPath.MatchString(span):
				paths++
				if _, err := os.Stat(filepath.Join(root, span)); err != nil {
					t.Errorf("%s names %s: %v", page, span, err)
				}
			case isName.MatchString(span) && strings.Contains(page, "internals") && !isTest.MatchString(span):
				names++
				if code[span] == nil {
					t.Errorf("%s names %s, and nothing is declared with that name", page, span)
				}
			}
		}
		for _, found := range regexp.MustCompile("`([A-Za-z][\\w.]*)`,?\\s\\(?`([a-z0-9_./-]+\\.(?:go|js))`").FindAllStringSubmatch(text, -1) {
			placed++
			if !code[found[1]][found[2]] {
				t.Errorf("%s says that %s is in %s, and it is not declared there", page, found[1], found[2])
			}
		}
	}
	if paths < 100 || names < 100 || placed < 50 {
		t.Errorf("only %d paths and %d names were found, %d of them with their file", paths, names, placed)
	}
}

var isTest = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]`)

// declared returns the files that declare a name: that of a file, a directory or a package, a type, a function, a constant or a
// variable; after a dot that of a method or a field. A package's name may come first: store.Open, volume.Record.Keep.
func declared(t *testing.T) map[string]map[string]bool {
	t.Helper()
	files, script := map[string]map[string]bool{}, regexp.MustCompile(`(?m)^(?:export )?(?:async )?(?:function|class|const) (\w+)`)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "node_modules" || name == "testdata" || name == ".git") {
			return fs.SkipDir
		}
		file := strings.TrimPrefix(path, root+"/")
		add := func(parts ...string) {
			name := strings.Join(parts, ".")
			if files[name] == nil {
				files[name] = map[string]bool{}
			}
			files[name][file] = true
		}
		add(entry.Name())
		switch {
		case strings.HasSuffix(path, ".js"):
			source, err := os.ReadFile(path)
			for _, found := range script.FindAllStringSubmatch(string(source), -1) {
				add(found[1])
			}
			return err
		case !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		add(source.Name.Name)
		inPackage := func(parts ...string) {
			add(parts...)
			add(append([]string{source.Name.Name}, parts...)...)
		}
		for _, decl := range source.Decls {
			declaredIn(decl, inPackage)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// declaredIn calls add with the names of one declaration.
func declaredIn(decl ast.Decl, add func(parts ...string)) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name.Name)
			return
		}
		of := d.Recv.List[0].Type
		if pointer, ok := of.(*ast.StarExpr); ok {
			of = pointer.X
		}
		if generic, ok := of.(*ast.IndexExpr); ok {
			of = generic.X
		}
		if of, ok := of.(*ast.Ident); ok {
			add(of.Name, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range s.Names {
					add(name.Name)
				}
			case *ast.TypeSpec:
				add(s.Name.Name)
				fields := &ast.FieldList{}
				switch is := s.Type.(type) {
				case *ast.StructType:
					fields = is.Fields
				case *ast.InterfaceType:
					fields = is.Methods
				}
				for _, field := range fields.List {
					for _, name := range field.Names {
						add(s.Name.Name, name.Name)
					}
				}
			}
		}
	}
}
