package persistent

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/pools"
)

// TestStageRefuses: before anything is asked of the volumes, with the field in the error.
func TestStageRefuses(t *testing.T) {
	type spoil = func(*csi.NodeStageVolumeRequest)
	context := func(key, value string) spoil {
		return func(r *csi.NodeStageVolumeRequest) { r.PublishContext[key] = value }
	}
	path := func(path string) spoil {
		return func(r *csi.NodeStageVolumeRequest) { r.StagingTargetPath = path }
	}
	capability := func(c *csi.VolumeCapability) spoil {
		return func(r *csi.NodeStageVolumeRequest) { r.VolumeCapability = c }
	}
	option := func(option string) spoil { return capability(mounted(oneWriter, "", option)) }
	for name, tt := range map[string]struct {
		attachment pools.Attachment
		spoil      spoil
		field      string
	}{
		"no volume":            {nfs(), func(r *csi.NodeStageVolumeRequest) { r.VolumeId = "" }, "volume_id"},
		"no path":              {nfs(), path(""), "staging_target_path"},
		"relative path":        {nfs(), path("plugins/x"), "staging_target_path"},
		"path upwards":         {nfs(), path("/var/lib/kubelet/plugins/../x"), "staging_target_path"},
		"path elsewhere":       {nfs(), path("/etc"), "staging_target_path"},
		"path of pods":         {nfs(), path(targetPath), "staging_target_path"},
		"directory of plugins": {nfs(), path("/var/lib/kubelet/plugins/"), "staging_target_path"},
		"NUL in the path":      {nfs(), path(stagingPath + "\x00"), "staging_target_path"},
		"long path":            {nfs(), path(stagingPath + strings.Repeat("/x", 2048)), "staging_target_path"},
		"no capability":        {nfs(), capability(nil), "volume_capability"},
		"no access type":       {nfs(), capability(&csi.VolumeCapability{}), "volume_capability"},
		"no access mode":       {nfs(), capability(mounted(0, "")), "volume_capability.access_mode"},
		"unknown access mode":  {nfs(), capability(mounted(99, "")), "volume_capability.access_mode"},
		"mount group": {nfs(), func(r *csi.NodeStageVolumeRequest) {
			r.VolumeCapability.GetMount().VolumeMountGroup = "1000"
		}, "volume_mount_group"},
		"no context":               {nfs(), func(r *csi.NodeStageVolumeRequest) { r.PublishContext = nil }, "publish_context"},
		"unknown protocol":         {nfs(), context(pools.KeyProtocol, "smb"), "publish_context protocol"},
		"no export":                {nfs(), context(pools.KeyExport, ""), "publish_context export"},
		"two lines":                {nfs(), context(pools.KeyExport, "10.0.0.1:/x\n"), `"export"`},
		"bad text":                 {nfs(), context(pools.KeyExport, "10.0.0.1:/\xff"), `"export"`},
		"long value":               {nfs(), context(pools.KeyExport, "h:/"+strings.Repeat("x", 5000)), `"export"`},
		"no target":                {iscsi(), context(pools.KeyTarget, ""), "publish_context target"},
		"no LUN":                   {iscsi(), context(pools.KeyLUN, "x"), "publish_context lun"},
		"no serial":                {iscsi(), context(pools.KeySerial, ""), "publish_context serial"},
		"block over NFS":           {nfs(), capability(block(oneWriter)), "volume_capability.block"},
		"unknown file system":      {nfs(), capability(mounted(oneWriter, "btrfs")), "fs_type"},
		"NFS of a disk":            {iscsi(), capability(mounted(oneWriter, "nfs")), "fs_type"},
		"disk of a block volume":   {iscsi(), context(pools.KeyFSType, ""), "volume_capability.mount"},
		"block of a file system":   {iscsi(), capability(block(oneWriter)), "volume_capability.block"},
		"strange file system":      {iscsi(), context(pools.KeyFSType, "../mkfs"), "publish_context"},
		"writers on several nodes": {iscsi(), capability(mounted(manyWriters, "")), "access_mode"},
		"comma in an option":       {nfs(), option("noexec,suid"), "mount_flags"},
		"two lines in an option":   {nfs(), option("noexec\nsuid"), "mount_flags"},
		"empty option":             {nfs(), option(""), "mount_flags"},
		"long option":              {nfs(), option(strings.Repeat("x", 300)), "mount_flags"},
		"many options": {nfs(), capability(mounted(oneWriter, "",
			strings.Split(strings.Repeat(strings.Repeat("x", 200)+" ", 11), " ")...)), "mount_flags"},
	} {
		t.Run(name, func(t *testing.T) {
			volumes := &fakeVolumes{}
			req := stageRequest(tt.attachment, mounted(oneWriter, ""))
			tt.spoil(req)
			_, err := testDriver(t, volumes, logr.Discard()).staging(req)
			if codeOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tt.field) {
				t.Errorf("%v, want an error about %s", err, tt.field)
			}
		})
	}
}

