package metrics_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// names are all metrics of Katbox. Dashboards and alerts use them, so none may change by
// mistake.
var names = []string{
	"katbox_actor_restarts_total counter",
	"katbox_array_csi_operation_duration_seconds histogram",
	"katbox_array_csi_operations_in_flight gauge",
	"katbox_array_node_known gauge",
	"katbox_array_registered gauge",
	"katbox_array_sessions gauge",
	"katbox_array_staged_volumes gauge",
	"katbox_array_waiting_operations gauge",
	"katbox_array_waiting_since_timestamp_seconds gauge",
	"katbox_attached_bytes gauge",
	"katbox_attached_late_volumes gauge",
	"katbox_attached_volumes gauge",
	"katbox_broken_guarantees_total counter",
	"katbox_build_info gauge",
	"katbox_controller_asked_total counter",
	"katbox_controller_connected gauge",
	"katbox_controller_connects_total counter",
	"katbox_csi_operation_duration_seconds histogram",
	"katbox_csi_operations_in_flight gauge",
	"katbox_deadline_lateness_seconds histogram",
	"katbox_erased_entries_total counter",
	"katbox_erased_volumes_total counter",
	"katbox_evictions_stopped gauge",
	"katbox_evictions_total counter",
	"katbox_filesystem_errors_total counter",
	"katbox_filesystem_floor_bytes gauge",
	"katbox_filesystem_floor_inodes gauge",
	"katbox_filesystem_free_bytes gauge",
	"katbox_filesystem_free_inodes gauge",
	"katbox_filesystem_headroom_bytes gauge",
	"katbox_filesystem_headroom_inodes gauge",
	"katbox_filesystem_inodes gauge",
	"katbox_filesystem_size_bytes gauge",
	"katbox_gateway_asked_total counter",
	"katbox_gateway_asks_total counter",
	"katbox_gateway_connected gauge",
	"katbox_gateway_connects_total counter",
	"katbox_kubelet_line_bytes gauge",
	"katbox_kubelet_line_inodes gauge",
	"katbox_local_csi_operation_duration_seconds histogram",
	"katbox_local_csi_operations_in_flight gauge",
	"katbox_local_operation_duration_seconds histogram",
	"katbox_local_pool_bytes gauge",
	"katbox_local_pool_up gauge",
	"katbox_local_registered gauge",
	"katbox_local_snapshots gauge",
	"katbox_local_volumes gauge",
	"katbox_log_lines_dropped_total counter",
	"katbox_mounts gauge",
	"katbox_outcome_source_up gauge",
	"katbox_outcomes_total counter",
	"katbox_parked_volumes gauge",
	"katbox_pinned_bytes gauge",
	"katbox_pinned_volumes gauge",
	"katbox_pods_directory_entries gauge",
	"katbox_policy_file_good gauge",
	"katbox_pressure_factor gauge",
	"katbox_pressure_ratio gauge",
	"katbox_quota_foreign_projects gauge",
	"katbox_quota_limits_changed_total counter",
	"katbox_quota_not_enforced_total counter",
	"katbox_quota_projects gauge",
	"katbox_quota_stray_volumes gauge",
	"katbox_read_bytes_total counter",
	"katbox_read_leases gauge",
	"katbox_read_requests_total counter",
	"katbox_read_streams gauge",
	"katbox_read_streams_refused_total counter",
	"katbox_records_durable_seconds gauge",
	"katbox_records_wait gauge",
	"katbox_registered gauge",
	"katbox_retained_bytes gauge",
	"katbox_retained_unmeasured_volumes gauge",
	"katbox_retention_kept_ratio histogram",
	"katbox_store_commit_changes histogram",
	"katbox_store_commit_duration_seconds histogram",
	"katbox_store_commit_errors_total counter",
	"katbox_store_reserved gauge",
	"katbox_stuck_volumes gauge",
	"katbox_trash_entries gauge",
	"katbox_trash_set_aside_entries gauge",
	"katbox_unmount_retries_total counter",
	"katbox_unmounted_volumes gauge",
	"katbox_volumes gauge",
}

