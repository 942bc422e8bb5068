package inline

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

func calls(method, code string) string {
	return `katbox_csi_operation_duration_seconds_count{code="` + code + `",method="` + method + `"}`
}

func TestCallsAreCountedByMethodAndCode(t *testing.T) {
	counted := metrics.New("test", "")
	volumes := &fakeVolumes{}
	server, conn, served := startCounted(t, volumes, logr.Discard(), counted)
	node, identity := csi.NewNodeClient(conn), csi.NewIdentityClient(conn)
	publish := func() { _, _ = node.NodePublishVolume(t.Context(), publishRequest()) }
	publish()
	publish()
	volumes.err = volume.ErrBusy
	publish()
	volumes.err = volume.ErrFailed
	publish()
	_, _ = node.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{})
	_, _ = node.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{})
	_, _ = identity.GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
	// This service is not ours and is not served.
	_ = conn.Invoke(t.Context(), "/grpc.health.v1.Health/Check", &csi.ProbeRequest{}, &csi.ProbeResponse{})
	if err := errors.Join(conn.Close(), server.Stop(context.Background()), <-served); err != nil {
		t.Fatal(err)
	}

	got := metricstest.Of(t, counted)
	want := metricstest.Values{
		calls("NodePublishVolume", "OK"):              2,
		calls("NodePublishVolume", "Aborted"):         1,
		calls("NodePublishVolume", "Internal"):        1,
		calls("NodePublishVolume", "InvalidArgument"): 1,
		calls("NodeStageVolume", "Unimplemented"):     1,
		calls("GetPluginInfo", "OK"):                  1,
	}
	got.Want(t, "after the calls", want)
	got.Want(t, "after the calls", metricstest.Values{"katbox_csi_operations_in_flight": 0})
	all := 0.0
	for name, value := range got {
		if strings.HasPrefix(name, "katbox_csi_operation_duration_seconds_count{") {
			all += value
		}
	}
	if all != 7 {
		t.Errorf("%v calls were counted, want 7", all)
	}
}
