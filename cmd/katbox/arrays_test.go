package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// TestNothingOfArraysWithoutThem: no metric, no line of the log, no file.
func TestNothingOfArraysWithoutThem(t *testing.T) {
	d := newRegisteringDaemon(t)
	d.start()
	d.publish(testPod, volumeID(1))
	for name := range d.metrics() {
		if strings.HasPrefix(name, "katbox_array") {
			t.Errorf("there is %s", name)
		}
	}
	d.unpublish(testPod, volumeID(1))
	d.signal(syscall.SIGTERM)
	if d.logged("arrays") || exists(filepath.Join(d.dir, "array")) {
		t.Errorf("something is done for arrays:\n%s", d.stdout)
	}
}

// TestInlineVolumesBesideArrays: an API server that hangs delays and stops nothing of inline volumes, and not the
// registration of the other driver.
func TestInlineVolumesBesideArrays(t *testing.T) {
	d := newRegisteringDaemon(t)
	a := &arrayDaemon{daemon: d}
	a.servesArrays(silentServer(t))
	a.flags = append(a.flags, "--array-max-volumes", "7")
	d.start()
	d.eventually("registering", func() bool { return exists(d.registrationSocket()) })
	d.register("")
	d.wantRegistered("")
	d.publish(testPod, volumeID(1))
	d.writeMarker(testPod)
	d.wantAnswer("/healthz", http.StatusOK, "")

	other := filepath.Join(d.dir, "reg", "array.csi.katbox.io-reg.sock")
	d.eventually("registering the driver of the arrays", func() bool { return exists(other) })
	d.metrics().Want(t, "before it is registered", metricstest.Values{
		"katbox_registered": 1, "katbox_array_registered": 0, "katbox_array_node_known": 0, `katbox_array_sessions{state="down"}`: 0,
	})
	info := d.registerAt(other, "")
	if info.Name != "array.csi.katbox.io" || info.Endpoint != a.arraySocket() {
		t.Errorf("it registers as %v", info)
	}
	d.metrics().Want(t, "registered", metricstest.Values{"katbox_registered": 1, "katbox_array_registered": 1})
	node, err := a.arrayNode.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil || node.GetNodeId() != "node-1" || node.GetMaxVolumesPerNode() != 7 {
		t.Errorf("%v, %v", node, err)
	}
	if _, err := a.arrayNode.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: "pvc-1"}); status.Code(err) !=
		codes.InvalidArgument {
		t.Errorf("a stage without a path: %v, want InvalidArgument", err)
	}
	d.metrics().Want(t, "after the calls", metricstest.Values{
		`katbox_array_csi_operation_duration_seconds_count{code="InvalidArgument",method="NodeStageVolume"}`: 1,
		`katbox_array_csi_operations_in_flight`: 0,
	})
	d.crash()
	d.wantMarker(testPod, volumeID(1), "after a crash")
	d.registerAt(other, "") // it takes over what the dead one has left
	d.unpublish(testPod, volumeID(1))
	if code := d.signal(syscall.SIGTERM); code != 0 || exists(other) || exists(a.arraySocket()) || d.stderr.String() != "" {
		t.Errorf("after SIGTERM: exit code %d, stderr %q, and sockets may be left", code, d.stderr)
	}
}

// TestServesArraysOnceItCan: what is in the way of them is not in the way of inline volumes.
func TestServesArraysOnceItCan(t *testing.T) {
	a := newArrayDaemon(t, silentServer(t))
	must(t, os.MkdirAll(filepath.Dir(a.arraySocket()), 0o750))
	must(t, os.WriteFile(a.arraySocket(), nil, 0o600))
	a.start()
	a.publish(testPod, volumeID(1))
	a.eventually("saying what is in the way", func() bool { return a.logged("volumes of arrays are not served", "not a socket") })
	must(t, os.Remove(a.arraySocket()))
	if _, err := a.arrayNode.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}); err != nil {
		t.Error(err)
	}
	// The kubelet's directory may be emptied under the daemon.
	must(t, os.Remove(a.arraySocket()))
	a.eventually("made anew", func() bool { return exists(a.arraySocket()) })
	a.unpublish(testPod, volumeID(1))
}

// notThere is a volume that no server has.
func notThere() pools.Attachment {
	return pools.Attachment{Volume: "pvc-1", Node: "node-1", Protocol: pools.NFS, Export: "127.0.0.1:/not-there"}
}

// TestStageThatFailsLeavesNothing: the server is not there, nor the kernel's NFS on most machines.
func TestStageThatFailsLeavesNothing(t *testing.T) {
	a := newArrayDaemon(t, silentServer(t))
	a.start()
	at := notThere()
	if err := a.volume(at, false).Stage(t.Context()); err == nil {
		t.Fatal("staged from a server that is not there")
	}
	if err := a.volume(at, false).Publish(t.Context()); status.Code(err) == codes.OK {
		t.Error("published a volume that is not staged")
	}
	must(t, a.volume(at, false).Unpublish(t.Context()))
	a.eventually("unstaged", func() bool { return a.volume(at, false).Unstage(context.Background()) == nil })
	a.wantNothingLeft("after the unstage")
	must(t, a.volume(at, false).Unstage(t.Context()))
	stats, err := a.arrayNode.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "pvc-1", VolumePath: "/x"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("stats of a volume that is not staged: %v, %v", stats, err)
	}
}