// everything returns the metrics of a daemon after one event of each kind.
func everything() *metrics.Metrics {
	m := metrics.New("v1.2.3", "0123abc")
	publish := m.Method("NodePublishVolume")
	publish.CallBegan()
	publish.CallBegan()
	publish.CallBegan()
	publish.CallEnded("OK", 3*time.Millisecond)
	publish.CallEnded("Aborted", 3*time.Second)
	published := &volume.Record{Phase: volume.Published, Targets: []volume.Target{{Path: "/a"}, {Path: "/b"}}}
	retained := &volume.Record{Phase: volume.Retained}
	m.VolumeChanged(nil, published)
	m.VolumeChanged(nil, published)
	m.VolumeChanged(published, retained)
	m.VolumeChanged(retained, &volume.Record{Phase: volume.Deleting})
	deleted := func(reason volume.Reason, kept, late time.Duration) {
		m.VolumeDeleted(volume.Tombstone{Record: volume.Record{Lifespan: time.Hour}, Reason: reason, Kept: kept}, late)
	}
	deleted(volume.Expired, 2*time.Hour, time.Second)
	deleted(volume.Expired, time.Hour, -time.Second)
	deleted(volume.ForBytes, 6*time.Minute, time.Second)
	deleted(volume.ForInodes, 0, -time.Hour)
	deleted(volume.Purged, 0, 0)
	deleted(volume.ForReleased, 0, 0)
	deleted(volume.Interrupted, 0, 0)
	deleted(volume.Reason(99), 0, 0)
	m.RetainedBytes(4096)
	m.Waits(true)
	m.RetainedUnmeasured(7)
	m.UnmountRetried()
	m.VolumeStuck(volume.Unknown, volume.Unpublishing)
	m.VolumeStuck(volume.Unknown, volume.Unpublishing)
	m.VolumeStuck(volume.Unpublishing, volume.Deleting)
	m.VolumeParked()
	m.VolumeParked()
	m.VolumeUnparked()
	m.ActorRestarted()
	m.TrashHolds(5, 2)
	m.EvictionsStopped(true)
	m.EntriesErased(256)
	m.VolumeErased()
	m.DiskMeasured(0.5, volume.Space{Total: volume.Size{Bytes: 1000, Inodes: 10}, Free: volume.Size{Bytes: 50, Inodes: 9}},
		volume.Size{Bytes: 15}, volume.Size{Bytes: 20}, volume.Size{Bytes: 100, Inodes: 1})
	m.Committed(20*time.Millisecond, 3, nil)
	m.Committed(time.Minute, 1, errors.New("broken disk"))
	m.Reserved(true)
	m.PodsSeen(110)
	m.Registered(true)
	m.PolicyRead(false)
	m.LogLineDropped()
	m.StreamBegan()
	m.StreamBegan()
	m.StreamEnded()
	m.StreamRefused()
	m.BytesRead(512)
	m.ReadRequested("bytes", "complete")
	m.OutcomeSource("kubelet", true)
	m.GatewayTellsOutcomes("gateway")
	m.GatewayConnected(1)
	m.GatewayConnected(1)
	m.GatewayConnected(-1)
	m.GatewayAttempted("refused")
	m.GatewayAsked()
	m.ControllerConnected(2)
	m.ControllerConnected(-1)
	m.ControllerAttempted("busy")
	m.ControllerAsked()
	m.OwnerAsks("sent", 7)
	m.ArraysServed()
	stage := m.ArrayMethod("NodeStageVolume")
	stage.CallBegan()
	stage.CallBegan()
	stage.CallEnded("Unavailable", 10*time.Second)
	m.ArrayRegistered(true)
	m.ArrayNodeKnown(true)
	m.ArrayStaged("nfs", 2)
	m.ArrayStaged("nfs", -1)
	m.ArraySessions(3, 1)
	m.ArrayWaits(2, time.UnixMilli(1500))
	m.LocalServed()
	m.LocalMethod("NodeStageVolume").CallEnded("OK", time.Second)
	m.LocalRegistered(true)
	m.LocalOperation("make", time.Second, nil)
	m.LocalOperation("make", time.Second, errors.New("no room"))
	pool := local.Pool{Class: "fast", Path: "/mnt", Total: 3, Free: 2, Provisioned: 1}
	m.LocalPool(pool, local.Counts{Ready: 4, Retained: 3, Unfinished: 2, Snapshots: 1}, true)
	return m
}

