package metrics

import "github.com/prometheus/client_golang/prometheus"

// quotas are metrics of the projects that limit and count what volumes take.
type quotas struct {
	state       *prometheus.GaugeVec
	projects    prometheus.Gauge
	foreign     prometheus.Gauge
	strays      prometheus.Gauge
	notEnforced prometheus.Counter
	changed     prometheus.Counter
}

func newQuotas(r *prometheus.Registry) quotas {
	return quotas{
		state: gaugeVec(r, "quota_state",
			"Always 1; what the working directory's file system does about project quotas: none, accounted or enforced.", "state"),
		projects: gauge(r, "quota_projects",
			"Project IDs that no new volume may get: those of volumes and of the trash, reserved ones, and foreign ones."),
		foreign: gauge(r, "quota_foreign_projects",
			"Project IDs that are set aside, because files that are of no volume with that ID have them, or a limit."),
		strays: gauge(r, "quota_stray_volumes",
			"Volumes whose files do not have the project of their record, as in a copy: they are measured by a walk, and have no limit."),
		notEnforced: counter(r, "quota_not_enforced_total", "Volumes with a limit that were published though nothing enforces it."),
		changed: counter(r, "quota_limits_changed_total",
			"Limits of volumes, also in pools of the node, that another program had changed, and that were set again."),
	}
}

// QuotaIs sets what the file system does about project quotas: none, accounted or enforced. This and what follows
// concern the working directory; the pools on the node's disks count nothing, with a nil *Metrics.
func (m *Metrics) QuotaIs(state string) {
	if m != nil {
		m.quotas.state.WithLabelValues(state).Set(1)
	}
}

// ProjectsTaken sets the number of project IDs that no new volume may get, of those among them
// that are set aside, and of those whose volumes have files of another project.
func (m *Metrics) ProjectsTaken(taken, foreign, strays int) {
	if m != nil {
		m.strays.Set(float64(strays))
		m.projects.Set(float64(taken))
		m.foreign.Set(float64(foreign))
	}
}

// LimitNotEnforced counts a volume whose limit is not enforced.
func (m *Metrics) LimitNotEnforced() {
	if m != nil {
		m.notEnforced.Inc()
	}
}

// LimitChanged counts a limit that another program had changed, of whatever volume.
func (m *Metrics) LimitChanged() { m.changed.Inc() }
