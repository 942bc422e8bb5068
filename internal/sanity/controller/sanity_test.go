package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

const suiteName = "csi-sanity"

// passing is how many specs of csi-sanity there are for the Identity and Controller services, without
// those below.
const passing = 53

// skipped are the specs of the Controller service that skip themselves: for VolumeAttributesClasses, which
// are not offered, for a limit of attachments to a node, which an array does not have, and one that
// csi-sanity itself leaves out.
var skipped = []string{
	"Controller Service [Controller Server] ControllerPublishVolume should fail when publishing more volumes than the node max attach limit",
	"Controller Service [Controller Server] CreateVolume should create volume with a volume attribute class",
	"Controller Service [Controller Server] CreateVolume should not create volume with an invalid volume attribute class",
	"Controller Service [Controller Server] ListVolumes pagination should detect volumes added between pages " +
		"and accept tokens when the last volume from a page is deleted",
	"ModifyVolume [Controller Server] should fail if no volume id is given",
	"ModifyVolume [Controller Server] should fail if specified mutable parameters are not supported by the volume",
	"ModifyVolume [Controller Server] should fail if volume does not exist",
	"ModifyVolume [Controller Server] should fail to modify a volume created with a volume attribute class " +
		"if new mutable parameters are not supported by volume",
	"ModifyVolume [Controller Server] should modify a volume created with a volume attribute class",
	"ModifyVolume [Controller Server] should modify a volume created without a volume attribute class",
}

// notTested begins the names of the specs that are left out: the node service only stands in here, and
// groups of snapshots are not offered.
var notTested = []string{"Node Service ", "GroupController Service "}

// TestSanity can run once in a process: ginkgo allows no more.
func TestSanity(t *testing.T) {
	config := sanity.NewTestConfig()
	config.TargetPath, config.StagingPath = t.TempDir()+"/target", t.TempDir()+"/staging"
	specs := sanity.GinkgoTest(&config)
	conn := start(t)
	specs.Conn, specs.ControllerConn = conn, conn
	gomega.RegisterFailHandler(ginkgo.Fail)
	var report ginkgo.Report
	ginkgo.ReportAfterSuite("keep the report", func(r ginkgo.Report) { report = r })
	suite, reporter := ginkgo.GinkgoConfiguration()
	for _, name := range notTested {
		suite.SkipStrings = append(suite.SkipStrings, "^"+suiteName+" "+name)
	}
	reporter.NoColor = true
	ginkgo.RunSpecs(t, suiteName, suite, reporter)
	checkSpecs(t, report)
}

// checkSpecs makes sure that what should have run did: for ginkgo a suite that skips everything has
// passed.
func checkSpecs(t *testing.T, report ginkgo.Report) {
	t.Helper()
	passed := 0
	var notRun []string
	for _, spec := range report.SpecReports {
		name := spec.FullText()
		switch {
		case spec.LeafNodeType != types.NodeTypeIt:
		case slices.ContainsFunc(notTested, func(start string) bool { return strings.HasPrefix(name, start) }):
		case spec.State == types.SpecStatePassed:
			passed++
		case spec.State == types.SpecStateSkipped, spec.State == types.SpecStatePending:
			notRun = append(notRun, name)
		default:
			t.Errorf("%s: %s", name, spec.State)
		}
	}
	if passed != passing {
		t.Errorf("%d specs for the Identity and Controller services passed, expected %d", passed, passing)
	}
	slices.Sort(notRun)
	if !slices.Equal(notRun, skipped) {
		t.Errorf("these specs were skipped:\n%s\nexpected:\n%s", strings.Join(notRun, "\n"), strings.Join(skipped, "\n"))
	}
}
