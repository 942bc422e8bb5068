// Package specs runs csi-sanity and says which of its specs must have run: for ginkgo a suite that skips
// everything has passed.
package specs

import (
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

const suiteName = "csi-sanity"

// Specs are those that a service has to pass.
type Specs struct {
	// Passing is how many pass, without those below.
	Passing int
	// Skipped are the names of those that skip themselves, sorted: for what the service does not offer.
	Skipped []string
	// NotTested begins the names of those that are left out: they are for services that only stand in, if that.
	NotTested []string
}

// Run runs csi-sanity, which is set up, and checks what has run. A spec that fails is a failure of t. It can run
// once in a process: ginkgo allows no more.
func (s Specs) Run(t *testing.T) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	var report ginkgo.Report
	ginkgo.ReportAfterSuite("keep the report", func(r ginkgo.Report) { report = r })
	suite, reporter := ginkgo.GinkgoConfiguration()
	for _, name := range s.NotTested {
		suite.SkipStrings = append(suite.SkipStrings, "^"+suiteName+" "+name)
	}
	reporter.NoColor = true
	ginkgo.RunSpecs(t, suiteName, suite, reporter)
	s.check(t, report)
}

func (s Specs) check(t *testing.T, report ginkgo.Report) {
	t.Helper()
	passed := 0
	var notRun []string
	for _, spec := range report.SpecReports {
		name := spec.FullText()
		switch {
		case spec.LeafNodeType != types.NodeTypeIt:
		case slices.ContainsFunc(s.NotTested, func(start string) bool { return strings.HasPrefix(name, start) }):
		case spec.State == types.SpecStatePassed:
			passed++
		case spec.State == types.SpecStateSkipped, spec.State == types.SpecStatePending:
			notRun = append(notRun, name)
		default:
			t.Errorf("%s: %s", name, spec.State)
		}
	}
	if passed != s.Passing {
		t.Errorf("%d specs passed, expected %d", passed, s.Passing)
	}
	slices.Sort(notRun)
	if !slices.Equal(notRun, s.Skipped) {
		t.Errorf("these specs were skipped:\n%s\nexpected:\n%s", strings.Join(notRun, "\n"), strings.Join(s.Skipped, "\n"))
	}
}
