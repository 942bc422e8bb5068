// Package hub takes the connections that nodes open: to the gateway, and to the controller. It knows which
// nodes there should be, which are connected, and what each tells of itself: to the gateway, how many
// retained volumes of which namespace it holds; to the controller, which pools are on its disks. It has
// a client for each node.
//
// A node connects with TLS and asks for an upgrade, with a token of its pod:
//
//	GET /v1/connect HTTP/1.1
//	Authorization: Bearer <projected token of audience katbox-gateway, or katbox-controller>
//	Connection: Upgrade
//	Upgrade: katbox-node/1
//	Katbox-Node: <node>
//
// The answer 101 has a header Katbox-Replica that tells this replica from others: a node keeps one connection to a replica
// that has several addresses. From it on the node is an HTTP/2 server on that connection, and the hub its
// client. A refusal is a Status: 401 for a token that the API server does not accept, 403 for
// one of another pod, ServiceAccount or node, 503 with Retry-After if the hub cannot look now.
//
// Whose a token is the keys of the cluster tell, if there are [Tokens], and only together with what is not more than a minute old:
// the watch shows the token's pod running on the token's node, and a TokenReview has confirmed the UID of the ServiceAccount. In any
// other case the API server reviews the token.
//
// The hub reads the node's summaries as long as the connection lives: a line each 15 seconds at
// least, else the connection is closed. A node may have two connections for a while, since it makes
// the next one before it gives the last one up. The newest is used for all new requests. The
// hub closes an older one when nothing runs on it, or an hour later.
//
// A controller's hub tells [Pools] which pools a node has: when it connects, when they change, and when its last
// connection has ended. What asks a node about them, a [wire.Client], uses the newest connection; a question that
// changes something is sent once.
//
// # A node that lies
//
// A node is believed about its own volumes and pools, and about nothing else. Its name is that of the token.
// What it sends is bounded before it is kept: a line of a summary by 1 MiB, its holdings by 10,000,
// what it asks about owners and wants to upload by queues, an answer in JSON by 4 MiB and by the number of values that
// its entries can have, headers by 64 KiB, and unread bytes by the windows of HTTP/2. What goes
// beyond closes the connection. A node that is slow holds up no other: no
// lock is held while something is sent or received.
//
// The package decides about no user. Its callers do, before they ask a node.
package hub