// TestOtherCallsRefuse: also what a kubelet never sends.
func TestOtherCallsRefuse(t *testing.T) {
	volumes := &fakeVolumes{}
	node := csi.NewNodeClient(serve(t, volumes, logr.Discard()))
	publish := func(spoil func(*csi.NodePublishVolumeRequest)) error {
		req := publishRequest(mounted(oneWriter, ""))
		spoil(req)
		_, err := node.NodePublishVolume(t.Context(), req)
		return err
	}
	unpublish := func(id, path string) error {
		_, err := node.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: path})
		return err
	}
	unstage := func(id, path string) error {
		_, err := node.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: path})
		return err
	}
	stats := func(id, path string) error {
		_, err := node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: path})
		return err
	}
	expand := func(id, path string, c *csi.CapacityRange) error {
		_, err := node.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: id, VolumePath: path, CapacityRange: c})
		return err
	}
	for name, tt := range map[string]struct {
		err   error
		code  codes.Code
		field string
	}{
		"publish without a volume": {publish(func(r *csi.NodePublishVolumeRequest) { r.VolumeId = "" }), codes.InvalidArgument, "volume_id"},
		"publish without a target": {publish(func(r *csi.NodePublishVolumeRequest) { r.TargetPath = "" }), codes.InvalidArgument, "target_path"},
		"publish elsewhere": {publish(func(r *csi.NodePublishVolumeRequest) { r.TargetPath = "/etc/x" }), codes.InvalidArgument,
			"target_path"},
		"publish on the directory of pods": {publish(func(r *csi.NodePublishVolumeRequest) { r.TargetPath = "/var/lib/kubelet/pods" }),
			codes.InvalidArgument, "target_path"},
		"publish without staging": {publish(func(r *csi.NodePublishVolumeRequest) { r.StagingTargetPath = "" }), codes.InvalidArgument,
			"staging_target_path"},
		"publish without a capability": {publish(func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability = nil }), codes.InvalidArgument,
			"volume_capability"},
		"publish of no ID":         {publish(func(r *csi.NodePublishVolumeRequest) { r.VolumeId = "../x" }), codes.NotFound, "volume_id"},
		"unpublish without volume": {unpublish("", targetPath), codes.InvalidArgument, "volume_id"},
		"unpublish elsewhere":      {unpublish("pvc-1", "/x"), codes.InvalidArgument, "target_path"},
		"unpublish of no ID":       {unpublish("a/b", targetPath), codes.NotFound, "volume_id"},
		"unstage without volume":   {unstage("", stagingPath), codes.InvalidArgument, "volume_id"},
		"unstage elsewhere":        {unstage("pvc-1", "/x"), codes.InvalidArgument, "staging_target_path"},
		"unstage of no ID":         {unstage("A", stagingPath), codes.NotFound, "volume_id"},
		"stats without volume":     {stats("", targetPath), codes.InvalidArgument, "volume_id"},
		"stats without path":       {stats("pvc-1", ""), codes.InvalidArgument, "volume_path"},
		"stats of no ID":           {stats("A", targetPath), codes.NotFound, "volume_id"},
		"expand without volume":    {expand("", targetPath, nil), codes.InvalidArgument, "volume_id"},
		"expand without path":      {expand("pvc-1", "", nil), codes.InvalidArgument, "volume_path"},
		"expand by a negative":     {expand("pvc-1", "/x", &csi.CapacityRange{RequiredBytes: -1}), codes.InvalidArgument, "capacity_range"},
		"expand beyond a limit": {expand("pvc-1", "/x", &csi.CapacityRange{RequiredBytes: 2, LimitBytes: 1}), codes.InvalidArgument,
			"capacity_range"},
	} {
		if status.Code(tt.err) != tt.code || !strings.Contains(status.Convert(tt.err).Message(), tt.field) {
			t.Errorf("%s: %v, want %s and %s", name, tt.err, tt.code, tt.field)
		}
	}
	if asked := volumes.all(); len(asked) != 0 {
		t.Errorf("asked for %+v", asked)
	}
}
