package metrics

import "github.com/prometheus/client_golang/prometheus"

// kubelet is about the daemon's only neighbour.
type kubelet struct {
	pods prometheus.Gauge
	// registered has no labels and one value at most: nothing is told of it before
	// it is set.
	registered *prometheus.GaugeVec
}

func newKubelet(r *prometheus.Registry) kubelet {
	return kubelet{
		pods: gauge(r, "pods_directory_entries", "Pods in the kubelet's pods directory when that was last read."),
		registered: gaugeVec(r, "registered",
			"1 when the kubelet has registered the driver, else 0; absent when the daemon does not see to that."),
	}
}

// PodsSeen sets how many pods the kubelet's directory has.
func (m *Metrics) PodsSeen(pods int) { m.pods.Set(float64(pods)) }

// Registered sets whether the kubelet has registered the driver. A daemon that
// leaves that to others never calls it.
func (m *Metrics) Registered(registered bool) {
	m.registered.WithLabelValues().Set(number(registered))
}
