// Package vpsa is the client of a Zadara VPSA, by its REST API.
//
// The array answers an error with the HTTP status 200, and a code and a text in the body; numbers come
// as numbers or as strings. A list may come in pages, or whole although a page was asked for.
//
// Reading is repeated a few times. A change is sent once: where its answer got lost, the client looks
// whether it was made, for some seconds. "The request has been submitted" is no failure: the array
// works on it, and the client looks until the context ends, for ten minutes at most. What is open after that is
// [array.ErrUncertain], which wraps the reason; the same call, repeated, looks first.
//
// What the array may still carry out late is kept in mind as long as the process lives, and until the
// array must have given up on it. An expansion says by how much, so another one of that volume waits.
// An attach waits for a detach, a detach for an attach. A volume or a snapshot that may still come is
// not called missing.
//
// The access key and CHAP secrets are in no log line and in no error.
package vpsa
