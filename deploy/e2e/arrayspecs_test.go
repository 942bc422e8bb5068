//go:build e2e

package e2e

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// leftOut are the specs that do not run: slow ones, those that need the whole cluster or several nodes, and
// those for kinds of volumes that the driver does not have.
const leftOut = `Slow|Serial|Disruptive|Feature:|\[Driver: .*\] .*(Inline-volume|CSI Ephemeral-volume|topology|volumeLimits)`

// TestArraySpecs runs the specs for storage of Kubernetes itself with volumes on NFS and on iSCSI.
func TestArraySpecs(t *testing.T) {
	program := os.Getenv("KATBOX_E2E_SPECS")
	if program == "" {
		t.Skip("the specs are not there: \"make e2e-array-specs\" runs this")
	}
	a := newArrayCluster(t)
	out := filepath.Join(a.state, "logs", "specs")
	log, err := os.Create(out + ".log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	files := filepath.Join("..", "..", "deploy", "e2e", "array")
	cmd := exec.Command(program, "-kubeconfig", os.Getenv("KUBECONFIG"), "-ginkgo.v", "-ginkgo.no-color",
		"-ginkgo.skip", leftOut, "-ginkgo.focus", os.Getenv("KATBOX_E2E_SPECS_FOCUS"),
		"-ginkgo.timeout", "3h", "-ginkgo.junit-report", out+".xml",
		"-storage.testdriver", filepath.Join(files, "specs-nfs.yaml"), "-storage.testdriver", filepath.Join(files, "specs-iscsi.yaml"))
	cmd.Stdout, cmd.Stderr = log, log
	failed := cmd.Run()
	content, err := os.ReadFile(out + ".xml")
	if err != nil {
		t.Fatalf("%v, after %v", err, failed)
	}
	var suites struct {
		Suites []struct {
			Cases []struct {
				Name   string  `xml:"name,attr"`
				Status string  `xml:"status,attr"`
				Time   float64 `xml:"time,attr"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(content, &suites); err != nil {
		t.Fatal(err)
	}
	results := map[string]int{}
	for _, suite := range suites.Suites {
		for _, spec := range suite.Cases {
			results[spec.Status]++
			if spec.Status != "skipped" || spec.Time > 0 { // what skips itself has begun
				t.Logf("%s, %.0f s: %s", spec.Status, spec.Time, spec.Name)
			}
		}
	}
	if report("specs that passed", "%d", results["passed"]); failed != nil || results["passed"] == 0 {
		t.Errorf("%v: %v", results, failed)
	}
	a.wantNothingLeft()
	a.wantNothingOnNode()
}
