// Package points reads the source for crash points and for effects that are
// none. It is for tests.
package points

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// effects are the functions that change a file system, the mounts or the records,
// by package. What is not in here and does so has to be added.
var effects = map[string][]string{
	"os": {
		"Chmod", "Chown", "Create", "Link", "Mkdir", "MkdirAll", "MkdirTemp", "Remove", "RemoveAll", "Rename", "Symlink", "Truncate", "WriteFile",
	},
	"unix": {
		"Chmod", "Chown", "Fallocate", "Fchmod", "Fchmodat", "Fchown", "Fsync", "Fsetxattr", "Ftruncate", "IoctlSetInt", "IoctlSetPointerInt", "Link", "Linkat",
		"Mkdir", "Mkdirat", "Mknod", "Mount", "MountSetattr", "MoveMount", "Rename", "Renameat", "Renameat2", "Rmdir", "Symlink", "Unlink", "Unlinkat", "Unmount",
		"SYS_UNLINKAT", "SYS_RENAMEAT2", "SYS_MKDIRAT", "FS_IOC_SETFLAGS",
	},
	// Of an open file, whatever has it.
	"file": {"Truncate", "WriteAt"},
	// Whatever the database's name is.
	"bolt": {"Update", "Batch"},
}

// Source is what was found in the source.
type Source struct {
	// Points are the names of the effects that are crash points, sorted. Each
	// stands for two points, before and after it.
	Points []string
	// Naked are the effects that are none, by place: "file:line call".
	Naked []string
}

// Read reads the Go files below root, tests and the tools for tests left out.
func Read(root string, leftOut ...string) (Source, error) {
	var s Source
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains(leftOut, rel) || rel != "." && strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(rel, ".go"), strings.HasSuffix(rel, "_test.go"):
			return nil
		}
		return s.file(path, rel)
	})
	slices.Sort(s.Points)
	return s, err
}

func (s *Source) file(path, rel string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var wrong error
	ast.Inspect(file, func(n ast.Node) bool {
		if name, ok := around(n); ok {
			if slices.Contains(s.Points, name) || name == "" {
				wrong = fmt.Errorf("%s: the point %q has no name of its own", files.Position(n.Pos()), name)
			}
			s.Points = append(s.Points, name)
			return false // what is in there is covered
		}
		if call, ok := effect(n); ok {
			s.Naked = append(s.Naked, fmt.Sprintf("%s:%d %s", rel, files.Position(n.Pos()).Line, call))
		}
		return true
	})
	return wrong
}

// around returns the name of a call of crashpoint.Around; it is empty if that is
// no constant.
func around(n ast.Node) (name string, ok bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return "", false
	}
	if where, what := selector(call.Fun); where != "crashpoint" || what != "Around" {
		return "", false
	}
	if constant, ok := call.Args[0].(*ast.BasicLit); ok {
		name, _ = strconv.Unquote(constant.Value) // the parser has seen to it that it is one
	}
	return name, true
}

func effect(n ast.Node) (string, bool) {
	e, ok := n.(ast.Expr)
	if !ok {
		return "", false
	}
	where, what := selector(e)
	return where + "." + what, slices.Contains(effects[where], what)
}

// selector takes "x.y" and "a.x.y" apart into x and y.
func selector(e ast.Expr) (where, what string) {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	switch x := s.X.(type) {
	case *ast.Ident:
		return x.Name, s.Sel.Name
	case *ast.SelectorExpr:
		return x.Sel.Name, s.Sel.Name
	}
	return "", s.Sel.Name
}
