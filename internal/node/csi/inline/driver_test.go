package inline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
)

const podsDir = "/var/lib/kubelet/pods"

// fakeVolumes records requests and gives the answer of its fields.
type fakeVolumes struct {
	mu          sync.Mutex
	published   []volume.Publication
	unpublished []string
	stats       volume.Stats
	err         error
	known       bool // its volumes were published before
	notReady    error
	panics      bool
}

func (f *fakeVolumes) Publish(_ context.Context, p volume.Publication) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics {
		panic("broken for the test")
	}
	f.published = append(f.published, p)
	if f.err == nil && !f.known {
		return p.Refused
	}
	return f.err
}

func (f *fakeVolumes) Unpublish(_ context.Context, id volume.ID, target string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unpublished = append(f.unpublished, string(id)+" "+target)
	return f.err
}

func (f *fakeVolumes) Stats(context.Context, volume.ID, string) (volume.Stats, error) {
	return f.stats, f.err
}

func (f *fakeVolumes) Ready(context.Context) error { return f.notReady }

func (f *fakeVolumes) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.published) + len(f.unpublished)
}

// serveDriver serves a driver on a real socket and returns a connection to it.
func serveDriver(t *testing.T, volumes Volumes, log logr.Logger) *grpc.ClientConn {
	t.Helper()
	server, conn, served := startServer(t, volumes, log)
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), server.Stop(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// startServer starts a server that the caller must stop. The channel delivers how serving
// ended.
func startServer(t *testing.T, volumes Volumes, log logr.Logger) (*edge.Server, *grpc.ClientConn, <-chan error) {
	t.Helper()
	return startCounted(t, volumes, log, metrics.New("test", ""))
}

func startCounted(t *testing.T, volumes Volumes, log logr.Logger, m *metrics.Metrics) (*edge.Server, *grpc.ClientConn, <-chan error) {
	t.Helper()
	d, err := New(Config{Name: "katbox.csi.paypal.com", Version: "1.2.3", NodeID: "node-1", KubeletDir: "/var/lib/kubelet",
		MaxVolumes: 7, Volumes: volumes, Terms: testTerms(t), Log: log, Metrics: m,
		Cut: func(namespace string, attributes map[string]string) string {
			if attributes["lifespan"] == "" {
				return ""
			}
			return namespace + " cuts " + attributes["lifespan"]
		}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "csi.sock")
	l, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(d)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return server, conn, served
}

// publishRequest is what a kubelet sends.
func publishRequest() *csi.NodePublishVolumeRequest {
	return &csi.NodePublishVolumeRequest{
		VolumeId:   "csi-1",
		TargetPath: podsDir + "/uid/volumes/kubernetes.io~csi/scratch/mount",
		VolumeCapability: &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		},
		VolumeContext: map[string]string{
			kubelet.ContextEphemeral: "true", kubelet.ContextPodUID: "uid", kubelet.ContextPodName: "batch", kubelet.ContextNamespace: "default",
			"csi.storage.k8s.io/serviceAccount.name": "robot", "csi.storage.k8s.io/anything-new": "user-attribute",
		},
	}
}

func TestPublishPassesOnWhatTheKubeletSends(t *testing.T) {
	volumes := &fakeVolumes{}
	node := csi.NewNodeClient(serveDriver(t, volumes, logr.Discard()))
	req := publishRequest()
	req.Readonly = true
	req.VolumeCapability.GetMount().MountFlags = []string{"noexec", "nodev", "noexec"}
	req.VolumeCapability.AccessMode.Mode = csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	if _, err := node.NodePublishVolume(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	want := volume.Publication{ID: "csi-1", Pod: "uid", Namespace: "default", PodName: "batch", VolumeName: "scratch",
		ServiceAccount: "robot", Target: volume.Target{
			Path: req.TargetPath, ReadOnly: true, Flags: []string{"nodev", "noexec"}, MultiWriter: true},
		Terms: volume.Terms{Lifespan: time.Hour, LifespanSucceeded: time.Hour}}
	if got := volumes.published[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("published %+v, want %+v", got, want)
	}
	if _, err := node.NodeUnpublishVolume(t.Context(),
		&csi.NodeUnpublishVolumeRequest{VolumeId: "csi-1", TargetPath: req.TargetPath + "/"}); err != nil {
		t.Fatal(err)
	}
	if got := volumes.unpublished[0]; got != "csi-1 "+req.TargetPath {
		t.Errorf("unpublished %q", got)
	}
}

// badNames are not plain path elements. The value is a word of the reason.
var badNames = map[string]string{
	"": "missing", "..": "dot", ".": "dot", ".hidden": "dot", "a/b": "slash", "/": "slash", "../../x": "slash",
	"a\x00b": "NUL", strings.Repeat("x", 256): "255",
}

var badTargets = map[string]string{
	"": "missing", "relative/path": "absolute", podsDir: "not below", podsDir + "/": "not below", "/": "not below", "/etc": "not below",
	podsDir + "2/uid/mount": "not below", podsDir + "/../x": "..", podsDir + "/uid/../../../../etc": "..",
	podsDir + "/a\x00b": "NUL", podsDir + "/" + strings.Repeat("x/", 3000): "4095",
}

// TestBadInputIsRefusedAndTouchesNothing: each input is an InvalidArgument that names its
// field, and does not reach the Volumes.
func TestBadInputIsRefusedAndTouchesNothing(t *testing.T) {
	type badCase struct {
		field, reason string
		change        func(*csi.NodePublishVolumeRequest)
	}
	cases := map[string]badCase{
		"no capability":  {"volume_capability", "missing", func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability = nil }},
		"no access type": {"volume_capability.mount", "missing", func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.AccessType = nil }},
		"no access mode": {"volume_capability.access_mode", "missing",
			func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.AccessMode = nil }},
		"several nodes": {"volume_capability.access_mode", "one node", func(r *csi.NodePublishVolumeRequest) {
			r.VolumeCapability.AccessMode.Mode = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
		}},
		"future mode": {"volume_capability.access_mode", "not supported",
			func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.AccessMode.Mode = 99 }},
		"mount group": {"volume_capability.mount.volume_mount_group", "not supported",
			func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.GetMount().VolumeMountGroup = "1000" }},
		"unknown flag": {"volume_capability.mount.mount_flags", "hard",
			func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.GetMount().MountFlags = []string{"hard"} }},
		"bind as a flag": {"volume_capability.mount.mount_flags", "bind",
			func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.GetMount().MountFlags = []string{"bind"} }},
		"not ephemeral": {contextField(kubelet.ContextEphemeral), "ephemeral",
			func(r *csi.NodePublishVolumeRequest) { delete(r.VolumeContext, kubelet.ContextEphemeral) }},
		"ephemeral false": {contextField(kubelet.ContextEphemeral), "ephemeral",
			func(r *csi.NodePublishVolumeRequest) { r.VolumeContext[kubelet.ContextEphemeral] = "false" }},
		"no context": {contextField(kubelet.ContextEphemeral), "ephemeral", func(r *csi.NodePublishVolumeRequest) { r.VolumeContext = nil }},
		"block access": {"volume_capability.block", "not supported", func(r *csi.NodePublishVolumeRequest) {
			r.VolumeCapability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		}},
	}
	for name, reason := range badNames {
		cases[fmt.Sprintf("volume ID %.20q", name)] = badCase{"volume_id", reason, func(r *csi.NodePublishVolumeRequest) { r.VolumeId = name }}
		cases[fmt.Sprintf("pod UID %.20q", name)] = badCase{contextField(kubelet.ContextPodUID), reason,
			func(r *csi.NodePublishVolumeRequest) { r.VolumeContext[kubelet.ContextPodUID] = name }}
	}
	for path, reason := range badTargets {
		cases[fmt.Sprintf("target %.60q", path)] = badCase{"target_path", reason, func(r *csi.NodePublishVolumeRequest) { r.TargetPath = path }}
	}
	volumes := &fakeVolumes{}
	node := csi.NewNodeClient(serveDriver(t, volumes, logr.Discard()))
	check := func(t *testing.T, err error, field, reason string) {
		t.Helper()
		if status.Code(err) != codes.InvalidArgument {
			t.Fatalf("error %v, want InvalidArgument", err)
		}
		if message := status.Convert(err).Message(); !strings.HasPrefix(message, field+" ") || !strings.Contains(message, reason) {
			t.Errorf("message %q, want it to begin with %q and to contain %q", message, field, reason)
		}
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			req := publishRequest()
			tt.change(req)
			_, err := node.NodePublishVolume(t.Context(), req)
			check(t, err, tt.field, tt.reason)
		})
	}
	for name, reason := range badNames {
		_, err := node.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: name, TargetPath: publishRequest().TargetPath})
		check(t, err, "volume_id", reason)
		_, err = node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: name, VolumePath: "/x"})
		check(t, err, "volume_id", reason)
	}
	for path, reason := range badTargets {
		_, err := node.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "csi-1", TargetPath: path})
		check(t, err, "target_path", reason)
	}
	_, err := node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "csi-1"})
	check(t, err, "volume_path", "missing")
	if n := volumes.asked(); n != 0 {
		t.Errorf("bad input got through %d times", n)
	}
}

