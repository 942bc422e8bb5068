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

// controllers are metrics of the connections to the controller.
type controllers struct {
	toController     prometheus.Gauge
	controllerDials  *prometheus.CounterVec
	controllerAsking prometheus.Counter
}

func newControllers(r *prometheus.Registry) controllers {
	c := controllers{
		toController: gauge(r, "controller_connected", "Replicas of the controller that this node is connected to."),
		controllerDials: counterVec(r, "controller_connects_total",
			"Attempts to connect to a replica of the controller, by outcome: connected, busy, refused or failed.", "outcome"),
		controllerAsking: counter(r, "controller_asked_total", "Requests that controllers have sent to this node."),
	}
	for _, outcome := range []string{"connected", "busy", "refused", "failed"} {
		c.controllerDials.WithLabelValues(outcome)
	}
	return c
}

// ControllerConnected counts a replica of the controller that the node is connected to, or with -1 no longer.
func (m *Metrics) ControllerConnected(change int) { m.toController.Add(float64(change)) }

// ControllerAttempted counts an attempt to connect: connected, busy, refused or failed.
func (m *Metrics) ControllerAttempted(outcome string) {
	m.controllerDials.WithLabelValues(outcome).Inc()
}

// ControllerAsked counts a request of a controller.
func (m *Metrics) ControllerAsked() { m.controllerAsking.Inc() }

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
