package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A message is a text in the source that may become, or be a part of, what a user reads.
type message struct {
	// text has … in the place of each verb of its format, and of each part that is no constant.
	text string
	file string
	line int
}

func (m message) String() string { return fmt.Sprintf("%s:%d: %s", m.file, m.line, m.text) }

// notShown are the calls whose texts are no messages: they are logged, or are help and layout.
var notShown = regexp.MustCompile(`^(Info|V|WithValues|Debug|Fprint|Fprintf|Fprintln|Print|Printf|Println|MustCompile|Set|Add|Log|Logf|` +
	`(String|StringArray|Bool|Int|Int64|Float64|Duration|StringSlice)(Var)?P?|durationVar|panic|NewDesc|NewTable|Help)$`)

// wordOf is a word of a text; verbs are none.
var (
	verb   = regexp.MustCompile(`%[-+#0]*[0-9]*(\.[0-9]+)?(\[\d+\])?[a-zA-Z]`)
	wordOf = regexp.MustCompile(`[A-Za-z]{2,}`)
)

// isUsage are the fields with the usage of a verb and with what a column or a metric is, which are shown as they are asked for.
var isUsage = regexp.MustCompile(`^(Use|Short|Long|Example|Description|Help)$`)

// noMessage are texts that no user meets as a message: those without a blank, such as names of headers; usage; scripts;
// a field of a Config that is missing, which is a defect that the first test of the program shows.
var noMessage = regexp.MustCompile(`^\S+$|^\S+ \S+$|^Examples:|Examples: |^[#{]|^HTTP/|\bConfig\.|\bConfig is missing|[A-Za-z]Config\.|` +
	`it does not know$|^text/|filename=|^quantity\(|<!doctype|^">|^[a-z]+: [A-Z]\w+( or [A-Z]\w+)* is missing`)

// leastWords is how many words a text has that says something by itself. With fewer it is a name, or says what was
// tried, before a colon and the message.
const leastWords = 3

// messagesOf returns the texts of at least leastWords words in the Go files of a directory, tests excepted.
func messagesOf(root, dir string) ([]message, error) {
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var found []message
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		name := filepath.Join(dir, filepath.Base(path))
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				return !isNotShown(n)
			case *ast.Field, *ast.ImportSpec:
				return false
			case *ast.KeyValueExpr:
				key, ok := n.Key.(*ast.Ident)
				return !ok || !isUsage.MatchString(key.Name)
			case ast.Expr:
				text, ok := constant(n)
				if !ok {
					return true
				}
				if text = placeholders(text); len(wordOf.FindAllString(text, -1)) >= leastWords && !noMessage.MatchString(text) {
					found = append(found, message{text: text, file: name, line: files.Position(n.Pos()).Line})
				}
				return false
			}
			return true
		})
	}
	slices.SortStableFunc(found, func(a, b message) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line)) })
	return found, nil
}

// isNotShown reports whether the texts in a call are no messages. Error with more than one argument is a logger's.
func isNotShown(call *ast.CallExpr) bool {
	name := ""
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		name = fun.Sel.Name
		if x, ok := fun.X.(*ast.Ident); name == "Error" && (!ok || x.Name != "status" && x.Name != "resource") {
			return true
		}
	}
	return notShown.MatchString(name)
}

// constant returns a string constant: a literal, or literals and other things that are added, for which there is a verb.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, isLeft := constant(e.X)
		right, isRight := constant(e.Y)
		if !isLeft {
			left = "%s"
		}
		if !isRight {
			right = "%s"
		}
		return left + right, isLeft || isRight
	}
	return "", false
}

// placeholders puts … in the place of each verb, and takes away what wraps another error.
func placeholders(text string) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
	for before := ""; before != text; {
		before = text
		text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "%w: "), "%w; "), ": %w")
	}
	const percent = "\x00"
	return strings.ReplaceAll(verb.ReplaceAllString(strings.ReplaceAll(text, "%%", percent), "…"), percent, "%")
}