func TestErrorsGetTheirCode(t *testing.T) {
	volumes := &fakeVolumes{err: fmt.Errorf("%w: try again", volume.ErrBusy)}
	node := csi.NewNodeClient(serveDriver(t, volumes, logr.Discard()))
	if _, err := node.NodePublishVolume(t.Context(), publishRequest()); status.Code(err) != codes.Aborted {
		t.Errorf("busy: %v, want Aborted", err)
	}
	volumes.mu.Lock()
	volumes.panics = true
	volumes.mu.Unlock()
	if _, err := node.NodePublishVolume(t.Context(), publishRequest()); status.Code(err) != codes.Aborted {
		t.Errorf("panic: %v, want Aborted", err)
	}
}

func TestStatsReply(t *testing.T) {
	volumes := &fakeVolumes{stats: volume.Stats{
		Space: volume.Space{Total: volume.Size{Bytes: 100, Inodes: 20}, Free: volume.Size{Bytes: 40, Inodes: 5}},
		Used:  volume.Size{Bytes: 10, Inodes: 3},
	}}
	node := csi.NewNodeClient(serveDriver(t, volumes, logr.Discard()))
	resp, err := node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "csi-1", VolumePath: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	bytes, inodes := resp.Usage[0], resp.Usage[1]
	if bytes.Unit != csi.VolumeUsage_BYTES || bytes.Used != 10 || bytes.Available != 40 || bytes.Total != 100 ||
		inodes.Unit != csi.VolumeUsage_INODES || inodes.Used != 3 || inodes.Available != 5 || inodes.Total != 20 {
		t.Errorf("usage %v", resp.Usage)
	}
}

