// Fleet measures the gateway with thousands of nodes on one machine: how long a list of all of them
// takes, a search in all of their files and its end, what three silent nodes cost, how much memory a
// replica needs, how soon the nodes of a replica are back after its start, with how few TokenReviews, and
// what lists notice of the loss of one replica of several.
//
// The API server is a real one, with aggregation: that of the kubeconfig. The gateway is the real
// program, one process or several. The nodes are made up. The API server has a Node and a daemon's pod for each, and gives each
// a token; other processes play them all: with internal/node/uplink, the daemon's own way to the gateway,
// over a TLS connection for each, and with the daemon's handler over volumes that do not exist.
//
//   - main.go and options.go are the command line.
//   - story.go, measure.go and loss.go are what happens, in order, and what has to come out.
//   - search.go searches all volumes, and searchfiles.go has what is in them.
//   - server.go talks to the API server; objects.go is what fleet makes there, and removes at the end.
//   - gateway.go runs a replica of the gateway and looks at it; gateways.go are all of them.
//   - fleet.go runs the other processes, which are play.go and volumes.go.
//
// Each node has an address of its own: the gateway limits the connections that come from one. --acts plays some of what happens alone.
//
// It takes a cluster that has no gateway yet, and leaves it as it was. It is no place for other work:
// 5,000 nodes without a kubelet keep its controllers busy.
package main
