package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMessagesOf: what is a message of a source, and what is not.
func TestMessagesOf(t *testing.T) {
	dir := t.TempDir()
	source := `package p
var errGone = errors.New("the volume is gone")
func f() error {
	log.Info("this is only logged")
	log.Error(err, "this is only logged too")
	flags.StringVar(&x, "name", "", "this is the usage of a flag")
	v := &cobra.Command{Short: "this is the usage of a verb"}
	header.Set("Content-Type", "text/plain; charset=utf-8")
	_ = "app.kubernetes.io/managed-by"
	w.send("application/json")
	_ = errors.New("p: Config.Volumes is missing")
	_ = "two words"
	refuse("field", "is none of " + names + ", as it has to be")
	return fmt.Errorf("%w: volume %s of %d%% is at %.300q: %w", errGone, id, n, path, err)
}
`
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	const ofATest = "package p\nvar x = errors.New(\"this is of a test\")\n"
	if err := os.WriteFile(filepath.Join(dir, "p_test.go"), []byte(ofATest), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := messagesOf(dir, ".")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range found {
		texts = append(texts, m.text)
	}
	want := []string{"the volume is gone", "is none of …, as it has to be", "volume … of …% is at …"}
	if !slices.Equal(texts, want) {
		t.Errorf("the messages are %q, want %q", texts, want)
	}
}

// TestKindsAreOfWhatIsThere: each kind has messages, and no directory is named that is not there.
func TestKindsAreOfWhatIsThere(t *testing.T) {
	found, err := messagesByKind(root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range kinds {
		if len(found[&kinds[i]]) == 0 {
			t.Errorf("there are no messages of the kind %q", kinds[i].title)
		}
		for _, from := range kinds[i].from {
			if _, err := os.Stat(filepath.Join(root, from)); err != nil {
				t.Errorf("the kind %q: %v", kinds[i].title, err)
			}
		}
	}
	for dir, reason := range noUsers {
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil || reason == "" {
			t.Errorf("noUsers has %s for the reason %q: %v", dir, reason, err)
		}
	}
}

// kubernetes are messages on the page that are not Katbox': Kubernetes, its kubelet and OpenShift say them.
var kubernetes = []string{
	"violates PodSecurity", "insufficient quota to match these scopes", "unable to validate against any security context constraint",
	"hostPath type check failed", "is not a shared or slave mount", "ErrImagePull", "Terminating", "DiscoveryFailed",
	"driver name katbox.csi.paypal.com not found in the list of registered CSI drivers",
}

// TestTroubleshootingQuotesTheSource: each message of the tables in troubleshooting.md is one of the source, or of
// Kubernetes.
func TestTroubleshootingQuotesTheSource(t *testing.T) {
	found, err := messagesByKind(root)
	if err != nil {
		t.Fatal(err)
	}
	var source []string
	for _, texts := range found {
		source = append(source, texts...)
	}
	page := read(t, troubleshootingFile)
	// A cell ends at a bar without a backslash before it.
	row, quote := regexp.MustCompile(`^\| ((?:[^|\\]|\\.)*) \|`), regexp.MustCompile("`([^`]+)`")
	count, isTable := 0, false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| message |") {
			isTable = true
			continue
		} else if !strings.HasPrefix(line, "|") {
			isTable = false
		}
		cell := row.FindStringSubmatch(line)
		if !isTable || cell == nil {
			continue
		}
		quotes := quote.FindAllStringSubmatch(cell[1], -1)
		if quotes == nil && !strings.HasPrefix(cell[1], "no message") {
			t.Errorf("%s has a row that quotes no message: %s", troubleshootingFile, cell[1])
		}
		for _, q := range quotes {
			count++
			quoted := strings.ReplaceAll(q[1], `\|`, "|")
			isHere := func(text string) bool { return strings.Contains(text, quoted) }
			if !slices.Contains(kubernetes, quoted) && !slices.ContainsFunc(source, isHere) {
				t.Errorf("%s quotes %q, which is no message of the source any more", troubleshootingFile, quoted)
			}
		}
	}
	if count < 70 {
		t.Errorf("only %d messages were found on %s", count, troubleshootingFile)
	}
}

// reasonCalls are the calls that make an event, and which of their arguments is its reason.
var reasonCalls = map[string]int{"Event": 2, "tell": 1, "warn": 1, "tellBoth": 1, "warnPool": 1}

// TestEventsAreExplained: troubleshooting.md has the reason of each event that the controller makes.
func TestEventsAreExplained(t *testing.T) {
	page := read(t, troubleshootingFile)
	var paths []string
	for _, pattern := range []string{"actors/pools/*.go", "actors/pools/*/*.go"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	reasons := stateNames(t)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if at, known := reasonCalls[nameOf(selector, ok)]; known && at < len(call.Args) {
				if text, ok := constant(call.Args[at]); ok {
					reasons = append(reasons, text)
				}
			}
			return true
		})
	}
	if len(reasons) < 30 {
		t.Errorf("only the reasons %q were found", reasons)
	}
	for _, reason := range reasons {
		if !strings.Contains(page, "`"+reason+"`") {
			t.Errorf("%s does not explain the event %s", troubleshootingFile, reason)
		}
	}
}

func nameOf(selector *ast.SelectorExpr, ok bool) string {
	if !ok {
		return ""
	}
	return selector.Sel.Name
}

// stateNames are the reasons that are constants: the states of pools and classes, and how what was retained ended.
func stateNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for path, prefix := range map[string]string{
		"internal/model/v1alpha1/pool.go": `PoolState`, "internal/model/v1alpha1/poolclass.go": `ClassState`,
		"internal/model/pools/afterlife.go": `End`,
	} {
		for _, found := range regexp.MustCompile(`(?m)^\s+\w+\s+`+prefix+`\s+= "(\w+)"$`).FindAllStringSubmatch(read(t, path), -1) {
			names = append(names, found[1])
		}
	}
	return names
}
