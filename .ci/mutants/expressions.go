package main

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// expression changes one, and reports whether to look at what is in it.
func (m *mutator) expression(e ast.Expr) bool {
	tv, ok := m.info.Types[e]
	if m.fixed[e] {
		return false
	}
	if ok && tv.Value != nil {
		m.constant(e, tv)
		return false
	}
	b, ok := e.(*ast.BinaryExpr)
	if !ok {
		m.extreme(e)
		return true
	}
	switch b.Op {
	case token.LAND:
		m.term(b.X, "(mutant(%d) || (")
		m.term(b.Y, "(mutant(%d) || (")
	case token.LOR:
		m.term(b.X, "(!mutant(%d) && (")
		m.term(b.Y, "(!mutant(%d) && (")
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		m.boundary(b)
	case token.ADD, token.SUB, token.MUL, token.QUO, token.REM:
		m.arithmetic(b)
	}
	return true
}

// term leaves out one side of && or ||, but no chain as a whole.
func (m *mutator) term(e ast.Expr, before string) {
	if b, ok := e.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
		return
	}
	if isPlain(m.info.TypeOf(e), types.IsBoolean) {
		m.add(e, "without the term: "+m.text(e), before, "))")
	}
}

func (m *mutator) boundary(b *ast.BinaryExpr) {
	if m.calls(b) || !isPlain(m.info.TypeOf(b), types.IsBoolean) {
		return
	}
	other := map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}[b.Op]
	instead := m.text(b.X) + " " + other + " " + m.text(b.Y)
	m.add(b, "instead: "+instead, "(mutant(%d) && ("+instead+") || !mutant(%d) && (", "))")
}

func (m *mutator) arithmetic(b *ast.BinaryExpr) {
	basic, ok := m.info.TypeOf(b).Underlying().(*types.Basic)
	if !ok || basic.Info()&types.IsNumeric == 0 || m.calls(b) {
		return
	}
	other := map[token.Token]string{token.ADD: "-", token.SUB: "+", token.MUL: "+", token.QUO: "*", token.REM: "*"}[b.Op]
	instead := m.text(b.X) + " " + other + " " + m.text(b.Y)
	m.add(b, "instead: "+instead, "mutantPick(%d, ", ", "+instead+")")
}

// extreme takes the larger for the smaller, and the other way around.
func (m *mutator) extreme(e ast.Expr) {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return
	}
	i, ok := call.Fun.(*ast.Ident)
	if !ok || i.Name != "min" && i.Name != "max" || m.info.Uses[i] == nil || m.info.Uses[i].Pkg() != nil {
		return
	}
	if slices.ContainsFunc(call.Args, m.calls) {
		return
	}
	instead := map[string]string{"min": "max", "max": "min"}[i.Name] + m.text(call)[3:]
	m.add(call, "instead: "+instead, "mutantPick(%d, ", ", "+instead+")")
}

// calls reports whether an expression calls something that is not a conversion or a builtin:
// it is not to happen twice.
func (m *mutator) calls(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if tv := m.info.Types[call.Fun]; !tv.IsType() && !tv.IsBuiltin() {
				found = true
			}
		}
		if u, ok := n.(*ast.UnaryExpr); ok && u.Op == token.ARROW {
			found = true
		}
		return !found
	})
	return found
}

// constant changes a value that is known when compiling: one more of a small number, ten times a
// large one, the opposite of a bool, and flags of the kernel one by one.
func (m *mutator) constant(e ast.Expr, tv types.TypeAndValue) {
	name, ok := m.typeName(tv.Type)
	switch {
	case !ok:
	case tv.Value.Kind() == constant.Bool:
		if isPlain(tv.Type, types.IsBoolean) {
			m.add(e, "not: "+m.text(e), "(mutant(%d) != ", ")")
		}
	case tv.Value.Kind() != constant.Int || !isPlain(tv.Type, types.IsInteger):
	case m.ofKernel(e):
		m.flags(e, name)
	default:
		v, exact := constant.Int64Val(tv.Value)
		if !exact || strings.HasPrefix(m.text(e), "0o") {
			return
		}
		instead := "+1"
		if v > 16 || v < -16 {
			instead = "*10"
		}
		if v > 1<<58 || v < -1<<58 || name != "int64" && name != "int" && name != "time.Duration" && v > 1<<10 {
			return
		}
		m.add(e, "("+m.text(e)+")"+instead, name+"(mutantPick(%d, int64(", "), (int64("+m.text(e)+"))"+instead+"))")
	}
}

// ofKernel reports whether a number is one of the kernel's.
func (m *mutator) ofKernel(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if i, ok := s.X.(*ast.Ident); ok {
				if p, ok := m.info.Uses[i].(*types.PkgName); ok {
					path := p.Imported().Path()
					found = found || path == "golang.org/x/sys/unix" || path == "os" || path == "syscall"
				}
			}
		}
		return !found
	})
	return found
}

func (m *mutator) flags(e ast.Expr, name string) {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.OR {
		for _, side := range []ast.Expr{b.X, b.Y} {
			if inner, ok := side.(*ast.BinaryExpr); ok && inner.Op == token.OR {
				m.flags(side, name)
				continue
			}
			if v, exact := constant.Int64Val(m.info.Types[side].Value); exact && v > 0 && v < 1<<31 {
				m.add(side, "without the flag: "+m.text(side), "mutantPick(%d, "+name+"(", "), 0)")
			}
		}
	}
}

// typeName is how the file calls a type; false if it has no name for it.
func (m *mutator) typeName(t types.Type) (string, bool) {
	known := true
	if b, ok := t.(*types.Basic); ok && b.Info()&types.IsUntyped != 0 {
		return "", b.Kind() == types.UntypedBool
	}
	name := types.TypeString(t, func(p *types.Package) string {
		if p == m.self {
			return ""
		}
		for _, i := range m.file.Imports {
			if strings.Trim(i.Path.Value, `"`) == p.Path() && i.Name == nil {
				return p.Name()
			}
		}
		known = false
		return p.Name()
	})
	return name, known
}

// isPlain reports whether a type's values are those of a basic type, of a kind.
func isPlain(t types.Type, kind types.BasicInfo) bool {
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	if kind == types.IsBoolean {
		b, ok = t.(*types.Basic)
	}
	return ok && b.Info()&kind != 0 && b.Info()&types.IsConstType != 0
}
