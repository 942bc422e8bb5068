// Package handlers answers the requests of the API of internal/model/api on a node: the handler of all its
// routes, and the server for it.
//
// Limits of a handler: 32 streams and 16 lists at once, and beyond that the answer is 429; a list ends
// within five seconds, and its reader has ten seconds to read it; a stream that moves less than 64 KiB
// in five minutes ends. A directory is in memory until its reader has it, so two are listed at once,
// and others wait.
//
// [Joined] are the volumes of a node that has both inline ones and pools: those of deleted claims stand in the same
// lists, and are read in the same ways.
//
// The package authenticates no one. The daemon has two handlers: one on a Unix socket that only root
// may use, and one on the connections to the gateway, which says in a header whose request it is. Each
// has limits of its own: whatever comes through the gateway, root on the node can read, and the other
// way round.
package handlers