func TestIdentityAndNodeInfo(t *testing.T) {
	volumes := &fakeVolumes{}
	conn := serveDriver(t, volumes, logr.Discard())
	identity, node := csi.NewIdentityClient(conn), csi.NewNodeClient(conn)

	info, err := identity.GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
	if err != nil || info.Name != "katbox.csi.paypal.com" || info.VendorVersion != "1.2.3" {
		t.Errorf("plugin info %v, %v", info, err)
	}
	plugin, err := identity.GetPluginCapabilities(t.Context(), &csi.GetPluginCapabilitiesRequest{})
	if err != nil || len(plugin.Capabilities) != 1 ||
		plugin.Capabilities[0].GetService().GetType() != csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS {
		t.Errorf("plugin capabilities %v, %v", plugin, err)
	}
	about, err := node.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil || about.NodeId != "node-1" || about.MaxVolumesPerNode != 7 ||
		about.AccessibleTopology.Segments["topology.katbox.csi/node"] != "node-1" {
		t.Errorf("node info %v, %v", about, err)
	}
	can, err := node.NodeGetCapabilities(t.Context(), &csi.NodeGetCapabilitiesRequest{})
	if err != nil || len(can.Capabilities) != 2 {
		t.Fatalf("node capabilities %v, %v", can, err)
	}
	for _, c := range can.Capabilities {
		if c.GetRpc().GetType() == csi.NodeServiceCapability_RPC_UNKNOWN {
			t.Error("an unknown capability")
		}
	}
	for want, notReady := range map[bool]error{true: nil, false: volume.ErrUnavailable} {
		volumes.notReady = notReady
		probe, err := identity.Probe(t.Context(), &csi.ProbeRequest{})
		if err != nil || probe.Ready.GetValue() != want {
			t.Errorf("probe %v, %v, want ready %t", probe, err, want)
		}
	}
}

