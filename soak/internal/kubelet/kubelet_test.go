package kubelet

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

func TestInlineVolume(t *testing.T) {
	r := newRig(t, nil)
	r.start()
	v := inline("data")
	v.ReadOnly = true
	p := r.create("p", v)
	r.await("pod p mounted", 1)
	if got := r.driver.seen(); !slices.Equal(got, []string{"info ", "capabilities ", "capabilities ", "publish p-data"}) {
		t.Errorf("calls %q", got)
	}

	target := filepath.Join(r.root, "pods/p/volumes/kubernetes.io~csi/data/mount")
	got := r.driver.publishes[target]
	if got == nil {
		t.Fatalf("nothing was published at %s", target)
	}
	wantContext := map[string]string{
		"csi.storage.k8s.io/ephemeral":           "true",
		"csi.storage.k8s.io/pod.name":            "pod-p",
		"csi.storage.k8s.io/pod.namespace":       "batch",
		"csi.storage.k8s.io/pod.uid":             "p",
		"csi.storage.k8s.io/serviceAccount.name": "default",
	}
	if !maps.Equal(got.GetVolumeContext(), wantContext) {
		t.Errorf("volume context %v, want %v", got.GetVolumeContext(), wantContext)
	}
	mode := got.GetVolumeCapability().GetAccessMode().GetMode()
	if !got.GetReadonly() || got.GetStagingTargetPath() != "" || got.GetPublishContext() != nil ||
		mode != csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER {
		t.Errorf("request %v", got)
	}
	if want := filepath.Join(r.root, "work/p/p-data"); p.Volumes[0].Story.Data != want {
		t.Errorf("data directory %s, want %s", p.Volumes[0].Story.Data, want)
	}
	wantData(t, filepath.Dir(target), map[string]string{
		"specVolID": "data", "volumeHandle": "p-data", "driverName": "soak.example.com", "nodeName": "node",
		"attachmentID":        "csi-90a8d23112c98e401e08a2ee34c412f9dfd575ddbd946dbd2ac1a21834b5c3cc",
		"volumeLifecycleMode": "Ephemeral",
	})

	r.api.Finish(p)
	r.await("pod p gone", 1)
	r.equal("publish p-data", "unpublish p-data")
	r.heardAll("NodePublishVolume p-data: OK", "pod p mounted", "NodeUnpublishVolume p-data: OK",
		"volume p-data unpublished", "pod p gone")
	r.empty()
	for _, phase := range []string{"pod created", "mounted", "no longer desired", "unpublished"} {
		if story := p.Volumes[0].Story.Story(); !slices.ContainsFunc(story, func(s string) bool { return strings.HasSuffix(s, "  "+phase) }) {
			t.Errorf("%q is not in the story %q", phase, story)
		}
	}
	if left := r.api.observe(); len(left) > 0 {
		t.Errorf("%d pods are left on the node", len(left))
	}
}

// wantData checks a vol_data.json.
func wantData(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "vol_data.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("vol_data.json has %v, want %v", got, want)
	}
}

func TestAccessModeIsTheCapabilitys(t *testing.T) {
	r := newRig(t, func(d *driver) { d.multiWriter = true })
	r.start()
	p := r.create("p", inline("data"))
	r.await("pod p mounted", 1)
	got := r.driver.publishes[p.Volumes[0].Story.Target].GetVolumeCapability().GetAccessMode().GetMode()
	if got != csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER {
		t.Errorf("access mode %s", got)
	}
}

func TestEachCallHasItsConnection(t *testing.T) {
	r := newRig(t, nil)
	r.start()
	p := r.create("p", inline("a"), inline("b"))
	r.await("pod p mounted", 1)
	r.api.Finish(p)
	r.await("pod p gone", 1)
	calls, connections := len(r.driver.seen()), int(r.driver.connections.Load())
	if calls != connections || calls == 0 {
		t.Errorf("%d calls on %d connections", calls, connections)
	}
}

func TestPodWithoutVolumes(t *testing.T) {
	r := newRig(t, nil)
	r.start()
	p := r.create("p")
	r.await("pod p mounted", 1)
	r.api.Finish(p)
	r.await("pod p gone", 1)
}

func TestOneVolumeHangsAndOthersGoOn(t *testing.T) {
	r := newRig(t, nil)
	hang := make(chan struct{})
	r.driver.next("publish", "p-slow", fault{hangs: hang})
	r.start()
	p := r.create("p", inline("slow"), inline("quick"))
	r.awaitCall("publish p-slow", 1)
	q := r.create("q", inline("data"))
	r.await("pod q mounted", 1)
	r.api.Finish(q)
	r.api.Finish(p)
	r.await("pod q gone", 1)
	r.await("volume p-quick unpublished", 1)
	if got := count(r.driver.seen(), "unpublish p-slow"); got > 0 {
		t.Error("it was unpublished while a publish was on its way")
	}
	close(hang)
	r.await("pod p gone", 1)
	if got := count(r.driver.seen(), "publish p-slow"); got != 1 {
		t.Errorf("it was published %d times, want 1", got)
	}
	r.empty()
}

func TestUnregisteredDriverGetsNoCalls(t *testing.T) {
	r := newRig(t, nil)
	r.driver.next("info", "", fault{code: codes.Unavailable}, fault{code: codes.Internal})
	r.start()
	r.create("p", inline("data"))
	r.await("pod p mounted", 1)
	want := []string{"info ", "info ", "info ", "capabilities ", "capabilities ", "publish p-data"}
	if got := r.driver.seen(); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

func TestNoGoroutineIsLeft(t *testing.T) {
	r := newRig(t, nil)
	before := runtime.NumGoroutine()
	r.driver.next("publish", "p-a", fault{hangs: make(chan struct{})})
	r.start()
	r.startAttachments()
	p := r.create("p", inline("a"), inline("b"))
	r.awaitCall("publish p-a", 1)
	r.api.Finish(p)
	r.kubelet.Crash()
	r.attach.Stop()
	// The goroutines of closed connections need a moment, on either side.
	for limit := time.Now().Add(hangLimit); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("%d goroutines, but %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	whole := Config{
		Root: t.TempDir(), Socket: "/s", Driver: "d", Node: "n", API: &API{}, Listener: &rig{},
		Mounted: func(string) (bool, error) { return false, fs.ErrNotExist },
	}
	for field, spoil := range map[string]func(*Config){
		"Root":     func(c *Config) { c.Root = "" },
		"Socket":   func(c *Config) { c.Socket = "" },
		"Driver":   func(c *Config) { c.Driver = "" },
		"Node":     func(c *Config) { c.Node = "" },
		"API":      func(c *Config) { c.API = nil },
		"Listener": func(c *Config) { c.Listener = nil },
		"Mounted":  func(c *Config) { c.Mounted = nil },
	} {
		c := whole
		spoil(&c)
		if _, err := Start(c); err == nil || !strings.Contains(err.Error(), "Config."+field) {
			t.Errorf("error %v without %s", err, field)
		}
	}
	if _, err := StartAttachments(AttachmentsConfig{}); err == nil {
		t.Error("attachments start without anything")
	}
}

func TestBrokenVolumeDataIsAnError(t *testing.T) {
	r := newRig(t, nil)
	dir := filepath.Join(volumesDir(r.root, "p"), "data")
	if err := errors.Join(os.MkdirAll(dir, 0o750), os.WriteFile(filepath.Join(dir, volumeDataFile), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := reconstruct(r.root, "soak.example.com", r.api); err == nil {
		t.Error("no error")
	}
}