func TestEverythingIsCountedUnderItsName(t *testing.T) {
	m := everything()
	metricstest.Of(t, m).Want(t, "after everything", metricstest.Values{
		`katbox_local_csi_operation_duration_seconds_count{code="OK",method="NodeStageVolume"}`: 1,
		`katbox_local_registered`: 1,
		`katbox_local_operation_duration_seconds_count{operation="make",result="ok"}`:    1,
		`katbox_local_operation_duration_seconds_count{operation="make",result="error"}`: 1,
		`katbox_local_pool_up{class="fast",path="/mnt"}`:                                 1,
		`katbox_local_pool_bytes{class="fast",kind="size",path="/mnt"}`:                  3,
		`katbox_local_pool_bytes{class="fast",kind="free",path="/mnt"}`:                  2,
		`katbox_local_pool_bytes{class="fast",kind="promised",path="/mnt"}`:              1,
		`katbox_local_volumes{class="fast",path="/mnt",state="ready"}`:                   4,
		`katbox_local_volumes{class="fast",path="/mnt",state="retained"}`:                3,
		`katbox_local_volumes{class="fast",path="/mnt",state="unfinished"}`:              2,
		`katbox_local_snapshots{class="fast",path="/mnt"}`:                               1,

		`katbox_csi_operations_in_flight`: 1,
		`katbox_csi_operation_duration_seconds_bucket{code="OK",method="NodePublishVolume",le="0.0025"}`: 0,
		`katbox_csi_operation_duration_seconds_bucket{code="OK",method="NodePublishVolume",le="0.005"}`:  1,
		`katbox_csi_operation_duration_seconds_sum{code="Aborted",method="NodePublishVolume"}`:           3,
		`katbox_csi_operation_duration_seconds_count{code="Aborted",method="NodePublishVolume"}`:         1,

		`katbox_volumes{phase="Published"}`:  1,
		`katbox_volumes{phase="Retained"}`:   0,
		`katbox_volumes{phase="Deleting"}`:   1,
		`katbox_mounts`:                      2,
		`katbox_records_wait`:                1,
		`katbox_records_durable_seconds`:     0,
		`katbox_retained_bytes`:              4096,
		`katbox_retained_unmeasured_volumes`: 7,

		`katbox_evictions_total{reason="expired"}`: 2,
		`katbox_evictions_total{reason="bytes"}`:   1,
		`katbox_evictions_total{reason="inodes"}`:  1,
		`katbox_deadline_lateness_seconds_count`:   1,
		`katbox_deadline_lateness_seconds_sum`:     1,

		`katbox_retention_kept_ratio_count`:             4,
		`katbox_retention_kept_ratio_sum`:               2.1,
		`katbox_retention_kept_ratio_bucket{le="0.01"}`: 1,
		`katbox_retention_kept_ratio_bucket{le="0.1"}`:  2,
		`katbox_retention_kept_ratio_bucket{le="0.99"}`: 2,

		`katbox_unmount_retries_total`:               1,
		`katbox_stuck_volumes{phase="Unpublishing"}`: 1,
		`katbox_stuck_volumes{phase="Deleting"}`:     1,
		`katbox_parked_volumes`:                      1,
		`katbox_actor_restarts_total`:                1,

		`katbox_trash_entries`:           5,
		`katbox_trash_set_aside_entries`: 2,
		`katbox_evictions_stopped`:       1,
		`katbox_erased_entries_total`:    256,
		`katbox_erased_volumes_total`:    1,

		`katbox_pressure_factor`:            0.5,
		`katbox_pressure_ratio`:             0.5,
		`katbox_filesystem_size_bytes`:      1000,
		`katbox_filesystem_free_bytes`:      50,
		`katbox_filesystem_headroom_bytes`:  100,
		`katbox_filesystem_inodes`:          10,
		`katbox_filesystem_free_inodes`:     9,
		`katbox_filesystem_headroom_inodes`: 1,
		`katbox_filesystem_errors_total`:    0,
		`katbox_filesystem_floor_bytes`:     20,
		`katbox_filesystem_floor_inodes`:    0,
		`katbox_kubelet_line_bytes`:         15,
		`katbox_kubelet_line_inodes`:        0,

		`katbox_store_commit_duration_seconds_count`: 2,
		`katbox_store_commit_duration_seconds_sum`:   60.02,
		`katbox_store_commit_changes_sum`:            4,
		`katbox_store_commit_errors_total`:           1,
		`katbox_store_reserved`:                      1,

		`katbox_pods_directory_entries`: 110,
		`katbox_registered`:             1,

		`katbox_array_csi_operation_duration_seconds_count{code="Unavailable",method="NodeStageVolume"}`: 1,

		`katbox_array_csi_operations_in_flight`:         1,
		`katbox_array_registered`:                       1,
		`katbox_array_node_known`:                       1,
		`katbox_array_staged_volumes{protocol="nfs"}`:   1,
		`katbox_array_staged_volumes{protocol="iscsi"}`: 0,
		`katbox_array_sessions{state="up"}`:             3,
		`katbox_array_sessions{state="down"}`:           1,
		`katbox_array_waiting_operations`:               2,
		`katbox_array_waiting_since_timestamp_seconds`:  1.5,

		`katbox_log_lines_dropped_total`: 1,

		`katbox_read_streams`:                                         1,
		`katbox_read_streams_refused_total`:                           1,
		`katbox_read_bytes_total`:                                     512,
		`katbox_read_requests_total{outcome="complete",verb="bytes"}`: 1,

		`katbox_controller_connected`:                      1,
		`katbox_controller_connects_total{outcome="busy"}`: 1,
		`katbox_controller_asked_total`:                    1,
		`katbox_gateway_connected`:                         1,
		`katbox_outcome_source_up{source="kubelet"}`:       1,
		`katbox_outcome_source_up{source="gateway"}`:       1,
		`katbox_policy_file_good`:                          0,
		`katbox_gateway_connects_total{outcome="refused"}`: 1,
		`katbox_gateway_asked_total`:                       1,
		`katbox_gateway_asks_total{outcome="sent"}`:        7,
		`katbox_gateway_asks_total{outcome="dropped"}`:     0,
	})
	m.DiskNotMeasured()
	m.Reserved(false)
	m.GatewayConnected(-1)
	metricstest.Of(t, m).Want(t, "a broken disk", metricstest.Values{
		`katbox_pressure_factor`: 1, `katbox_pressure_ratio`: 1, `katbox_filesystem_errors_total`: 1, `katbox_store_reserved`: 0,
		`katbox_outcome_source_up{source="gateway"}`: 0,
	})
}

