package gatewaymetrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Outcomes of an object that a node wants to upload, beside Refused and Failed; and what is deleted of the archive.
const (
	// Signed: the node has a URL for it.
	Signed = "signed"
	// There: the bucket has it already.
	There = "there"
	// Done: a sweep has come to its end.
	Done = "done"
	// Index and Piece are objects of the archive.
	Index = "index"
	Piece = "piece"
)

// archive has what is counted of the archive.
type archive struct {
	// bucketUp and checksums have no value without a bucket.
	bucketUp, checksums             *prometheus.GaugeVec
	uploads, deleted, sweeps, reads *prometheus.CounterVec
	droppedKeys                     prometheus.Counter
}

func newArchive() archive {
	a := archive{
		bucketUp: prometheus.NewGaugeVec(gauge("archive_bucket_up",
			"1 if the bucket of the archive answered when it was last looked at, each minute, else 0; absent without --archive-bucket."), nil),
		checksums: prometheus.NewGaugeVec(gauge("archive_checksums_heeded",
			"1 if the store refuses other bytes than those whose checksum was signed, else 0; absent before that was tried."), nil),
		uploads: prometheus.NewCounterVec(counter("archive_uploads_total",
			"Objects that nodes wanted to upload, by outcome: signed, there already, refused for good, failed for now."), []string{"outcome"}),
		deleted: prometheus.NewCounterVec(counter("archive_deleted_total",
			"Objects of the archive that were deleted because it ended, or has no index, by kind."), []string{"object"}),
		sweeps: prometheus.NewCounterVec(counter("archive_sweeps_total",
			"Searches for what has ended in the archive, by outcome."), []string{"outcome"}),
		reads: prometheus.NewCounterVec(counter("archive_reads_total",
			"Requests for files of archived volumes, by outcome."), []string{"outcome"}),
		droppedKeys: prometheus.NewCounter(counter("archive_dropped_keys_total",
			"Keys in the bucket that were left out of a list because they cannot be true.")),
	}
	for _, outcome := range []string{Signed, There, Refused, Failed} {
		a.uploads.WithLabelValues(outcome)
	}
	for _, object := range []string{Index, Piece} {
		a.deleted.WithLabelValues(object)
	}
	for _, outcome := range []string{Done, Failed} {
		a.sweeps.WithLabelValues(outcome)
		a.reads.WithLabelValues(outcome)
	}
	return a
}

// Archives lets the metrics of the archive be there: there is a bucket for it.
func (m *Metrics) Archives() {
	if m != nil {
		a := &m.archive
		m.archiving.Do(func() {
			m.registry.MustRegister(a.bucketUp, a.checksums, a.uploads, a.deleted, a.sweeps, a.reads, a.droppedKeys)
		})
	}
}

// BucketUp says whether the bucket of the archive has answered.
func (m *Metrics) BucketUp(up bool) {
	if m != nil {
		m.archive.bucketUp.WithLabelValues().Set(number(up))
	}
}

// ChecksumsHeeded says whether the store heeds the checksums that are signed.
func (m *Metrics) ChecksumsHeeded(heeded bool) {
	if m != nil {
		m.archive.checksums.WithLabelValues().Set(number(heeded))
	}
}

// UploadSigned counts an object that a node wanted to upload: Signed, There, Refused or Failed.
func (m *Metrics) UploadSigned(outcome string) {
	if m != nil {
		m.archive.uploads.WithLabelValues(outcome).Inc()
	}
}

// ArchiveDeleted counts an object that was deleted because its time was over: an Index or a Piece.
func (m *Metrics) ArchiveDeleted(object string) {
	if m != nil {
		m.archive.deleted.WithLabelValues(object).Inc()
	}
}

// ArchiveSwept counts a sweep: Done or Failed.
func (m *Metrics) ArchiveSwept(outcome string) {
	if m != nil {
		m.archive.sweeps.WithLabelValues(outcome).Inc()
	}
}

// ArchiveRead counts a request for files of an archived volume: Done or Failed.
func (m *Metrics) ArchiveRead(outcome string) {
	if m != nil {
		m.archive.reads.WithLabelValues(outcome).Inc()
	}
}

// KeysDropped counts keys that cannot be true.
func (m *Metrics) KeysDropped(keys int) {
	if m != nil {
		m.archive.droppedKeys.Add(float64(keys))
	}
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
