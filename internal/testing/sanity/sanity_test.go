package sanity

import (
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/sanity/specs"
)

// nodeSpecs are those of csi-sanity for the Identity and Node services. Those that skip themselves are for
// capabilities that the driver does not report; the others are for services that only exist as a stand-in here,
// if at all.
var nodeSpecs = specs.Specs{
	Passing: 18,
	Skipped: []string{
		"Node Service NodeExpandVolume should fail when no volume id is provided",
		"Node Service NodeExpandVolume should fail when no volume path is provided",
		"Node Service NodeExpandVolume should fail when volume is not found",
		"Node Service NodeExpandVolume should work if node-expand is called after node-publish",
		"Node Service NodeGetStorageHealth should return appropriate response",
		"Node Service NodeGetVolumeHealth should fail when no volume id is provided",
		"Node Service NodeGetVolumeHealth should return health for a valid volume",
		"Node Service NodeStageVolume should fail when no staging target path is provided",
		"Node Service NodeStageVolume should fail when no volume capability is provided",
		"Node Service NodeStageVolume should fail when no volume id is provided",
		"Node Service NodeUnstageVolume should fail when no staging target path is provided",
		"Node Service NodeUnstageVolume should fail when no volume id is provided",
	},
	NotTested: []string{
		"Controller Service ", "ListSnapshots ", "GetSnapshot ", "DeleteSnapshot ", "CreateSnapshot ",
		"ControllerGetVolumeHealth ", "ControllerListVolumeHealth ",
		"ExpandVolume ", "ModifyVolume ", "GroupController Service ",
	},
}

// TestSanity can run once in a process: ginkgo allows no more.
func TestSanity(t *testing.T) {
	roottest.Need(t)
	d := startDaemon(t)
	seen := &observer{daemon: d}

	config := sanity.NewTestConfig()
	config.TargetPath = d.targets
	config.StagingPath = t.TempDir() + "/staging"
	suite := sanity.GinkgoTest(&config)
	defer suite.Finalize() // closes the connections
	// With addresses in place of these, csi-sanity connects by itself, and waits
	// in vain for a minute when the connection is there before it looks.
	suite.Conn = connect(t, d.socket, grpc.WithChainUnaryInterceptor(claimController, seen.call))
	suite.ControllerConn = connect(t, serveController(t))
	nodeSpecs.Run(t)

	d.stop(t)
	seen.checkRetained(t)
}

func connect(t *testing.T, socket string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	must(t, err)
	return conn
}
