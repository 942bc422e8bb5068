package persistent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	manyWriters = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	multiWriter = csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	oneWriter   = csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	oldWriter   = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	oneReader   = csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY
	readers     = csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
)

func attached(a pools.Attachment) pools.Attachment {
	a.Volume, a.Node = "pvc-1", "node-1"
	return a
}

func attachedBlock() pools.Attachment {
	a := attached(iscsi())
	a.FSType = ""
	return a
}

func attachedReadOnly() pools.Attachment {
	a := attached(nfs())
	a.ReadOnly = true
	return a
}

func TestStagePassesOnWhatTheKubeletSends(t *testing.T) {
	for name, tt := range map[string]struct {
		attachment pools.Attachment
		capability *csi.VolumeCapability
		want       pools.Staging
	}{
		"NFS": {nfs(), mounted(manyWriters, "", "vers=4.1", "hard"),
			pools.Staging{Options: []string{"vers=4.1", "hard"}, Attachment: attached(nfs())}},
		"NFS by name": {nfs(), mounted(multiWriter, "nfs4"), pools.Staging{Attachment: attached(nfs())}},
		"NFS with a disk's file system of the provisioner": {nfs(), mounted(multiWriter, "ext4"),
			pools.Staging{Attachment: attached(nfs())}},
		"NFS for readers": {nfs(), mounted(readers, ""), pools.Staging{ReadOnly: true, Attachment: attached(nfs())}},
		"NFS attached for readers": {attachedReadOnly(), mounted(manyWriters, ""),
			pools.Staging{ReadOnly: true, Attachment: attachedReadOnly()}},
		"read-only by an option": {nfs(), mounted(manyWriters, "", "rw", "ro", "noatime"),
			pools.Staging{ReadOnly: true, Options: []string{"noatime"}, Attachment: attached(nfs())}},
		"iSCSI": {iscsi(), mounted(oneWriter, ""), pools.Staging{FSType: "xfs", Attachment: attached(iscsi())}},
		"iSCSI with the file system of the PersistentVolume": {iscsi(), mounted(oldWriter, "ext4"),
			pools.Staging{FSType: "ext4", Attachment: attached(iscsi())}},
		"iSCSI for a reader":  {iscsi(), mounted(oneReader, ""), pools.Staging{FSType: "xfs", ReadOnly: true, Attachment: attached(iscsi())}},
		"block":               {iscsi(), block(oneWriter), pools.Staging{Block: true, Attachment: attachedBlock()}},
		"block on many nodes": {iscsi(), block(manyWriters), pools.Staging{Block: true, Attachment: attachedBlock()}},
	} {
		t.Run(name, func(t *testing.T) {
			volumes := &fakeVolumes{}
			conn := serve(t, volumes, logr.Discard())
			if _, err := csi.NewNodeClient(conn).NodeStageVolume(t.Context(), stageRequest(tt.attachment, tt.capability)); err != nil {
				t.Fatal(err)
			}
			tt.want.Volume, tt.want.Path = "pvc-1", stagingPath
			if got := volumes.all(); !reflect.DeepEqual(got, []any{tt.want}) {
				t.Errorf("asked for %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestPublishPassesOnWhatTheKubeletSends(t *testing.T) {
	for name, tt := range map[string]struct {
		capability *csi.VolumeCapability
		target     string
		readOnly   bool
		want       pools.NodePublication
	}{
		"one pod of the node":  {mounted(oneWriter, ""), targetPath, false, pools.NodePublication{OneTarget: true}},
		"an old kubelet":       {mounted(oldWriter, ""), targetPath, false, pools.NodePublication{OneTarget: true}},
		"pods of one node":     {mounted(multiWriter, ""), targetPath, false, pools.NodePublication{}},
		"pods of all nodes":    {mounted(manyWriters, ""), targetPath, false, pools.NodePublication{}},
		"readers":              {mounted(readers, ""), targetPath, false, pools.NodePublication{ReadOnly: true}},
		"a pod that reads":     {mounted(manyWriters, ""), targetPath, true, pools.NodePublication{ReadOnly: true}},
		"read-only by options": {mounted(manyWriters, "", "ro"), targetPath, false, pools.NodePublication{ReadOnly: true}},
		// The file system's options counted when it was staged.
		"flags of the mount": {mounted(manyWriters, "", "noexec", "vers=4.1", "nodev"), targetPath, false,
			pools.NodePublication{Options: []string{"noexec", "nodev"}}},
		"a device": {block(oneWriter), devicePath, false, pools.NodePublication{Block: true, OneTarget: true}},
	} {
		t.Run(name, func(t *testing.T) {
			volumes := &fakeVolumes{}
			req := publishRequest(tt.capability)
			req.TargetPath, req.Readonly = tt.target, tt.readOnly
			if _, err := csi.NewNodeClient(serve(t, volumes, logr.Discard())).NodePublishVolume(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			tt.want.Volume, tt.want.Staging, tt.want.Target = "pvc-1", stagingPath, tt.target
			if got := volumes.all(); !reflect.DeepEqual(got, []any{tt.want}) {
				t.Errorf("asked for %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestOtherCallsPassOnWhatTheKubeletSends(t *testing.T) {
	volumes := &fakeVolumes{bytes: 2 << 30, stats: volume.Stats{
		Space: volume.Space{Total: volume.Size{Bytes: 100}, Free: volume.Size{Bytes: 60}}, Used: volume.Size{Bytes: 40},
	}}
	node := csi.NewNodeClient(serve(t, volumes, logr.Discard()))
	unstage := &csi.NodeUnstageVolumeRequest{VolumeId: "pvc-1", StagingTargetPath: stagingPath + "/"}
	if _, err := node.NodeUnstageVolume(t.Context(), unstage); err != nil {
		t.Error(err)
	}
	unpublish := &csi.NodeUnpublishVolumeRequest{VolumeId: "pvc-1", TargetPath: devicePath}
	if _, err := node.NodeUnpublishVolume(t.Context(), unpublish); err != nil {
		t.Error(err)
	}
	grown, err := node.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{
		VolumeId: "pvc-1", VolumePath: targetPath, VolumeCapability: block(oneWriter), CapacityRange: &csi.CapacityRange{RequiredBytes: 5},
	})
	if err != nil || grown.GetCapacityBytes() != 2<<30 {
		t.Errorf("expanded: %v, %v", grown, err)
	}
	stats, err := node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "pvc-1", VolumePath: targetPath + "/"})
	if err != nil || len(stats.GetUsage()) != 1 || stats.GetUsage()[0].GetTotal() != 100 || stats.GetUsage()[0].GetUsed() != 40 {
		t.Errorf("stats: %v, %v", stats, err)
	}
	want := []any{
		unstaged{"pvc-1", stagingPath}, unpublished{"pvc-1", devicePath},
		pools.NodeExpansion{Volume: "pvc-1", Path: targetPath, Block: true, Required: 5}, measured{"pvc-1", targetPath},
	}
	if got := volumes.all(); !reflect.DeepEqual(got, want) {
		t.Errorf("asked for %+v, want %+v", got, want)
	}
}

// TestHealth: what a kubelet is told of a volume in use, and where it is looked at.
func TestHealth(t *testing.T) {
	both := &csi.NodeGetVolumeHealthRequest{VolumeId: "pvc-1", VolumePublishPath: targetPath + "/", StagingTargetPath: stagingPath}
	staged := &csi.NodeGetVolumeHealthRequest{VolumeId: "pvc-1", StagingTargetPath: stagingPath}
	const broken, degraded = csi.VolumeHealthErrorType_INACCESSIBLE, csi.VolumeHealthErrorType_DEGRADED
	long := strings.Repeat("ä", 600)
	is := func(text string) volume.Stats { return volume.Stats{Abnormal: true, Condition: text} }
	readOnly := is("ro")
	readOnly.Readable = true
	noAnswer := fmt.Errorf("%w: waits for NFS server 10.0.0.1", volume.ErrUnavailable)
	for name, tt := range map[string]struct {
		req           *csi.NodeGetVolumeHealthRequest
		looked        string
		stats         volume.Stats
		err, notReady error
		want          csi.VolumeHealthErrorType
		message       string
		code          codes.Code
	}{
		"well":               {req: both, looked: targetPath},
		"well where staged":  {req: staged, looked: stagingPath},
		"mounted nowhere":    {req: &csi.NodeGetVolumeHealthRequest{VolumeId: "pvc-1"}},
		"broken":             {req: both, looked: targetPath, stats: is("gone"), want: broken, message: "gone"},
		"read-only":          {req: both, looked: targetPath, stats: readOnly, want: degraded, message: "ro"},
		"a long message":     {req: both, looked: targetPath, stats: is(long), want: broken, message: long[:1024]},
		"cut in a character": {req: both, looked: targetPath, stats: is("x" + long), want: broken, message: "x" + long[:1022]},
		"no answer in time":  {req: both, looked: targetPath, err: noAnswer, want: broken, message: noAnswer.Error()},
		"the driver starts":  {req: both, looked: targetPath, err: noAnswer, notReady: errors.New("starting"), code: codes.Unavailable},
		"another volume":     {req: both, looked: targetPath, err: volume.ErrNotFound, code: codes.NotFound},
		"no ID":              {req: &csi.NodeGetVolumeHealthRequest{VolumePublishPath: targetPath}, code: codes.InvalidArgument},
		"no ID, no path":     {req: &csi.NodeGetVolumeHealthRequest{}, code: codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			volumes := &fakeVolumes{stats: tt.stats, err: tt.err, notReady: tt.notReady}
			answer, err := csi.NewNodeClient(serve(t, volumes, logr.Discard())).NodeGetVolumeHealth(t.Context(), tt.req)
			if status.Code(err) != tt.code {
				t.Fatalf("%v, %v, want %s", answer, err, tt.code)
			}
			var asked []any
			if tt.looked != "" {
				asked = []any{measured{"pvc-1", tt.looked}}
			}
			if got := volumes.all(); !reflect.DeepEqual(got, asked) {
				t.Errorf("asked for %+v, want %+v", got, asked)
			}
			found := answer.GetVolumeHealth().GetHealthStatuses()
			switch {
			case tt.want == 0 && len(found) == 0:
			case len(found) != 1 || found[0].GetStatus() != tt.want || found[0].GetMessage() != tt.message || found[0].GetReason() == "":
				t.Errorf("%v, want %s: %s", found, tt.want, tt.message)
			}
		})
	}
}

// TestStatsOfABrokenVolume are none: a kubelet would take zeros for its size.
func TestStatsOfABrokenVolume(t *testing.T) {
	volumes := &fakeVolumes{stats: volume.Stats{Abnormal: true, Condition: "the array does not answer"}}
	node := csi.NewNodeClient(serve(t, volumes, logr.Discard()))
	req := &csi.NodeGetVolumeStatsRequest{VolumeId: "pvc-1", VolumePath: targetPath}
	got, err := node.NodeGetVolumeStats(t.Context(), req)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("%v, %v, want Unavailable", got, err)
	}
	volumes.stats.Space.Total.Bytes, volumes.stats.Readable = 100, true
	if got, err := node.NodeGetVolumeStats(t.Context(), req); err != nil || got.GetUsage()[0].GetTotal() != 100 {
		t.Errorf("one that can be read: %v, %v", got, err)
	}
}

// A scheduler of Kubernetes 1.37 looks again at pods that waited for a driver when its limit in CSINode grows, and at
// nothing else of it. CSINode has no limit where the driver says 0.
func TestPodsThatWaitForTheDriver(t *testing.T) {
	for kind, segments := range map[pools.Kind]func(context.Context) (map[string]string, error){
		pools.KindArray: nil,
		pools.KindLocal: func(context.Context) (map[string]string, error) { return nil, nil },
	} {
		cfg := testDriver(t, &fakeVolumes{}, logr.Discard()).cfg
		cfg.Kind, cfg.Segments, cfg.MaxVolumes = kind, segments, 0
		d, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		info, err := d.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
		// CSINode has 32 bits for it.
		if err != nil || info.GetMaxVolumesPerNode() < 1000 || info.GetMaxVolumesPerNode() > math.MaxInt32 {
			t.Errorf("%s: %v, %v, want a limit that no node reaches", kind, info, err)
		}
	}
}

func TestWhatTheNodeIs(t *testing.T) {
	volumes := &fakeVolumes{notReady: errors.New("starting")}
	conn := serve(t, volumes, logr.Discard())
	node, identity := csi.NewNodeClient(conn), csi.NewIdentityClient(conn)
	info, err := node.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil || info.GetNodeId() != "node-1" || info.GetMaxVolumesPerNode() != 7 || info.GetAccessibleTopology() != nil {
		t.Errorf("%v, %v", info, err)
	}
	can, err := node.NodeGetCapabilities(t.Context(), &csi.NodeGetCapabilitiesRequest{})
	if err != nil || len(can.GetCapabilities()) != 5 {
		t.Errorf("%v, %v", can, err)
	}
	plugin, err := identity.GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
	if err != nil || plugin.GetName() != "array.csi.katbox.io" || plugin.GetVendorVersion() != "1.2.3" {
		t.Errorf("%v, %v", plugin, err)
	}
	services, err := identity.GetPluginCapabilities(t.Context(), &csi.GetPluginCapabilitiesRequest{})
	if err != nil || len(services.GetCapabilities()) != 2 {
		t.Errorf("%v, %v", services, err)
	}
	probe, err := identity.Probe(t.Context(), &csi.ProbeRequest{})
	if err != nil || probe.GetReady().GetValue() {
		t.Errorf("%v, %v: ready while it is not", probe, err)
	}
}

// TestLogNamesTheVolumeAndNoSecret: of a call that fails, and of one whose fields are odd.
func TestLogNamesTheVolumeAndNoSecret(t *testing.T) {
	var lines strings.Builder
	log := funcr.New(func(_, args string) { lines.WriteString(args + "\n") }, funcr.Options{Verbosity: 4})
	volumes := &fakeVolumes{err: volume.ErrUnavailable}
	d := testDriver(t, volumes, log)
	if got, want := d.named(publishRequest(mounted(oneWriter, ""))), []any{
		"volumeID", "pvc-1", "podUID", "uid", "volume", "pvc-1", "target", targetPath,
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("a publish is %q, want %q", got, want)
	}
	if got, want := d.named(&csi.NodeUnpublishVolumeRequest{VolumeId: "pvc-1", TargetPath: devicePath}), []any{
		"volumeID", "pvc-1", "podUID", "uid", "volume", "pvc-1", "target", devicePath,
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("an unpublish of a device is %q, want %q", got, want)
	}
	if got := d.named((*csi.NodeStageVolumeRequest)(nil)); len(got) != 0 {
		t.Errorf("no request is %q", got)
	}
	node := csi.NewNodeClient(serve(t, volumes, log))
	if _, err := node.NodeStageVolume(t.Context(), stageRequest(iscsi(), mounted(oneWriter, ""))); status.Code(err) != codes.Unavailable {
		t.Errorf("%v, want Unavailable", err)
	}
	bad := stageRequest(iscsi(), mounted(oneWriter, "never-shown"))
	bad.VolumeCapability.GetMount().FsType = "btrfs"
	if _, err := node.NodeStageVolume(t.Context(), bad); status.Code(err) != codes.InvalidArgument {
		t.Errorf("%v, want InvalidArgument", err)
	}
	for _, want := range []string{"pvc-1", stagingPath, "btrfs"} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, lines.String())
		}
	}
	if strings.Contains(lines.String(), "never-shown") {
		t.Errorf("the log has a secret:\n%s", lines.String())
	}
}

func TestPanicLeavesTheOutcomeOpen(t *testing.T) {
	node := csi.NewNodeClient(serve(t, &fakeVolumes{panics: true}, logr.Discard()))
	if _, err := node.NodeStageVolume(t.Context(), stageRequest(nfs(), mounted(oneWriter, ""))); status.Code(err) != codes.Aborted {
		t.Errorf("%v, want Aborted", err)
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	good := testDriver(t, &fakeVolumes{}, logr.Discard()).cfg
	for name, spoil := range map[string]func(*Config){
		"domain name":       func(c *Config) { c.Name = "-" },
		"node ID":           func(c *Config) { c.NodeID = "" },
		"kubelet directory": func(c *Config) { c.KubeletDir = "kubelet" },
		"negative":          func(c *Config) { c.MaxVolumes = -1 },
		"Volumes is":        func(c *Config) { c.Volumes = nil },
		"Config.Count":      func(c *Config) { c.Count = nil },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want an error about %q", err, name)
		}
	}
}
