package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

const source = `package p

import "errors"

const limit = 3

type state struct{ open bool }

func close(s *state, n int, names [2]string) (ok bool, err error) {
	for i := 0; i < n && s.open; i++ {
		if names[0] == "" || n > limit {
			return true, errors.New("none")
		}
		s.open = false
	}
	defer func() { n++ }()
	return s.open, nil
}
`

// check types a file and says what is wrong with it.
func check(t *testing.T, fset *token.FileSet, text string) (*ast.File, *types.Package, *types.Info, error) {
	t.Helper()
	file, err := parser.ParseFile(fset, "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, nil, err
	}
	info := &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object),
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	self, err := config.Check("p", fset, []*ast.File{file}, info)
	return file, self, info, err
}

// TestRewrite: each sort of change is made, and what comes of it compiles.
func TestRewrite(t *testing.T) {
	fset := token.NewFileSet()
	file, self, info, err := check(t, fset, source)
	if err != nil {
		t.Fatal(err)
	}
	var mutants []mutant
	m := &mutator{fset: fset, pkg: "p", info: info, self: self, mutants: &mutants}
	text, n := m.rewrite(file, []byte(source))
	var got []string
	for _, one := range mutants {
		got = append(got, fmt.Sprintf("%d %s", one.pos.Line, one.what))
	}
	want := []string{
		"10 (0)+1",
		"10 for false: i < n && s.open",
		"10 instead: i <= n",
		"10 without the term: i < n",
		"10 without the term: s.open",
		"11 (0)+1",
		"11 (limit)+1",
		`11 if false: names[0] == "" || n > limit`,
		`11 if true: names[0] == "" || n > limit`,
		"11 instead: n >= limit",
		`11 without the term: names[0] == ""`,
		"11 without the term: n > limit",
		`12 return nil: errors.New("none")`,
		"12 return not: true",
		"14 drop: s.open = false",
		"14 not: false",
		"16 drop: defer func() { n++ }()",
		"16 drop: n++",
		"17 return not: s.open",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || n != len(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	helpers := `
func mutant(int) bool { return false }
func mutantNil(_ int, err error) error { return err }
func mutantPick[T any](_ int, as, _ T) T { return as }
func mutantZero[T any](_ int, v T) T { return v }
`
	if _, _, _, err := check(t, token.NewFileSet(), string(text)+helpers); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
}
