package uplink

import (
	"net/http"

	poolwire "github.com/katbox/katbox/internal/link/wire"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/node/metrics"
)

// peer is what is at the other end: how it is called, and what it may ask for. A gateway never reaches what is a
// controller's, nor the other way round.
type peer struct {
	// name is a part of its audience and of its ConfigMap, flag that of the daemon that names its address.
	name, flag string
	// enough is how many replicas a node connects to; 0 for all.
	enough int
	counts counts
	// route answers a request.
	route func(c *connection, w http.ResponseWriter, r *http.Request)
}

func (p peer) String() string { return "the " + p.name }

// counts are the metrics of the connections.
type counts struct {
	connected func(m *metrics.Metrics, change int)
	attempted func(m *metrics.Metrics, outcome string)
	asked     func(m *metrics.Metrics)
}

// gateways ask about inline volumes.
var gateways = peer{
	name: "gateway", flag: "--gateway", enough: enough, route: (*connection).forGateway,
	counts: counts{(*metrics.Metrics).GatewayConnected, (*metrics.Metrics).GatewayAttempted, (*metrics.Metrics).GatewayAsked},
}

// controllers ask about pools.
func controllers(p local.Pools) peer {
	answers := poolwire.Handler(p)
	return peer{
		name: "controller", flag: "--controller",
		route: func(c *connection, w http.ResponseWriter, r *http.Request) { c.forController(answers, w, r) },
		counts: counts{
			(*metrics.Metrics).ControllerConnected, (*metrics.Metrics).ControllerAttempted, (*metrics.Metrics).ControllerAsked,
		},
	}
}
