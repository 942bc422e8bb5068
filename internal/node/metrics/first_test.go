package metrics

import (
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// TestCountersBeginAtZero: the counters of what is kept of logs and of the archive are there before their first event, once these
// are on, and not before. Prometheus sees no increase in one that appears with it, so the first loss would be on no dashboard.
func TestCountersBeginAtZero(t *testing.T) {
	m := New("v1.2.3", "0123abc")
	for name := range metricstest.Of(t, m) {
		if strings.HasPrefix(name, "katbox_logs_") || strings.HasPrefix(name, "katbox_archive_") {
			t.Errorf("%s is there though neither is on", name)
		}
	}
	m.LogsFollowed()
	m.ArchiveWaiting(volume.Waiting{})
	want := metricstest.Values{"katbox_logs_kept_bytes_total": 0, "katbox_logs_missing_bytes_total": 0}
	for _, result := range []string{"whole", "cut", "failed"} {
		want[`katbox_logs_kept_total{result="`+result+`"}`] = 0
	}
	for _, reason := range archiveReasons {
		want[`katbox_archive_failures_total{reason="`+reason+`"}`] = 0
	}
	metricstest.Of(t, m).Want(t, "before the first event", want)
}
