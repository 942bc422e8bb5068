// Package api is how a node shows its retained volumes to people: the words of the HTTP API, and a
// client. A retained volume's files are listed and read through it; it changes nothing, except that
// it ends a volume's lifespan when it is asked to. The handlers that answer are in internal/api/node.
// This package compiles on every system.
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
// Nothing here authenticates a person. The daemon answers on a Unix socket that only root may use, and
// on its connections to the gateway, which says in [HeaderUser] whose request it is.
package api