func TestNothingHasHappenedAtTheStart(t *testing.T) {
	values := metricstest.Of(t, metrics.New("v1.2.3", ""))
	for name, value := range values {
		switch {
		case !strings.HasPrefix(name, "katbox_"), strings.HasPrefix(name, "katbox_build_info{"), name == "katbox_pressure_factor",
			name == "katbox_pressure_ratio":
		case value != 0:
			t.Errorf("%s is %v at the start", name, value)
		}
	}
	values.Want(t, "at the start", metricstest.Values{
		`katbox_pressure_factor`: 1, `katbox_pressure_ratio`: 1,
		`katbox_evictions_total{reason="inodes"}`: 0, `katbox_volumes{phase="Retained"}`: 0,
	})
	if _, there := values["katbox_registered"]; there {
		t.Error("katbox_registered exists though the daemon does not register itself")
	}
	for name := range values {
		if strings.HasPrefix(name, "katbox_array") {
			t.Errorf("%s exists though the daemon serves no arrays", name)
		}
	}
}

// TestNames: there are no others, except those of Go and of the process.
func TestNames(t *testing.T) {
	if others := metricstest.WantNames(t, everything(), names); others < 20 {
		t.Errorf("%d metrics of Go and of the process", others)
	}
}

func TestBuildInfo(t *testing.T) {
	for name, value := range metricstest.Of(t, everything()) {
		if regexp.MustCompile(`^katbox_build_info\{goversion="go.+",revision="0123abc",version="v1\.2\.3"\}$`).MatchString(name) && value == 1 {
			return
		}
	}
	t.Error("no katbox_build_info with version, revision and version of Go")
}

func TestReferenceNamesEveryMetric(t *testing.T) { metricstest.WantExplained(t, "../../..", names) }

// slowReader is a client that reads nothing of an answer before letGo is closed.
type slowReader struct {
	http.ResponseWriter
	asked chan struct{}
	letGo chan struct{}
}

func (r *slowReader) Write(part []byte) (int, error) {
	select {
	case r.asked <- struct{}{}:
		<-r.letGo
	case <-r.letGo:
	}
	return len(part), nil
}

// TestSlowReadersBlockNoOthers: no matter how many there are.
func TestSlowReadersBlockNoOthers(t *testing.T) {
	handler := metrics.New("", "").Handler()
	asked, letGo := make(chan struct{}), make(chan struct{})
	var slow sync.WaitGroup
	defer slow.Wait()
	defer close(letGo)
	for range 50 {
		slow.Go(func() {
			reader := &slowReader{ResponseWriter: httptest.NewRecorder(), asked: asked, letGo: letGo}
			handler.ServeHTTP(reader, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		})
		<-asked
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Errorf("%d %s, want an answer", answer.Code, answer.Body)
	}
}
