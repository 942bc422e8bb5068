package metrics

import "github.com/prometheus/client_golang/prometheus"

// trash is about the data of deleted volumes.
type trash struct {
	entries       prometheus.Gauge
	setAside      prometheus.Gauge
	erasedEntries prometheus.Counter
	erasedVolumes prometheus.Counter
}

func newTrash(r *prometheus.Registry) trash {
	return trash{
		entries:       gauge(r, "trash_entries", "Deleted volumes whose data is not erased yet, but for those set aside."),
		setAside:      gauge(r, "trash_set_aside_entries", "Deleted volumes whose data could not be erased; it is tried again."),
		erasedEntries: counter(r, "erased_entries_total", "Files and directories of deleted volumes that were erased."),
		erasedVolumes: counter(r, "erased_volumes_total", "Deleted volumes whose data was erased."),
	}
}

// TrashHolds sets how many entries of the trash are to be erased, and how many
// could not be.
func (m *Metrics) TrashHolds(entries, setAside int) {
	m.entries.Set(float64(entries))
	m.setAside.Set(float64(setAside))
}

// EntriesErased notes that so many files and directories were erased.
func (m *Metrics) EntriesErased(count int) { m.erasedEntries.Add(float64(count)) }

// VolumeErased notes that all data of a deleted volume was erased.
func (m *Metrics) VolumeErased() { m.erasedVolumes.Inc() }
