package gatewaymetrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// names are all metrics of the gateway. Dashboards and alerts use them, so none may change by
// mistake.
var names = []string{
	"katbox_gateway_access_reviews_total counter",
	"katbox_gateway_archive_bucket_up gauge",
	"katbox_gateway_archive_checksums_heeded gauge",
	"katbox_gateway_archive_deleted_total counter",
	"katbox_gateway_archive_dropped_keys_total counter",
	"katbox_gateway_archive_reads_total counter",
	"katbox_gateway_archive_sweeps_total counter",
	"katbox_gateway_archive_uploads_total counter",
	"katbox_gateway_build_info gauge",
	"katbox_gateway_certificate_end_timestamp_seconds gauge",
	"katbox_gateway_dropped_entries_total counter",
	"katbox_gateway_incomplete_lists_total counter",
	"katbox_gateway_list_duration_seconds histogram",
	"katbox_gateway_list_missing_nodes_total counter",
	"katbox_gateway_log_lines_dropped_total counter",
	"katbox_gateway_node_connections_total counter",
	"katbox_gateway_node_holds_total counter",
	"katbox_gateway_nodes_connected gauge",
	"katbox_gateway_nodes_connected_here gauge",
	"katbox_gateway_nodes_expected gauge",
	"katbox_gateway_nodes_held gauge",
	"katbox_gateway_outcome_source_up gauge",
	"katbox_gateway_pod_events_total counter",
	"katbox_gateway_pod_lookups_total counter",
	"katbox_gateway_pod_outcomes_total counter",
	"katbox_gateway_replicas gauge",
	"katbox_gateway_requests_total counter",
	"katbox_gateway_stream_bytes_total counter",
	"katbox_gateway_streams gauge",
	"katbox_gateway_token_reviews_total counter",
	"katbox_gateway_tokens_read_total counter",
}

// everything makes one event of each kind happen.
func everything(m *gatewaymetrics.Metrics) {
	m.CountNodes(func() (expected, connected int) { return 5, 4 }, func() (nodes, replicas int) { return 3, 2 })
	m.ConnectionAsked(gatewaymetrics.Accepted)
	m.ConnectionAsked(gatewaymetrics.Busy)
	m.TokenReviewed(gatewaymetrics.Refused)
	m.TokenRead()
	m.AccessReviewed(gatewaymetrics.Failed)
	m.PodLookedUp(gatewaymetrics.Contradicted)
	m.OutcomesTold(gatewaymetrics.Accepted, 7)
	m.OutcomesTold(gatewaymetrics.Forgotten, 1)
	m.PodEvent(gatewaymetrics.Written)
	m.PodEvent(gatewaymetrics.Limited)
	m.Holds()
	m.Holds()
	m.NodesHeld(3)
	m.NodeHold(gatewaymetrics.Began)
	m.NodeHold(gatewaymetrics.Failed)
	m.OutcomeSource(false)
	m.OutcomeSource(true)
	m.Listed(20*time.Millisecond, 0)
	m.Listed(3*time.Second, 2)
	m.EntriesDropped(3)
	m.StreamBegan()
	m.StreamBegan()
	m.StreamEnded()
	m.BytesSent(512)
	m.Requested("list", "retainedvolumes", 200)
	m.CertificateEnds(gatewaymetrics.Serving, time.Unix(1000, 0))
	m.LogLineDropped()
	m.Archives()
	m.BucketUp(true)
	m.ChecksumsHeeded(false)
	m.UploadSigned(gatewaymetrics.Signed)
	m.ArchiveDeleted(gatewaymetrics.Piece)
	m.ArchiveSwept(gatewaymetrics.Done)
	m.ArchiveRead(gatewaymetrics.Failed)
	m.KeysDropped(2)
}

