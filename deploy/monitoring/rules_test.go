package monitoring

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	labelInText = regexp.MustCompile(`\$labels\.(\w+)`)
	// A pod that does not run has no instance. Of a pool it does not matter which replica speaks of it.
	// Of many nodes there is what they have in common.
	namesNode = regexp.MustCompile(`\{\{ \$labels\.(instance|node|pool|problem) \}\}`)
	alertName = regexp.MustCompile(`alertname="(\w+)"`)
	nodeName  = regexp.MustCompile(`\b(?:instance|node)="([^"]+)"`)
	without   = regexp.MustCompile(`\bwithout \(([^)]*)\)`)
	// sentences are counted by their ends.
	sentenceEnd = regexp.MustCompile(`[.:;](?: |$)`)
)

// TestAlertsSayWhatToDo: they wake a person who has never heard of Katbox.
func TestAlertsSayWhatToDo(t *testing.T) {
	names := map[string]bool{}
	for _, r := range readRules(t) {
		if !strings.HasPrefix(r.Alert, "Katbox") || names[r.Alert] {
			t.Errorf("alert %q has no name of its own that begins with Katbox", r.Alert)
		}
		names[r.Alert] = true
		if severity := r.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s: severity is %q", r.Alert, severity)
		}
		for _, annotation := range []string{"summary", "description", "runbook"} {
			text := r.Annotations[annotation]
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: the %s is not a sentence: %q", r.Alert, annotation, text)
			}
			// An absent daemon has no node.
			if annotation != "runbook" && !strings.Contains(r.Expr, "absent(") && !namesNode.MatchString(text) {
				t.Errorf("%s: the %s does not name the node", r.Alert, annotation)
			}
		}
		if len(sentenceEnd.FindAllString(r.Annotations["runbook"], -1)) < 2 {
			t.Errorf("%s: the runbook is too short to be of help: %q", r.Alert, r.Annotations["runbook"])
		}
	}
}

// TestPages: a person is woken for what is wrong with many nodes, with what there is one of in the cluster, or with a pool
// or certificate, and not for one node.
func TestPages(t *testing.T) {
	// The instance of these is no node: an API server, a replica of the gateway or of the controller.
	notNodes := []string{"KatboxAbsent", "KatboxGatewayUnavailable", "KatboxGatewayCertificateEnds", "KatboxControllerHasNoLeader",
		"KatboxPoolUnreachable", "KatboxArchiveBucketDown", "KatboxOnManyNodes"}
	counted := 0
	for _, r := range readRules(t) {
		page, critical := r.Labels["page"], r.Labels["severity"] == "critical"
		if critical != slices.Contains(notNodes, r.Alert) {
			t.Errorf("%s is %s", r.Alert, r.Labels["severity"])
		}
		if page != "" && (critical || page != "on-many-nodes") {
			t.Errorf("%s is %s and has page: %s", r.Alert, r.Labels["severity"], page)
		}
		if page != "" {
			counted++
		}
	}
	if counted < 10 {
		t.Errorf("only %d alerts are counted by KatboxOnManyNodes", counted)
	}
}

// TestRunbooksAreLinked: GitHub makes an anchor of a heading in lower case.
func TestRunbooksAreLinked(t *testing.T) {
	const page = "https://github.com/katbox/katbox/blob/main/deploy/docs/troubleshooting.md#"
	for _, r := range readRules(t) {
		if got, want := r.Annotations["runbook_url"], page+strings.ToLower(r.Alert); got != want {
			t.Errorf("%s: the runbook's URL is %q, want %s", r.Alert, got, want)
		}
	}
}

// TestTextsUseLabelsThatAreThere: a missing label would be a gap in the text.
func TestTextsUseLabelsThatAreThere(t *testing.T) {
	metrics := gather(t)
	for _, r := range readRules(t) {
		labels := []string{"job", "instance"}
		for _, name := range metricsIn(r.Expr) {
			for label := range metrics[name] {
				if label != "le" && !summedUp(r.Expr, label) {
					labels = append(labels, label)
				}
			}
		}
		for _, m := range made.FindAllStringSubmatch(r.Expr, -1) {
			labels = append(labels, m[1])
		}
		for annotation, text := range r.Annotations {
			for _, m := range labelInText.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(labels, m[1]) {
					t.Errorf("%s: the %s has the label %s, which %s does not have", r.Alert, annotation, m[1], r.Expr)
				}
			}
		}
	}
}

// summedUp reports whether a query sums over all values of a label, which removes it.
func summedUp(expr, label string) bool {
	for _, m := range without.FindAllStringSubmatch(expr, -1) {
		if slices.Contains(identifier.FindAllString(m[1], -1), label) {
			return true
		}
	}
	return false
}

// TestEveryAlertIsTested: in rules_test.yaml it fires on one node and not on another one, and
// not at once if its condition must hold for a while.
func TestEveryAlertIsTested(t *testing.T) {
	type tested struct{ fires, waits, spares bool }
	tests := map[string]tested{}
	for _, test := range readYAML[ruleTests](t, "rules_test.yaml", false).Tests {
		this := tests[test.Name]
		var firing []string
		for _, e := range test.Exprs {
			if m := alertName.FindStringSubmatch(e.Expr); m == nil || m[1] != test.Name {
				t.Errorf("the test of %s asks %s", test.Name, e.Expr)
			}
			this.waits = this.waits || len(e.Samples) == 0
			for _, sample := range e.Samples {
				this.fires = this.fires || strings.Contains(sample.Labels, `alertstate="firing"`)
				firing = append(firing, sample.Labels)
			}
		}
		for _, series := range test.Series {
			m := nodeName.FindStringSubmatch(series.Series)
			this.spares = this.spares || m != nil && !slices.ContainsFunc(firing, func(s string) bool { return strings.Contains(s, m[0]) })
		}
		tests[test.Name] = this
	}
	for _, r := range readRules(t) {
		if this := tests[r.Alert]; !this.fires || !this.spares || !this.waits {
			t.Errorf("rules_test.yaml: %s fires on a node: %t, spares another one: %t, is quiet before: %t", r.Alert, this.fires,
				this.spares, this.waits)
		}
	}
}
