// Package replicas lets the replicas of a gateway ask one another. A node connects to some of them alone, and whichever the API
// server asks has to know all nodes.
//
// A replica finds the others by the name of the Service that nodes find it by, and asks at the port that nodes connect to,
// with HTTP/2:
//
//	GET /v1/replica/nodes?namespace=NAME  which nodes are connected, and what they hold of a namespace
//	    /v1/volumes..., /v1/gone, ...     with the header Katbox-Node: a request for that node, which is passed on to it
//
// An answer to the second has the header Katbox-Relayed: "answered" where the node has answered; else it says why not.
//
// # Who may ask
//
// Both ends show the gateway's own certificate, and each checks the other's as nodes check it: by the gateway's CA, and
// the name of that Service. So only who can take the gateway's place for all nodes may ask, and there is no further
// secret. The one that asks has authenticated and authorized the user; the other one decides about no user, and passes on
// what reads or changes volumes, not what a gateway itself tells its nodes.
//
// # When one is lost
//
// A list asks each replica first, and waits a second. What a replica that does not answer has is asked for at another one:
// a node connects to two. A request to read that breaks before its answer begins goes to another one; one that changes
// something does so only if it was not sent.
//
// Replicas of versions before this one do not speak HTTP/2 at that port. While there is one, [Replicas.Forward] is false, and
// nodes connect to all, so that its lists lack none.
package replicas
