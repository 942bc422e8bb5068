package metrics

import "github.com/prometheus/client_golang/prometheus"

// gateways are metrics of the connections to the gateway.
type gateways struct {
	connected prometheus.Gauge
	attempts  *prometheus.CounterVec
	asks      *prometheus.CounterVec
	asked     prometheus.Counter
}

func newGateways(r *prometheus.Registry) gateways {
	g := gateways{
		connected: gauge(r, "gateway_connected", "Replicas of the gateway that this node is connected to."),
		attempts: counterVec(r, "gateway_connects_total",
			"Attempts to connect to a replica of the gateway, by outcome: connected, busy, refused or failed.", "outcome"),
		asks: counterVec(r, "gateway_asks_total",
			"Pods whose owner the gateway was asked for: sent, answered, or dropped because too many wait.", "outcome"),
		asked: counter(r, "gateway_asked_total", "Requests that gateways have sent to this node."),
	}
	for _, outcome := range []string{"connected", "busy", "refused", "failed"} {
		g.attempts.WithLabelValues(outcome)
	}
	for _, outcome := range []string{"sent", "answered", "dropped"} {
		g.asks.WithLabelValues(outcome)
	}
	return g
}

// GatewayConnected counts a replica of the gateway that the node is connected to, or with -1 no
// longer.
func (m *Metrics) GatewayConnected(change int) {
	m.connected.Add(float64(change))
	m.gatewayConnected(change)
}

// GatewayAttempted counts an attempt to connect: connected, busy, refused or failed.
func (m *Metrics) GatewayAttempted(outcome string) { m.attempts.WithLabelValues(outcome).Inc() }

// GatewayAsked counts a request of a gateway.
func (m *Metrics) GatewayAsked() { m.asked.Inc() }

// OwnerAsks counts pods whose owner the gateway was asked for: sent, answered or dropped.
func (m *Metrics) OwnerAsks(outcome string, count int) {
	m.asks.WithLabelValues(outcome).Add(float64(count))
}
