package sanity

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/katbox/katbox/internal/roottest"
)

const suiteName = "csi-sanity"

// passing is how many specs of csi-sanity there are for the Identity and Node
// services, without those below.
const passing = 17

// skipped are the specs of the Node service that skip themselves, all of them
// for capabilities that the driver does not report.
var skipped = []string{
	"Node Service NodeExpandVolume should fail when no volume id is provided",
	"Node Service NodeExpandVolume should fail when no volume path is provided",
	"Node Service NodeExpandVolume should fail when volume is not found",
	"Node Service NodeExpandVolume should work if node-expand is called after node-publish",
	"Node Service NodeStageVolume should fail when no staging target path is provided",
	"Node Service NodeStageVolume should fail when no volume capability is provided",
	"Node Service NodeStageVolume should fail when no volume id is provided",
	"Node Service NodeUnstageVolume should fail when no staging target path is provided",
	"Node Service NodeUnstageVolume should fail when no volume id is provided",
}

// notTested begins the names of the specs that are left out: they are for
// services that only exist as a stand-in here, if at all.
var notTested = []string{
	"Controller Service ", "ListSnapshots ", "DeleteSnapshot ", "CreateSnapshot ",
	"ExpandVolume ", "ModifyVolume ", "GroupController Service ",
}

// TestSanity can run once in a process: ginkgo allows no more.
func TestSanity(t *testing.T) {
	roottest.Need(t)
	d := startDaemon(t)
	seen := &observer{daemon: d}

	config := sanity.NewTestConfig()
	config.TargetPath = d.targets
	config.StagingPath = t.TempDir() + "/staging"
	specs := sanity.GinkgoTest(&config)
	defer specs.Finalize() // closes the connections
	// With addresses in place of these, csi-sanity connects by itself, and waits
	// in vain for a minute when the connection is there before it looks.
	specs.Conn = connect(t, d.socket, grpc.WithChainUnaryInterceptor(claimController, seen.call))
	specs.ControllerConn = connect(t, serveController(t))
	report := runSpecs(t)

	checkSpecs(t, report)
	d.stop(t)
	seen.checkRetained(t)
}

func connect(t *testing.T, socket string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	must(t, err)
	return conn
}

// runSpecs runs csi-sanity; a spec that fails is a failure of t.
func runSpecs(t *testing.T) ginkgo.Report {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	var report ginkgo.Report
	ginkgo.ReportAfterSuite("keep the report", func(r ginkgo.Report) { report = r })
	suite, reporter := ginkgo.GinkgoConfiguration()
	for _, name := range notTested {
		suite.SkipStrings = append(suite.SkipStrings, "^"+suiteName+" "+name)
	}
	reporter.NoColor = true
	ginkgo.RunSpecs(t, suiteName, suite, reporter)
	return report
}

// checkSpecs makes sure that what should have run did: for ginkgo a suite that
// skips everything has passed.
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
		case spec.State == types.SpecStateSkipped:
			notRun = append(notRun, name)
		default:
			t.Errorf("%s: %s", name, spec.State)
		}
	}
	if passed != passing {
		t.Errorf("%d specs for the Identity and Node services passed, expected %d", passed, passing)
	}
	slices.Sort(notRun)
	if !slices.Equal(notRun, skipped) {
		t.Errorf("these specs were skipped:\n%s\nexpected:\n%s", strings.Join(notRun, "\n"), strings.Join(skipped, "\n"))
	}
}
