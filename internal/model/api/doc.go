// Package api is how a node shows its retained volumes to people: the words of the HTTP API, and a
// client, with the [Caller] that asks other servers whose errors are a Status. A retained volume's files
// are listed and read through it, and a person decides how long the volume is kept: nothing else can be
// changed. The handlers that answer are in internal/node/handlers. This package compiles on every system.
//
// Routes, all below /v1:
//
//	GET         /volumes                lists retained volumes, the newest first (see [Query])
//	GET         /volumes/{id}           describes one
//	PATCH       /volumes/{id}           pins it, or takes a pin or a release back ([Keep])
//	DELETE      /volumes/{id}           deletes it now; with grace=DURATION, after the daemon's grace
//	GET         /volumes/{id}/files     lists a directory, or describes one entry ([FilesQuery])
//	GET, HEAD   /volumes/{id}/bytes     streams a file, a part of it, or a tar ([BytesQuery])
//	GET         /grep                   streams the lines of retained volumes that match ([GrepQuery], [GrepRecord])
//	GET         /gone                   lists volumes that were deleted, the last one first ([GoneQuery])
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