func TestTheRestIsUnimplemented(t *testing.T) {
	conn := serveDriver(t, &fakeVolumes{}, logr.Discard())
	node := csi.NewNodeClient(conn)
	_, stage := node.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{})
	_, unstage := node.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{})
	_, expand := node.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{})
	_, create := csi.NewControllerClient(conn).CreateVolume(t.Context(), &csi.CreateVolumeRequest{})
	for _, err := range []error{stage, unstage, expand, create} {
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("error %v, want Unimplemented", err)
		}
	}
}

// TestLogHasNoRequest: a failed call is logged once, without its other fields.
func TestLogHasNoRequest(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	log := funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, prefix+args)
	}, funcr.Options{Verbosity: 1})
	node := csi.NewNodeClient(serveDriver(t, &fakeVolumes{err: errors.New("broken")}, log))
	req := publishRequest()
	req.Secrets = map[string]string{"token": "s3cr3t"}
	if _, err := node.NodePublishVolume(t.Context(), req); status.Code(err) != codes.Unknown {
		t.Fatalf("error %v, want Unknown", err)
	}
	mu.Lock()
	defer mu.Unlock()
	const names = `"namespace"="default" "pod"="batch" "podUID"="uid" "volume"="scratch" "volumeID"="csi-1"`
	if len(lines) != 1 || !strings.Contains(lines[0], names) || !strings.Contains(lines[0], "broken") {
		t.Errorf("log %q, want one line with names and cause", lines)
	}
	if all := strings.Join(lines, ""); strings.Contains(all, "s3cr3t") || strings.Contains(all, "user-attribute") {
		t.Errorf("log %q holds the request", all)
	}
}

func TestConfigSaysWhatIsMissing(t *testing.T) {
	good := Config{Name: "katbox.csi.paypal.com", NodeID: "n", KubeletDir: "/var/lib/kubelet", Volumes: &fakeVolumes{},
		Terms: testTerms(t), Metrics: metrics.New("", "")}
	for word, change := range map[string]func(*Config){
		"driver name":        func(c *Config) { c.Name = "not a name" },
		"node ID is missing": func(c *Config) { c.NodeID = "" },
		"longer":             func(c *Config) { c.NodeID = strings.Repeat("n", 257) },
		"kubelet directory":  func(c *Config) { c.KubeletDir = "kubelet" },
		"negative":           func(c *Config) { c.MaxVolumes = -1 },
		"Volumes":            func(c *Config) { c.Volumes = nil },
		"Terms":              func(c *Config) { c.Terms = nil },
		"Metrics":            func(c *Config) { c.Metrics = nil },
	} {
		cfg := good
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("error %v, want one with %q", err, word)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}

func TestStopBreaksOffWhatDoesNotEnd(t *testing.T) {
	release := make(chan struct{})
	hanging := hangingVolumes{fakeVolumes: &fakeVolumes{}, began: make(chan struct{}), release: release}
	server, conn, served := startServer(t, hanging, logr.Discard())
	defer conn.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := csi.NewNodeClient(conn).NodePublishVolume(context.Background(), publishRequest())
		answered <- err
	}()
	<-hanging.began
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	// Stop waits for the handler; it sees its own context end.
	if err := server.Stop(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("stop: %v, want that calls were broken off", err)
	}
	if err := <-answered; status.Code(err) != codes.Unavailable && status.Code(err) != codes.Canceled {
		t.Errorf("the call that was broken off: %v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	close(release)
}

// hangingVolumes answers a publish only when the caller gives up.
type hangingVolumes struct {
	*fakeVolumes
	began   chan struct{}
	release chan struct{}
}

func (h hangingVolumes) Publish(ctx context.Context, _ volume.Publication) error {
	close(h.began)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-h.release:
		return nil
	}
}
