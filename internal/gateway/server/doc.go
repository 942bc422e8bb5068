// Package server answers the requests for retained volumes that the API server passes on: the
// handler of the gateway's port 10250.
//
// Requests, all below /apis/katbox.io/v1alpha1:
//
//	GET          /retainedvolumes                              lists those of all namespaces
//	GET          /namespaces/{ns}/retainedvolumes              lists those of a namespace
//	GET, DELETE  /namespaces/{ns}/retainedvolumes/{name}       describes one; ends its lifespan now
//	GET          /namespaces/{ns}/retainedvolumes/{name}/files lists a directory, or describes one entry
//	GET, HEAD    /namespaces/{ns}/retainedvolumes/{name}/log   streams a file, a part of it, or a tar
//
// and discovery, OpenAPI, /livez, /healthz and /readyz. Discovery and OpenAPI are the same bytes
// always: they need no node, and nothing of the API server. The health checks alone need no
// certificate.
//
// Who asks is said by the API server, and whether he may is asked of it again, before anything else
// is looked at. A volume that does not belong to the namespace as it is now is there only for users
// who may do the same in all namespaces; for others, it is not found.
//
// An answer never redirects, and a path is never cleaned: what does not look exactly like a request
// above is not found. Errors are [metav1.Status]. A node is not trusted: its answers are decoded and
// made anew, its headers checked, and bytes are never sent as something that a browser would show.
//
// The subresource is named log since the API server ends all other requests after 60 s. A stream
// that fails is reset, so that it never looks complete.
//
// Limits: 16 lists and 64 requests for files at once, 8 of each for a user; 256 streams, 8 for a
// user. Lists and requests for files wait half a minute for their turn. Beyond that the answer is 429. A
// stream that moves less than 64 KiB in five minutes ends.
package server
