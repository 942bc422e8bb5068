package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/katbox/katbox/internal/model/volume"
)

// archive are metrics of the copies of retained volumes. They have no values where nothing is archived.
type archive struct {
	// These have no labels and at most one value.
	volumesWaiting, bytesWaiting, oldestWait *prometheus.GaugeVec
	unconfirmed                              *prometheus.GaugeVec
	volumes, bytes, uploaded, failures       *prometheus.CounterVec
}

// archiveReasons are why a try fails.
var archiveReasons = []string{"gateway", "refused", "forbidden", "bucket", "slow", "too_large", "not_a_kubelets", "unreadable"}

func newArchive(r *prometheus.Registry) archive {
	const absent = "; absent with --archive=Never."
	return archive{
		volumesWaiting: gaugeVec(r, "archive_volumes_waiting", "Retained volumes that wait to be archived, or are being copied"+absent),
		bytesWaiting:   gaugeVec(r, "archive_bytes_waiting", "What the volumes that wait take on the disk, as far as that is known"+absent),
		oldestWait: gaugeVec(r, "archive_oldest_wait_seconds",
			"How long ago the first of the volumes that wait to be archived was retained, 0 if none waits"+absent),
		unconfirmed: gaugeVec(r, "archive_volumes_unconfirmed", "Retained volumes that would be archived if a gateway had confirmed whose "+
			"they are, by reason: unanswered (none has answered) or denied (the API server knew no such pod on the node)"+absent, "reason"),
		volumes:  counterVec(r, "archive_volumes_total", "Volumes that were archived"+absent),
		bytes:    counterVec(r, "archive_bytes_total", "Bytes of the volumes that were archived, before compression"+absent),
		uploaded: counterVec(r, "archive_uploaded_bytes_total", "Bytes that were uploaded to the bucket"+absent),
		failures: counterVec(r, "archive_failures_total",
			"Tries to archive a volume that failed, by reason: "+strings.Join(archiveReasons, ", ")+absent, "reason"),
	}
}

// ArchiveWaiting says what waits to be archived.
func (m *Metrics) ArchiveWaiting(w volume.Waiting) {
	wait := 0.0
	if !w.Oldest.IsZero() {
		wait = max(time.Since(w.Oldest).Seconds(), 0)
	}
	m.archive.volumesWaiting.WithLabelValues().Set(float64(w.Volumes))
	m.archive.bytesWaiting.WithLabelValues().Set(float64(w.Bytes))
	m.archive.oldestWait.WithLabelValues().Set(wait)
	m.archive.unconfirmed.WithLabelValues("unanswered").Set(float64(w.Unanswered))
	m.archive.unconfirmed.WithLabelValues("denied").Set(float64(w.Denied))
	for _, counter := range []*prometheus.CounterVec{m.archive.volumes, m.archive.bytes, m.archive.uploaded} {
		counter.WithLabelValues().Add(0)
	}
	for _, reason := range archiveReasons {
		m.archive.failures.WithLabelValues(reason)
	}
}

// VolumeArchived counts a volume that was archived, with the bytes of its tar.
func (m *Metrics) VolumeArchived(bytes int64) {
	m.archive.volumes.WithLabelValues().Inc()
	m.archive.bytes.WithLabelValues().Add(float64(bytes))
}

// ArchiveUploaded counts an object that was uploaded.
func (m *Metrics) ArchiveUploaded(bytes int) {
	m.archive.uploaded.WithLabelValues().Add(float64(bytes))
}

// ArchiveFailed counts a try that failed.
func (m *Metrics) ArchiveFailed(reason string) { m.archive.failures.WithLabelValues(reason).Inc() }
