//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// exclusion is a kind of specs that does not run.
type exclusion struct {
	// Specs is what their names have.
	Specs *regexp.Regexp `json:"specs"`
	// Reason is why.
	Reason string `json:"reason"`
	// Protocol is the one that it is about; empty for both.
	Protocol string `json:"protocol"`
}

type exclusions []exclusion

// readExclusions reads a list of them.
func readExclusions(path string) (exclusions, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list exclusions
	if err := yaml.UnmarshalStrict(content, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, e := range list {
		if e.Specs == nil || e.Reason == "" {
			return nil, fmt.Errorf("%s: each part needs specs and a reason, unlike %+v", path, e)
		}
	}
	return list, nil
}

// of returns those for a protocol.
func (list exclusions) of(protocol string) exclusions {
	return slices.DeleteFunc(slices.Clone(list), func(e exclusion) bool { return e.Protocol != "" && e.Protocol != protocol })
}

// find returns the first that is about a spec, -1 for none.
func (list exclusions) find(name string) int {
	return slices.IndexFunc(list, func(e exclusion) bool { return e.Specs.MatchString(name) })
}

// spec is what ginkgo's report has of one.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	Failure                 struct{ Message string }
}

// name is what ginkgo, too, compares with the regular expressions: the first word is the suite's.
func (s spec) name() string {
	return strings.Join(slices.Concat([]string{"storage"}, s.ContainerHierarchyTexts, []string{s.LeafNodeText}), " ")
}

var patternOfSpec = regexp.MustCompile(`\[Testpattern: ([^\]]*)\]`)

// pattern is the kind of volume that a spec is about.
func (s spec) pattern() string {
	if found := patternOfSpec.FindStringSubmatch(s.name()); found != nil {
		return strings.TrimSpace(found[1])
	}
	return "none"
}

// outcome is how a spec ended: that it passed, that it failed, or that it did not run to its end. reason is empty for the first.
func (s spec) outcome() (outcome specOutcome, reason string) {
	reason, _, _ = strings.Cut(s.Failure.Message, "\n")
	switch {
	case s.State == "passed":
		return specPassed, ""
	case s.State == "skipped" && reason == "":
		return specSkipped, "not reached in time"
	case s.State == "skipped", s.State == "pending":
		return specSkipped, reason
	case s.State == "interrupted", s.State == "timedout" && strings.HasPrefix(reason, "A suite timeout"):
		return specSkipped, "not finished in time"
	default:
		return specFailed, fmt.Sprintf("%s: %s", s.State, reason)
	}
}

type specOutcome int

const (
	specPassed specOutcome = iota
	specFailed
	specSkipped
	specOutcomes
)

// specCounts are how many specs ended in which way.
type specCounts [specOutcomes]int

func (c specCounts) selected() int { return c[specPassed] + c[specFailed] + c[specSkipped] }

// specResults are the results of the specs of one protocol.
type specResults struct {
	all      specCounts
	patterns map[string]*specCounts
	failed   []string
	// skipped and leftOut are how many specs did not run, by the reason.
	skipped, leftOut map[string]int
	// stale are exclusions of what there is not.
	stale []string
}

func newSpecResults(specs []spec, exclusions exclusions, focus *regexp.Regexp) *specResults {
	r := &specResults{patterns: map[string]*specCounts{}, skipped: map[string]int{}, leftOut: map[string]int{}}
	used := make([]bool, len(exclusions))
	for _, s := range specs {
		if s.LeafNodeType != "It" {
			continue
		}
		name := s.name()
		for i, e := range exclusions {
			used[i] = used[i] || e.Specs.MatchString(name)
		}
		if i := exclusions.find(name); i >= 0 {
			r.leftOut[exclusions[i].Specs.String()+": "+exclusions[i].Reason]++
		} else if focus.MatchString(name) {
			r.add(s)
		}
	}
	for i, e := range exclusions {
		if !used[i] {
			r.stale = append(r.stale, e.Specs.String())
		}
	}
	return r
}

// add adds a spec that was selected.
func (r *specResults) add(s spec) {
	counts := r.patterns[s.pattern()]
	if counts == nil {
		counts = &specCounts{}
		r.patterns[s.pattern()] = counts
	}
	outcome, reason := s.outcome()
	counts[outcome]++
	r.all[outcome]++
	switch outcome {
	case specFailed:
		r.failed = append(r.failed, fmt.Sprintf("%s: %s", s.name(), reason))
	case specSkipped:
		r.skipped[reason]++
	}
}

func (r *specResults) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, c specCounts) {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t  %s\n", c.selected(), c[specPassed], c[specFailed], c[specSkipped], name)
	}
	fmt.Fprintln(w, "selected\tpassed\tfailed\tskipped\t  pattern")
	for _, name := range slices.Sorted(maps.Keys(r.patterns)) {
		row(name, *r.patterns[name])
	}
	row("all", r.all)
	w.Flush()
	for _, name := range r.failed {
		fmt.Fprintf(&text, "  failed: %s\n", name)
	}
	for _, list := range []struct {
		what    string
		reasons map[string]int
	}{{"skipped", r.skipped}, {"left out", r.leftOut}} {
		for _, reason := range slices.Sorted(maps.Keys(list.reasons)) {
			fmt.Fprintf(&text, "  %d %s: %s\n", list.reasons[reason], list.what, reason)
		}
	}
	return text.String()
}
