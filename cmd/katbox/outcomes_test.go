package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// rawCodec passes messages on as bytes.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
func (rawCodec) Name() string { return "proto" }

// tellPods plays the kubelet's PodsAPI: it says what comes from the channel, after an empty list.
func (d *daemon) tellPods(events <-chan []byte) {
	d.t.Helper()
	dir := filepath.Join(d.layout().Kubelet, "pods-api")
	if err := os.Mkdir(dir, 0o750); err != nil {
		d.t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "pods-api.sock"))
	if err != nil {
		d.t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		synced := []byte{0x08, 4}
		if err := stream.SendMsg(&synced); err != nil {
			return err
		}
		for {
			select {
			case <-stream.Context().Done():
				return nil
			case e := <-events:
				if err := stream.SendMsg(&e); err != nil {
					return err
				}
			}
		}
	}))
	go func() { _ = server.Serve(l) }()
	d.t.Cleanup(server.Stop)
}

// podEnded is a MODIFIED event about a pod with the volume scratch.
func podEnded(t testing.TB, uid string, phase core.PodPhase) []byte {
	p := &core.Pod{Status: core.PodStatus{Phase: phase}, Spec: core.PodSpec{Volumes: []core.Volume{
		{Name: "scratch", VolumeSource: core.VolumeSource{CSI: &core.CSIVolumeSource{Driver: "katbox.csi.paypal.com"}}},
	}}}
	p.UID = types.UID(uid)
	b, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return protowire.AppendBytes(protowire.AppendTag([]byte{0x08, 2}, 2, protowire.BytesType), b)
}

// retainedVolume returns what the daemon tells of the only retained volume of a pod.
func (d *daemon) retainedVolume(pod string) (v api.Volume, ok bool) {
	d.t.Helper()
	list, err := d.admin().List(d.t.Context(), api.Query{})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, v := range list.Items {
		if v.PodUID == pod {
			return v, true
		}
	}
	return v, false
}

// TestOutcomes: the kubelet's socket may appear late. What it says of a volume that a pod uses changes
// nothing but what is said later of the retained one; and only success shortens a lifespan.
func TestOutcomes(t *testing.T) {
	const otherPod = "6f1c8a52-1f4e-4f0e-9d43-6a1b2c3d4e5f"
	d := newDaemon(t, "--afterlifespan", "2h", "--lifespan-succeeded", "30m")
	d.makePod(otherPod)
	d.start()
	id := func(pod string) string { return string(volume.KubeletID(volume.PodUID(pod), "scratch")) }
	for _, pod := range []string{testPod, otherPod} {
		d.publish(pod, id(pod))
		d.writeMarker(pod)
	}
	events := make(chan []byte)
	d.tellPods(events)
	events <- podEnded(t, testPod, core.PodSucceeded) // though it runs
	events <- podEnded(t, "7f1c8a52-1f4e-4f0e-9d43-6a1b2c3d4e5f", core.PodSucceeded)
	events <- podEnded(t, testPod, core.PodSucceeded)
	d.eventually("watched", func() bool { return strings.Contains(d.stdout.String(), "watching the kubelet's pods") })
	d.wantMarker(testPod, id(testPod), "the end is known")
	if !d.mounted(d.target(testPod)) {
		t.Fatal("the volume of a pod that runs was unmounted")
	}
	for _, pod := range []string{testPod, otherPod} {
		d.unpublish(pod, id(pod))
	}
	events <- podEnded(t, otherPod, core.PodFailed) // after its volume was retained
	for pod, want := range map[string]struct {
		outcome string
		keep    time.Duration
	}{testPod: {"Succeeded", 30 * time.Minute}, otherPod: {"Failed", 2 * time.Hour}} {
		var v api.Volume
		d.eventually(want.outcome, func() bool {
			v, _ = d.retainedVolume(pod)
			return v.Outcome == want.outcome
		})
		if keep := v.ExpiresAt.Sub(*v.RetainedAt); keep != want.keep {
			t.Errorf("a volume of a pod that has %s is kept for %s, want %s", want.outcome, keep, want.keep)
		}
		d.wantMarker(pod, id(pod), want.outcome)
	}
}
