package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// mutant is one change of the source.
type mutant struct {
	n        int
	pkg      string
	pos      token.Position
	function string
	what     string
}

// edit puts text around a piece of a file.
type edit struct {
	from, to      int
	before, after string
}

// mutator finds what can be changed in one package. All mutants are in one binary, which
// asks for each whether it is the active one, so that a package is compiled once.
type mutator struct {
	fset    *token.FileSet
	pkg     string
	info    *types.Info
	self    *types.Package
	mutants *[]mutant

	file     *ast.File
	source   []byte
	base     int
	edits    []edit
	function string
	// results are those of the functions around the node, the innermost last.
	results []*types.Tuple
	// fixed are expressions that have to stay as they are.
	fixed map[ast.Node]bool
}

// rewrite returns the source with all its mutants, and how many there are.
func (m *mutator) rewrite(file *ast.File, source []byte) ([]byte, int) {
	m.file, m.source, m.edits, m.fixed = file, source, nil, make(map[ast.Node]bool)
	m.base = m.fset.File(file.Pos()).Base()
	before := len(*m.mutants)
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			m.function = f.Name.Name
			if f.Recv != nil {
				m.function = strings.TrimPrefix(m.text(f.Recv.List[0].Type), "*") + "." + m.function
			}
			m.results = []*types.Tuple{m.info.Defs[f.Name].Type().(*types.Signature).Results()}
			m.walk(f.Body)
		}
	}
	return m.apply(), len(*m.mutants) - before
}

// apply makes the edits. Where two begin at the same place the longer one is outside.
func (m *mutator) apply() []byte {
	type insertion struct {
		at, order int
		text      string
	}
	outer := slices.Clone(m.edits)
	slices.SortStableFunc(outer, func(a, b edit) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	inner := slices.Clone(outer)
	slices.Reverse(inner)
	slices.SortStableFunc(inner, func(a, b edit) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(b.from, a.from)) })
	var all []insertion
	for i, e := range inner {
		all = append(all, insertion{e.to, i, e.after}) // what ends here comes before what begins here
	}
	for i, e := range outer {
		all = append(all, insertion{e.from, len(inner) + i, e.before})
	}
	slices.SortFunc(all, func(a, b insertion) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
	var out []byte
	done := 0
	for _, i := range all {
		out = append(append(out, m.source[done:i.at]...), i.text...)
		done = i.at
	}
	return append(out, m.source[done:]...)
}

func (m *mutator) offset(p token.Pos) int { return int(p) - m.base }

func (m *mutator) text(n ast.Node) string {
	return string(m.source[m.offset(n.Pos()):m.offset(n.End())])
}

// add makes a mutant of a node. In before and after %d stands for its number.
func (m *mutator) add(n ast.Node, what, before, after string) {
	number := len(*m.mutants)
	if strings.Contains(what, "\n") {
		what = strings.Join(strings.Fields(what), " ")
	}
	if len(what) > 110 {
		what = what[:107] + "..."
	}
	*m.mutants = append(*m.mutants, mutant{number, m.pkg, m.fset.Position(n.Pos()), m.function, what})
	fill := func(s string) string { return strings.ReplaceAll(s, "%d", fmt.Sprint(number)) }
	m.edits = append(m.edits, edit{m.offset(n.Pos()), m.offset(n.End()), fill(before), fill(after)})
}

// walk visits a node and what is in it.
func (m *mutator) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			m.results = append(m.results, m.info.TypeOf(n).(*types.Signature).Results())
			m.walk(n.Body)
			m.results = m.results[:len(m.results)-1]
			return false
		case *ast.GenDecl:
			return n.Tok == token.VAR
		case *ast.ArrayType:
			return false
		case *ast.KeyValueExpr:
			m.walk(n.Value) // the key of an array has to be a constant
			return false
		case *ast.BlockStmt:
			m.statements(n.List)
		case *ast.CaseClause:
			m.statements(n.Body)
		case *ast.CommClause:
			m.statements(n.Body)
		case *ast.IfStmt:
			m.force(n.Cond, "if", true)
		case *ast.ForStmt:
			if n.Cond != nil {
				m.force(n.Cond, "for", false)
			}
		case *ast.SwitchStmt:
			if n.Tag == nil {
				for _, c := range n.Body.List {
					for _, e := range c.(*ast.CaseClause).List {
						m.force(e, "case", true)
					}
				}
			}
		case *ast.ReturnStmt:
			m.returned(n)
		case ast.Expr:
			return m.expression(n)
		}
		return true
	})
}

// statements drops each that the others compile without.
func (m *mutator) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			call, ok := s.X.(*ast.CallExpr)
			if !ok || m.isPanic(call) || m.isLog(call) {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || m.discards(s) {
				continue
			}
		case *ast.BranchStmt:
			if s.Label != nil || s.Tok == token.GOTO || s.Tok == token.FALLTHROUGH {
				continue
			}
		case *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt:
		default:
			continue
		}
		m.add(s, "drop: "+m.text(s), "if !mutant(%d) { ", " }")
	}
}

func (m *mutator) discards(s *ast.AssignStmt) bool {
	for _, e := range s.Lhs {
		if i, ok := e.(*ast.Ident); !ok || i.Name != "_" {
			return false
		}
	}
	_, call := s.Rhs[0].(*ast.CallExpr)
	return !call
}

func (m *mutator) isPanic(call *ast.CallExpr) bool {
	i, ok := call.Fun.(*ast.Ident)
	return ok && i.Name == "panic"
}

// isLog reports whether a call writes a line of the log: no promise is about these.
func (m *mutator) isLog(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	t := m.info.TypeOf(s.X)
	return t != nil && strings.HasSuffix(t.String(), "logr.Logger")
}

// force makes a condition always true, and always false.
func (m *mutator) force(e ast.Expr, where string, both bool) {
	if tv := m.info.Types[e]; tv.Value != nil || !isPlain(tv.Type, types.IsBoolean) {
		return
	}
	if both {
		m.add(e, where+" true: "+m.text(e), "(mutant(%d) || (", "))")
	}
	m.add(e, where+" false: "+m.text(e), "(!mutant(%d) && (", "))")
}

// returned returns nil for an error, and zero or the opposite for the others.
func (m *mutator) returned(s *ast.ReturnStmt) {
	results := m.results[len(m.results)-1]
	if len(s.Results) != results.Len() {
		return // nothing, or a call with several results
	}
	for i, e := range s.Results {
		tv, want := m.info.Types[e], results.At(i).Type()
		switch {
		case tv.IsNil():
		case want.String() == "error":
			m.add(e, "return nil: "+m.text(e), "mutantNil(%d, ", ")")
		case types.IsInterface(want), tv.Value != nil && tv.Value.Kind() != constant.Bool:
		case isPlain(tv.Type, types.IsBoolean):
			m.add(e, "return not: "+m.text(e), "(mutant(%d) != (", "))")
			m.fixed[e] = tv.Value != nil
		case tv.Value == nil && !isEmptyLiteral(e):
			m.add(e, "return zero: "+m.text(e), "mutantZero(%d, ", ")")
		}
	}
}

func isEmptyLiteral(e ast.Expr) bool {
	l, ok := e.(*ast.CompositeLit)
	return ok && len(l.Elts) == 0
}
