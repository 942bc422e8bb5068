// Package uplink is the node's side of the connections to the gateway, and of those to the controller. The
// gateway is where people's requests come from, the controller makes volumes on the nodes' disks; neither
// reaches a node by itself, so each node dials out to it. What is said here of the gateway holds for the
// controller too. Each of the two has an [Uplink] of its own, with a token for its own audience, and the
// other's requests are not answered there.
//
// An [Uplink] resolves the gateway's name again and again and keeps one connection to each address: a
// headless Service has one for each replica. A connection is TLS, over which the node asks to upgrade
// (GET [api.ConnectPath], with the projected token of its ServiceAccount). Then the roles change: the
// node is an HTTP/2 server on that connection, and the gateway its client. The gateway finds there
//
//	GET  [api.SummaryPath]   Summary after Summary: how many retained volumes of which namespaces,
//	                         and the pods whose owner the node wants to know
//	POST [api.OwnersPath]    the answers to that
//	POST [api.OutcomesPath]  how pods of the node have ended
//	     /v1/volumes..., and
//	GET  [api.GonePath]      what internal/model/api serves; /v1/usage and /v1/report are for root alone
//
// The controller finds
//
//	GET  [api.SummaryPath]   which pools the node has, line after line
//	     /v1/pools...        what internal/link/wire serves
//
// A connection lives for about an hour. The next one is made before it, so that there is always one
// to ask on; streams on the old one may go on for an hour more, and until they have ended there is no
// third. The old summary goes on, too: the gateway ends it once it has read the new one.
//
// The gateway is trusted to say who may read what. It is not trusted to work: if it is away, hangs,
// sends garbage or floods the node, no CSI call waits, and what it costs is bounded. Nothing in this
// package is called while a call runs, except [Uplink.Published] and [Uplink.Ask], which never block.
package uplink
