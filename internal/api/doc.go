// Package api is how a node shows its retained volumes to people: the words of the HTTP API, the
// handlers that answer on the node, and a client. A retained volume's files are listed and read
// through it; it changes nothing, except that it ends a volume's lifespan when it is asked to.
//
// Routes, all below /v1:
//
//	GET         /volumes                lists retained volumes, the newest first (see [Query])
//	GET, DELETE /volumes/{id}           describes one; ends its lifespan now
//	GET         /volumes/{id}/files     lists a directory, or describes one entry ([FilesQuery])
//	GET, HEAD   /volumes/{id}/bytes     streams a file, a part of it, or a tar ([BytesQuery])
//	GET         /usage                  says who occupies the disk
//	GET         /report                 is a text for support
//
// A volume that is published or deleted while it is read ends the reading: a handler that has sent
// nothing answers with 409 or 410, and one that has cuts the connection. A stream that failed never
// looks like one that is complete: either its length is announced and not reached, or its last
// chunk is missing. [Stream] turns both into an error.
//
// Limits of a handler: 32 streams and 16 lists at once, and beyond that the answer is 429; a list ends
// within five seconds, and its reader has ten seconds to read it; a stream that moves less than 64 KiB
// in five minutes ends. A directory is in memory until its reader has it, so two are listed at once,
// and others wait.
//
// The package does not authenticate anybody. The daemon has two handlers: one on a Unix socket that
// only root may use, and one on the connections to the gateway, which says in [HeaderUser] whose
// request it is. Each has limits of its own: whatever comes through the gateway, root on the node can
// read, and the other way round.
package api
