//go:build crashpoints

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/lib/crashpoint"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// crashing of a controller is played with the story of a few volumes: all calls, in an order in which
// Kubernetes sends them.
type story struct {
	*world
	// points is the directory through which the points are set.
	points   string
	started  int
	replica  *replica
	deadline context.Context
}

func newStory(t *testing.T) *story {
	s := &story{world: newWorld(t), points: t.TempDir()}
	s.env = []string{crashpoint.Variable + "=" + s.points}
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	t.Cleanup(cancel)
	s.deadline = ctx
	s.startNext()
	return s
}

func (s *story) startNext() {
	s.started++
	s.replica = s.start(fmt.Sprintf("c%d", s.started), "--leader-election=false")
}

// call repeats a call until it succeeds, as the sidecars do; after a crash, of the next controller.
func (s *story) call(what string, call func(context.Context, csi.ControllerClient) error) {
	s.t.Helper()
	for {
		ctx, cancel := context.WithTimeout(s.deadline, patience)
		err := call(ctx, csi.NewControllerClient(s.replica.conn))
		cancel()
		switch {
		case err == nil:
			return
		case s.deadline.Err() != nil:
			s.t.Fatalf("%s: still %v", what, err)
		}
		switch status.Code(err) {
		case codes.Aborted, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		case codes.ResourceExhausted: // the pool is not Ready yet; the provisioner tries again
		default:
			s.t.Fatalf("%s: a final answer: %v", what, err)
		}
		select {
		case <-s.replica.ended:
			s.startNext()
		default:
			_ = retry.Pause(s.deadline, 20*time.Millisecond)
		}
	}
}

func capability(block bool) *csi.VolumeCapability {
	c := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}
	if block {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	} else {
		c.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}
	}
	return c
}

func (s *story) makes(name string, size int64, block bool, from *csi.VolumeContentSource) {
	s.t.Helper()
	s.call("create "+name, func(ctx context.Context, c csi.ControllerClient) error {
		made, err := c.CreateVolume(ctx, &csi.CreateVolumeRequest{
			Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: size << 30},
			VolumeCapabilities: []*csi.VolumeCapability{capability(block)}, VolumeContentSource: from,
		})
		if err == nil && made.GetVolume().GetCapacityBytes() != size<<30 {
			s.t.Errorf("made %v", made)
		}
		return err
	})
}

func (s *story) attaches(id string, block bool) {
	s.t.Helper()
	s.call("attach "+id, func(ctx context.Context, c csi.ControllerClient) error {
		_, err := c.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{
			VolumeId: id, NodeId: "n1", VolumeCapability: capability(block),
		})
		return err
	})
}

func (s *story) detaches(id string) {
	s.t.Helper()
	s.call("detach "+id, func(ctx context.Context, c csi.ControllerClient) error {
		_, err := c.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: "n1"})
		return err
	})
}

func (s *story) deletes(id string) {
	s.t.Helper()
	s.call("delete "+id, func(ctx context.Context, c csi.ControllerClient) error {
		_, err := c.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		return err
	})
}

// play plays the story, and checks what is on the array on the way.
func (s *story) play() {
	s.t.Helper()
	s.afterlife()
	s.makes("pvc-1", 2, false, nil)
	s.makes("pvc-2", 1, true, nil)
	s.call("snapshot", func(ctx context.Context, c csi.ControllerClient) error {
		taken, err := c.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "snapshot-1", SourceVolumeId: "pvc-1"})
		if err == nil && !taken.GetSnapshot().GetReadyToUse() {
			return status.Error(codes.Aborted, "not ready")
		}
		return err
	})
	s.makes("pvc-3", 5, false, &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: "snapshot-1"},
	}})
	s.call("grow", func(ctx context.Context, c csi.ControllerClient) error {
		grown, err := c.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
			VolumeId: "pvc-2", CapacityRange: &csi.CapacityRange{RequiredBytes: 4 << 30}, VolumeCapability: capability(true),
		})
		if err == nil && grown.GetCapacityBytes() != 4<<30 {
			s.t.Errorf("grown to %v", grown)
		}
		return err
	})
	s.attaches("pvc-1", false)
	s.attaches("pvc-2", true)
	sizes := map[string]int64{}
	for _, v := range s.array.Volumes() {
		sizes[v.Name] += v.Size
	}
	if fmt.Sprint(sizes) != "map[pvc-1:2 pvc-2:4 pvc-3:5]" {
		s.t.Errorf("on the array: %v", sizes)
	}
	if n := len(s.array.Changes("POST /api/volumes/*/expand.json")); n != 2 {
		s.t.Errorf("%d expansions, want 2", n)
	}
	if len(s.array.Attachments()) != 2 || len(s.array.Servers()) != 1 || len(s.array.Snapshots()) != 1 {
		s.t.Errorf("on the array: %+v, %+v, %+v", s.array.Attachments(), s.array.Servers(), s.array.Snapshots())
	}
	s.detaches("pvc-2")
	s.detaches("pvc-1")
	s.call("delete the snapshot", func(ctx context.Context, c csi.ControllerClient) error {
		_, err := c.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: "snapshot-1"})
		return err
	})
	for _, id := range []string{"pvc-3", "pvc-2", "pvc-1"} {
		s.deletes(id)
	}
	if left := len(s.array.Volumes()) + len(s.array.Servers()) + len(s.array.Snapshots()); left > 0 {
		s.t.Errorf("left on the array: %+v, %+v, %+v", s.array.Volumes(), s.array.Servers(), s.array.Snapshots())
	}
	for _, list := range []client.ObjectList{&v1alpha1.PoolVolumeList{}, &v1alpha1.PoolSnapshotList{}, &v1alpha1.PoolAttachmentList{}} {
		must(s.t, s.kube.List(s.t.Context(), list))
		if n := meta.LenList(list); n > 0 {
			s.t.Errorf("%d left of %T", n, list)
		}
	}
}

// ofTheStory are the points at which the controller changes volumes, snapshots and attachments; pools
// are changed in their own time.
var ofTheStory = regexp.MustCompile(`^(before|after) (vpsa/\S+|api/\w+:Pool(Volume|Snapshot|Attachment))$`)

// TestCrashAtEveryPoint ends the controller by SIGKILL at every point that the story reaches, starts it
// again, and goes on with the story.
func TestCrashAtEveryPoint(t *testing.T) {
	clean := newStory(t)
	clean.play()
	trace, err := os.ReadFile(filepath.Join(clean.points, "trace"))
	must(t, err)
	times, played := map[string]int{}, 0
	for line := range strings.Lines(string(trace)) {
		point := strings.TrimSpace(line)
		if !ofTheStory.MatchString(point) {
			continue
		}
		times[point]++
		n := times[point]
		played++
		t.Run(fmt.Sprintf("%s, time %d", point, n), func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			kill := filepath.Join(s.points, "kill")
			must(t, os.WriteFile(kill, fmt.Appendln(nil, point, n), 0o600))
			s.play()
			if _, err := os.Lstat(kill); !errors.Is(err, fs.ErrNotExist) || s.started != 2 {
				t.Errorf("the controller was started %d times, and did not end at the point", s.started)
			}
		})
	}
	t.Logf("%d crashes at %d points", played, len(times))
	if played < 40 {
		t.Errorf("only %d crashes", played)
	}
}