func TestEverythingIsCountedUnderItsName(t *testing.T) {
	m := gatewaymetrics.New("v1.2.3", "0123abc")
	everything(m)
	metricstest.Of(t, m).Want(t, "after everything", metricstest.Values{
		`katbox_gateway_archive_bucket_up`: 1, `katbox_gateway_archive_checksums_heeded`: 0,
		`katbox_gateway_archive_uploads_total{outcome="signed"}`: 1, `katbox_gateway_archive_uploads_total{outcome="refused"}`: 0,
		`katbox_gateway_archive_deleted_total{object="piece"}`: 1, `katbox_gateway_archive_sweeps_total{outcome="done"}`: 1,
		`katbox_gateway_archive_reads_total{outcome="failed"}`: 1, `katbox_gateway_archive_dropped_keys_total`: 2,
		`katbox_gateway_nodes_expected`:                                                    5,
		`katbox_gateway_nodes_connected`:                                                   4,
		`katbox_gateway_nodes_connected_here`:                                              3,
		`katbox_gateway_replicas`:                                                          2,
		`katbox_gateway_node_connections_total{outcome="accepted"}`:                        1,
		`katbox_gateway_node_connections_total{outcome="busy"}`:                            1,
		`katbox_gateway_node_connections_total{outcome="refused"}`:                         0,
		`katbox_gateway_node_holds_total{outcome="began"}`:                                 1,
		`katbox_gateway_node_holds_total{outcome="ended"}`:                                 0,
		`katbox_gateway_node_holds_total{outcome="failed"}`:                                1,
		`katbox_gateway_nodes_held`:                                                        3,
		`katbox_gateway_token_reviews_total{outcome="refused"}`:                            1,
		`katbox_gateway_access_reviews_total{outcome="failed"}`:                            1,
		`katbox_gateway_pod_lookups_total{outcome="contradicted"}`:                         1,
		`katbox_gateway_pod_outcomes_total{outcome="accepted"}`:                            7,
		`katbox_gateway_pod_outcomes_total{outcome="forgotten"}`:                           1,
		`katbox_gateway_pod_outcomes_total{outcome="refused"}`:                             0,
		`katbox_gateway_pod_events_total{outcome="written"}`:                               1,
		`katbox_gateway_pod_events_total{outcome="limited"}`:                               1,
		`katbox_gateway_pod_events_total{outcome="failed"}`:                                0,
		`katbox_gateway_outcome_source_up`:                                                 1,
		`katbox_gateway_list_duration_seconds_count`:                                       2,
		`katbox_gateway_list_duration_seconds_sum`:                                         3.02,
		`katbox_gateway_incomplete_lists_total`:                                            1,
		`katbox_gateway_list_missing_nodes_total`:                                          2,
		`katbox_gateway_dropped_entries_total`:                                             3,
		`katbox_gateway_streams`:                                                           1,
		`katbox_gateway_stream_bytes_total`:                                                512,
		`katbox_gateway_requests_total{code="200",resource="retainedvolumes",verb="list"}`: 1,
		`katbox_gateway_certificate_end_timestamp_seconds{certificate="serving"}`:          1000,
		`katbox_gateway_log_lines_dropped_total`:                                           1,
	})
}

// TestNothingOfWhatIsOff: without an archive, and without nodes that are held, nothing is there of either.
func TestNothingOfWhatIsOff(t *testing.T) {
	for name := range metricstest.Of(t, gatewaymetrics.New("v1.2.3", "0123abc")) {
		if strings.Contains(name, "archive") || strings.Contains(name, "held") || strings.Contains(name, "hold") {
			t.Errorf("%s is there", name)
		}
	}
}

// TestNoMetrics: what counts works without something that is counted with.
func TestNoMetrics(*testing.T) { everything(nil) }

// TestNames: there are no others.
func TestNames(t *testing.T) {
	m := gatewaymetrics.New("v1.2.3", "0123abc")
	everything(m)
	metricstest.WantNames(t, m, names)
}

func TestReferenceNamesEveryMetric(t *testing.T) { metricstest.WantExplained(t, "../../..", names) }
