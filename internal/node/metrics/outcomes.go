package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// outcomeSources are metrics of what tells how pods end.
type outcomeSources struct {
	// up has a value for each source that is used.
	up *prometheus.GaugeVec
	// gateway is the gateway's.
	gateway *gatewaySource
}

// gatewaySource is the gateway as a source.
type gatewaySource struct {
	mu sync.Mutex
	// replicas is how many the node is connected to.
	replicas int
	// name is empty if the gateway is not used as a source.
	name string
}

func newOutcomeSources(r *prometheus.Registry) outcomeSources {
	return outcomeSources{gateway: &gatewaySource{}, up: gaugeVec(r, "outcome_source_up",
		"1 if the kubelet tells now how pods end, or a replica of the gateway is connected that may; else 0; "+
			"absent for a source that is not used, and for a kubelet that has never told and need not.", "source")}
}

// OutcomeSource says whether a source of outcomes works now.
func (m *Metrics) OutcomeSource(name string, up bool) { m.up.WithLabelValues(name).Set(number(up)) }

// GatewayTellsOutcomes makes the gateway a source of outcomes with that name. It is up while at least
// one replica is connected.
func (m *Metrics) GatewayTellsOutcomes(name string) {
	m.gateway.mu.Lock()
	defer m.gateway.mu.Unlock()
	m.gateway.name = name
	m.showGateway()
}

// gatewayConnected counts replicas.
func (m *Metrics) gatewayConnected(change int) {
	m.gateway.mu.Lock()
	defer m.gateway.mu.Unlock()
	m.gateway.replicas += change
	m.showGateway()
}

// showGateway is called with the lock.
func (m *Metrics) showGateway() {
	if m.gateway.name != "" {
		m.OutcomeSource(m.gateway.name, m.gateway.replicas > 0)
	}
}
