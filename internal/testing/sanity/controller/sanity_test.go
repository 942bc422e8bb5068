package controller

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"

	"github.com/katbox/katbox/internal/testing/sanity/specs"
)

// controllerSpecs are those of csi-sanity for the Identity and Controller services. Those that skip themselves are
// for VolumeAttributesClasses, which are not offered, for a limit of attachments to a node, which an array does
// not have, and one that csi-sanity itself leaves out. The node service only stands in here, and groups of
// snapshots are not offered.
var controllerSpecs = specs.Specs{
	Passing: 53,
	Skipped: []string{
		"Controller Service [Controller Server] ControllerPublishVolume should fail when publishing more volumes than the node max attach limit",
		"Controller Service [Controller Server] CreateVolume should create volume with a volume attribute class",
		"Controller Service [Controller Server] CreateVolume should not create volume with an invalid volume attribute class",
		"Controller Service [Controller Server] ListVolumes pagination should detect volumes added between pages " +
			"and accept tokens when the last volume from a page is deleted",
		"ControllerGetVolumeHealth [Controller Server] should fail when no volume id is provided",
		"ControllerGetVolumeHealth [Controller Server] should return health for a valid volume",
		"ControllerListVolumeHealth [Controller Server] should return appropriate response",
		"CreateSnapshot [Controller Server] should succeed when creating a snapshot with accessibility requirements",
		"GetSnapshot [Controller Server] should return an error",
		"GetSnapshot [Controller Server] should return an error when the specified snapshot id does not exist",
		"GetSnapshot [Controller Server] should return snapshot that match the specified snapshot id",
		"ModifyVolume [Controller Server] should fail if no volume id is given",
		"ModifyVolume [Controller Server] should fail if specified mutable parameters are not supported by the volume",
		"ModifyVolume [Controller Server] should fail if volume does not exist",
		"ModifyVolume [Controller Server] should fail to modify a volume created with a volume attribute class " +
			"if new mutable parameters are not supported by volume",
		"ModifyVolume [Controller Server] should modify a volume created with a volume attribute class",
		"ModifyVolume [Controller Server] should modify a volume created without a volume attribute class",
	},
	NotTested: []string{"Node Service ", "GroupController Service "},
}

// localSpecs are those for volumes on nodes. They are not attached, which all specs need that skip themselves here
// besides those above.
var localSpecs = specs.Specs{
	Passing: 44,
	Skipped: slices.Sorted(slices.Values(append([]string{
		"Controller Service [Controller Server] ControllerPublishVolume should fail when no node id is provided",
		"Controller Service [Controller Server] ControllerPublishVolume should fail when no volume capability is provided",
		"Controller Service [Controller Server] ControllerPublishVolume should fail when no volume id is provided",
		"Controller Service [Controller Server] ControllerPublishVolume should fail when the node does not exist",
		"Controller Service [Controller Server] ControllerPublishVolume should fail when the volume does not exist",
		"Controller Service [Controller Server] ControllerPublishVolume should fail when the volume is already published but is incompatible",
		"Controller Service [Controller Server] ControllerUnpublishVolume should fail when no volume id is provided",
		"Controller Service [Controller Server] volume lifecycle should be idempotent",
		"Controller Service [Controller Server] volume lifecycle should work",
	}, controllerSpecs.Skipped...))),
	NotTested: controllerSpecs.NotTested,
}

// TestLocalSanity runs the same specs against the driver of the volumes on nodes, in a process of its own.
func TestLocalSanity(t *testing.T) {
	if os.Getenv(kindVariable) != "local" {
		again := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestLocalSanity$", "-test.timeout", "10m")
		again.Env = append(os.Environ(), kindVariable+"=local")
		out, err := again.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	config := sanity.NewTestConfig()
	config.TargetPath, config.StagingPath = t.TempDir()+"/target", t.TempDir()+"/staging"
	suite := sanity.GinkgoTest(&config)
	conn := startLocal(t)
	suite.Conn, suite.ControllerConn = conn, conn
	localSpecs.Run(t)
}

// TestSanity can run once in a process: ginkgo allows no more.
func TestSanity(t *testing.T) {
	config := sanity.NewTestConfig()
	config.TargetPath, config.StagingPath = t.TempDir()+"/target", t.TempDir()+"/staging"
	suite := sanity.GinkgoTest(&config)
	conn := start(t)
	suite.Conn, suite.ControllerConn = conn, conn
	controllerSpecs.Run(t)
}
